import { statSync } from 'node:fs';
import { commandName } from '../../client/command-name.ts';
import { defaultQuarantineForMs } from '../../domain/quarantine.ts';
import { ensureDeploymentFile, noteRuntime, readDeploymentFile } from '../config/deployment-file.ts';
import { readConfig } from '../config/read-config.ts';

export async function backup(env: NodeJS.ProcessEnv, file: string): Promise<number> {
  const { dataDir } = readConfig(env);
  const { backupSqlite } = await import('../../adapters/store/sqlite/index.ts');
  const runtime = readDeploymentFile(dataDir)?.runtime ?? null;
  await backupSqlite({ dataDir, file, runtime, warn: (message) => process.stderr.write(`${message}\n`) });
  process.stdout.write(`The store in ${dataDir} is copied to ${file} (${statSync(file).size} bytes).\n`);
  process.stderr.write('It holds the keys of sandboxes: keep it private. Files inside sandboxes are not part of it.\n');
  return 0;
}

/** Replaces the store by a backup, and prints what comes next. */
export async function restore(env: NodeJS.ProcessEnv, file: string): Promise<number> {
  const { dataDir, options } = readConfig(env);
  const { restoreSqlite } = await import('../../adapters/store/sqlite/index.ts');
  const deploymentId = readDeploymentFile(dataDir)?.id ?? null;
  const restored = await restoreSqlite({ dataDir, file, deploymentId, now: Date.now() });
  // A new folder becomes one of the deployment whose sandboxes the store has.
  if (restored.deploymentId !== null) ensureDeploymentFile(dataDir, restored.deploymentId);
  if (deploymentId === null && restored.runtime !== null) noteRuntime(dataDir, restored.runtime);
  const { replaced, keepsRevocations } = restored;
  const keptHours = (options.quarantineForMs ?? defaultQuarantineForMs) / 3_600_000;
  const skep = commandName;
  process.stdout.write([
    `The store in ${dataDir} is restored.`,
    ...(replaced === null ? [] : [`The store that it replaces is kept: ${replaced}`]),
    ...(restored.deploymentId === null && deploymentId === null ? [unknownDeployment] : []),
    '',
    'Next:',
    `  1. Start the server: ${skep} serve`,
    `  2. Sandboxes that were started since the backup are stopped and kept for ${keptHours} hours. Show them,`,
    `     about 10 seconds after the start: ${skep} doctor`,
    `     Give one back to its owner: ${skep} sandboxes adopt <id>. Delete one: ${skep} sandboxes delete <id>.`,
    "     Both need an administrator's key.",
    ...(keepsRevocations ? [] : [`  3. A key that was revoked since the backup is valid again. Revoke it: ${skep} keys revoke <name>`]),
    '',
  ].join('\n'));
  return 0;
}

const unknownDeployment = 'The backup does not say which deployment it belongs to. Put the deployment.json of that deployment into the '
  + 'folder before you start the server, or its containers are not found.';
