import { renameSync } from 'node:fs';
import { copyFile, mkdir, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { providerFailures } from '../../shared/provider-failures.ts';
import { Corruption, failureOfMachine } from './git-failures.ts';
import type { GitRunner } from './git-runner.ts';
import type { MirrorFolders } from './mirror-store.ts';
import { bareConfig, type Mirror } from './mirror.ts';

/** The folder of a commit's export. */
export function exportOf({ exports }: Mirror, oid: string): string {
  return join(exports, oid);
}

/**
 * Makes a git folder with an index, one commit and its history: what the `.git` of a work tree holds. What other branches have, and
 * what the history once had, is not in it.
 */
export async function makeExport(git: GitRunner, mirror: Mirror, oid: string, folder: string, signal: AbortSignal): Promise<void> {
  await Promise.all(['objects/pack', 'refs', 'info'].map((name) => mkdir(join(folder, name), { recursive: true })));
  await Promise.all([
    writeFile(join(folder, 'HEAD'), `${oid}\n`),
    writeFile(join(folder, 'config'), bareConfig(oid)),
    // Otherwise `git archive` leaves out files, and changes contents, as the repository's attributes say.
    writeFile(join(folder, 'info/attributes'), '* -export-ignore -export-subst\n'),
    copyIfExists(join(mirror.gitDir, 'shallow'), join(folder, 'shallow')),
  ]);
  const environment = { GIT_DIR: mirror.gitDir };
  const packArgs = ['pack-objects', '--quiet', '--revs', '--delta-base-offset', join(folder, 'objects/pack/pack')];
  const results = await Promise.allSettled([
    git.run({ folder, environment, args: packArgs, input: `${oid}\n` }, signal),
    git.run({ folder, environment: { ...environment, GIT_INDEX_FILE: join(folder, 'index') }, args: ['read-tree', oid] }, signal),
  ]);
  for (const result of results) {
    if (result.status === 'rejected') throw result.reason;
    const { code, stderr } = result.value;
    if (code === 0) continue;
    const ofMachine = failureOfMachine(result.value, stderr, providerFailures(git.provider).failed);
    throw ofMachine ?? new Corruption(`git ended with exit code ${code}: ${stderr}`);
  }
}

async function copyIfExists(from: string, to: string): Promise<void> {
  await copyFile(from, to).catch((error: unknown) => {
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error;
  });
}

/** Keeps an export while somebody reads it. */
export interface ExportPin {
  readonly folder: string;
  /** Removes the export at once, because it is corrupt. */
  readonly discard: () => Promise<void>;
  readonly release: () => void;
}

export interface ExportPins {
  pin(folder: string): ExportPin;
  /** Removes the exports that nobody has pinned, except the latest, which the next checkout of the same commit uses. */
  trim(mirror: Mirror): Promise<void>;
}

export function createExportPins(folders: MirrorFolders): ExportPins {
  const pinned: string[] = [];
  return {
    pin(folder) {
      pinned.push(folder);
      let held = true;
      return {
        folder,
        discard: () => folders.discard(folder),
        release() {
          if (held) pinned.splice(pinned.indexOf(folder), 1);
          held = false;
        },
      };
    },
    async trim({ exports }) {
      const paths = (await readdir(exports).catch(() => [])).map((name) => join(exports, name));
      const dated = await Promise.all(paths.map(async (path) => [path, (await stat(path).catch(() => null))?.mtimeMs ?? 0] as const));
      const [, ...older] = dated.toSorted(([, a], [, b]) => b - a);
      const trash = folders.temporary();
      await mkdir(trash, { mode: 0o700 });
      // Synchronous, so that nobody can pin one between the check and the move.
      for (const [index, [path]] of older.entries()) if (!pinned.includes(path)) renameSync(path, join(trash, String(index)));
      await rm(trash, { recursive: true, force: true });
    },
  };
}
