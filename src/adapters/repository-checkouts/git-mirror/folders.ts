import { randomUUID } from 'node:crypto';
import { chmod, mkdir, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { isProcessAlive } from '../../shared/git-process.ts';

/** The folder that everything is kept in. */
export interface Folders {
  /** One folder a repository. */
  readonly mirrors: string;
  /** The path of something new, which goes away with this process if it is not moved. */
  temporary(): string;
  /** Takes a folder away, in one step. What is read in it at this moment can be read to its end. */
  discard(path: string): Promise<void>;
  /** Removes what is temporary. */
  close(): Promise<void>;
}

const ours = new Set<string>();

/** Makes the folder, for nobody else, and removes what processes that have ended left half-done in it. */
export async function openFolders(root: string): Promise<Folders> {
  const [mirrors, temporary] = [join(root, 'mirrors'), join(root, 'tmp')];
  await mkdir(root, { recursive: true, mode: 0o700 });
  await chmod(root, 0o700);
  await Promise.all([mirrors, temporary].map((path) => mkdir(path, { recursive: true, mode: 0o700 })));
  for (const name of await readdir(temporary)) {
    if (!isInUse(name)) await rm(join(temporary, name), { recursive: true, force: true });
  }
  const name = `${process.pid}-${randomUUID()}`;
  const own = join(temporary, name);
  ours.add(name);
  await mkdir(own, { mode: 0o700 });
  const next = (): string => join(own, randomUUID());
  return {
    mirrors,
    temporary: next,
    async discard(path) {
      const trash = next();
      const found = await rename(path, trash).then(() => true, missing);
      if (found) await rm(trash, { recursive: true, force: true });
    },
    async close() {
      await rm(own, { recursive: true, force: true });
      ours.delete(name);
    },
  };
}

function isInUse(name: string): boolean {
  const pid = Number(/^(\d{1,10})-/u.exec(name)?.[1]);
  if (Number.isNaN(pid)) return false;
  return pid === process.pid ? ours.has(name) : isProcessAlive(pid);
}

function missing(error: unknown): boolean {
  if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return false;
  throw error;
}
