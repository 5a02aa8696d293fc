import { renameSync } from 'node:fs';
import { mkdir, readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Folders } from './folders.ts';
import type { Mirror } from './mirror.ts';

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
