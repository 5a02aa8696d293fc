import { statSync } from 'node:fs';
import { CommandError, type JsonOption, print } from '../../adapters/cli/console.ts';
import { duration } from '../../adapters/shared/message-formatting.ts';
import { inSnakeCase } from '../../adapters/shared/snake-case.ts';
import type { RestoredStore } from '../../adapters/store/sqlite/index.ts';
import { commandName } from '../../client/command-name.ts';
import { defaultQuarantineForMs } from '../../domain/quarantine.ts';
import { ensureDeploymentFile, noteRuntime, readDeploymentFile } from '../config/deployment-file.ts';
import { readConfig } from '../config/read-config.ts';
import { storeWarningText } from '../store-warnings.ts';

export async function backup(env: NodeJS.ProcessEnv, file: string, options: JsonOption): Promise<number> {
  if (file === '-') throw new CommandError('Give the name of a new file: a backup is not written to the standard output.');
  const { dataDir } = readConfig(env);
  const { backupSqlite } = await import('../../adapters/store/sqlite/index.ts');
  const runtime = readDeploymentFile(dataDir)?.runtime ?? null;
  await backupSqlite({ dataDir, file, runtime, warn: (warning) => process.stderr.write(`${storeWarningText(warning)}\n`) });
  const { size } = statSync(file);
  print(options, { data_dir: dataDir, file, bytes: size }, `The store in ${dataDir} is copied to ${file} (${size} bytes).\n`);
  process.stderr.write('It contains the keys of sandboxes: keep it private. It does not contain files of sandboxes.\n');
  return 0;
}

/** Replaces the store with a backup, and prints the next steps. */
export async function restore(env: NodeJS.ProcessEnv, file: string, { json = false }: JsonOption): Promise<number> {
  const { dataDir, options } = readConfig(env);
  const { restoreSqlite } = await import('../../adapters/store/sqlite/index.ts');
  const deploymentId = readDeploymentFile(dataDir)?.id ?? null;
  const restored = await restoreSqlite({ dataDir, file, deploymentId, now: Date.now() });
  // A new data folder gets the id of the deployment that owns the sandboxes in the store.
  if (restored.deploymentId !== null) ensureDeploymentFile(dataDir, restored.deploymentId);
  if (deploymentId === null && restored.runtime !== null) noteRuntime(dataDir, restored.runtime);
  const { replaced, keepsRevocations } = restored;
  const quarantineForMs = options.quarantineForMs ?? defaultQuarantineForMs;
  const result = { dataDir, replaced, deploymentId: restored.deploymentId ?? deploymentId, keepsRevocations, quarantineForMs };
  const isNewFolder = deploymentId === null && restored.deploymentId !== null;
  print({ json }, inSnakeCase(result), restoredText(result, isNewFolder));
  return 0;
}

/** `deploymentId` is null if neither the backup nor the data folder has it. */
type Restored = Omit<RestoredStore, 'runtime'> & { readonly dataDir: string; readonly quarantineForMs: number };

function restoredText(
  { dataDir, replaced, deploymentId, keepsRevocations, quarantineForMs }: Restored, isNewFolder: boolean,
): string {
  return [
    `The store in ${dataDir} is restored.`,
    ...(replaced === null ? [] : [`The replaced store is kept: ${replaced}`]),
    ...(deploymentId === null ? [unknownDeployment] : []),
    '',
    'Next:',
    '  1. Start the server.',
    ...(isNewFolder ? ['     First stop the server that the backup is from: both would manage the same sandboxes.'] : []),
    `  2. Sandboxes that were started since the backup are stopped and kept for ${duration(quarantineForMs)}. Show them,`,
    `     about 10 seconds after the start: ${commandName} doctor`,
    `     Give one back to its owner: ${commandName} sandboxes adopt <id>. Delete one: ${commandName} sandboxes delete <id>.`,
    "     Both need an administrator's key.",
    ...(keepsRevocations ? [] : [
      `  3. A key that was revoked since the backup is valid again. Revoke it: ${commandName} keys revoke <name>`,
    ]),
    '',
  ].join('\n');
}

const unknownDeployment = 'The backup does not say which deployment it belongs to. Put the deployment.json of that deployment into the '
  + 'folder before you start the server, or its containers are not found.';
