import { copyFile, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { GitExit } from '../../shared/git-process.ts';
import { providerFailures } from '../../shared/provider-failures.ts';
import { Damage, troubleOfMachine } from './damage.ts';
import type { Git } from './git.ts';
import { bareConfig, type Mirror } from './mirror.ts';

/**
 * Makes a git folder that has one commit and its history and nothing else, with an index: what goes into a work tree's
 * `.git`. What other branches have, and what the history once had, is not in it.
 */
export async function makeExport(git: Git, mirror: Mirror, oid: string, folder: string, signal: AbortSignal): Promise<void> {
  await Promise.all(['objects/pack', 'refs', 'info'].map((name) => mkdir(join(folder, name), { recursive: true })));
  await Promise.all([
    writeFile(join(folder, 'HEAD'), `${oid}\n`),
    writeFile(join(folder, 'config'), bareConfig(oid)),
    // An archive is otherwise without the files, and with the contents, that these attributes ask for.
    writeFile(join(folder, 'info/attributes'), '* -export-ignore -export-subst\n'),
    copyShallow(mirror, folder),
  ]);
  const base = { folder, environment: { GIT_DIR: mirror.gitDir } };
  const packing = git.run(
    {
      ...base,
      args: ['pack-objects', '--quiet', '--revs', '--delta-base-offset', join(folder, 'objects/pack/pack')],
      input: `${oid}\n`,
    },
    signal,
  );
  const indexing = git.run(
    { folder, environment: { ...base.environment, GIT_INDEX_FILE: join(folder, 'index') }, args: ['read-tree', oid] },
    signal,
  );
  const exits = await Promise.allSettled([packing, indexing]);
  for (const exit of exits) {
    if (exit.status === 'rejected') throw exit.reason;
    demandSuccess(git.provider, exit.value);
  }
}

async function copyShallow({ gitDir }: Mirror, folder: string): Promise<void> {
  await copyFile(join(gitDir, 'shallow'), join(folder, 'shallow')).catch((error: unknown) => {
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error;
  });
}

function demandSuccess(provider: string, exit: GitExit): void {
  if (exit.code === 0) return;
  const trouble = troubleOfMachine(exit, exit.stderr, providerFailures(provider).failed);
  throw trouble ?? new Damage(`git ended with exit code ${exit.code}: ${exit.stderr}`);
}
