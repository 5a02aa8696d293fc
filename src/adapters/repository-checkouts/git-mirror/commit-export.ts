import { renameSync } from 'node:fs';
import { copyFile, mkdir, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { GitExit } from '../../shared/git-process.ts';
import { providerFailures } from '../../shared/provider-failures.ts';
import { Damage, troubleOfMachine } from './git-failures.ts';
import type { Git } from './git-runner.ts';
import type { Folders } from './mirror-store.ts';
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

/** A folder that stays while somebody holds it. */
export interface Hold {
  readonly folder: string;
  /** It turned out to be damaged: it goes at once. */
  readonly spoil: () => Promise<void>;
  readonly release: () => void;
}

/** Who reads what was made ready of a commit. The last of each mirror is kept for the next checkout of the same commit. */
export interface Holds {
  take(folder: string): Hold;
  /** Removes what nobody holds, but for what was made last. */
  trim(mirror: Mirror): Promise<void>;
}

export function createHolds(folders: Folders): Holds {
  const holders = new Map<string, number>();

  function release(folder: string): void {
    const left = (holders.get(folder) ?? 1) - 1;
    if (left === 0) holders.delete(folder);
    else holders.set(folder, left);
  }

  return {
    take(folder) {
      holders.set(folder, (holders.get(folder) ?? 0) + 1);
      let held = true;
      return {
        folder,
        spoil: () => folders.discard(folder),
        release() {
          if (held) release(folder);
          held = false;
        },
      };
    },
    async trim({ exports }) {
      const names = await readdir(exports).catch(() => []);
      const dated = await Promise.all(names.map(async (name) => [join(exports, name), await madeAt(join(exports, name))] as const));
      const [, ...older] = dated.toSorted(([, a], [, b]) => b - a);
      const trash = folders.temporary();
      await mkdir(trash, { mode: 0o700 });
      // Nobody can come to hold one between the question and the move.
      for (const [index, [folder]] of older.entries()) if (!holders.has(folder)) renameSync(folder, join(trash, String(index)));
      await rm(trash, { recursive: true, force: true });
    },
  };
}

async function madeAt(path: string): Promise<number> {
  return (await stat(path).catch(() => null))?.mtimeMs ?? 0;
}
