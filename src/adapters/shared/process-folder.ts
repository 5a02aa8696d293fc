import { randomUUID } from 'node:crypto';
import { lstat, mkdir, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { errorCode } from './system-errors.ts';

const ours = new Set<string>();

export type ProcessFolder = Awaited<ReturnType<typeof makeProcessFolder>>;

/**
 * Creates a folder of this process, private to its user, below `parent`. Its name begins with `prefix`. Removes the folders of processes
 * that have ended.
 */
export async function makeProcessFolder(parent: string, prefix: string) {
  for (const name of await readdir(parent)) {
    if (!name.startsWith(prefix) || isInUse(name, prefix)) continue;
    const old = join(parent, name);
    // Another user's folder stays: that user could replace a part of it by a link while it is removed.
    const isOwn = (await lstat(old).catch(() => null))?.uid === process.getuid?.();
    if (isOwn) await rm(old, { recursive: true, force: true }).catch(() => undefined);
  }
  const name = `${prefix}${process.pid}-${randomUUID()}`;
  const path = join(parent, name);
  ours.add(name);
  await mkdir(path, { mode: 0o700 });
  return {
    path,
    async remove(): Promise<void> {
      await rm(path, { recursive: true, force: true });
      ours.delete(name);
    },
  };
}

/** After a restart in a container, this process may have the same id as the one that ended. */
function isInUse(name: string, prefix: string): boolean {
  const pid = Number(/^(\d{1,10})-/u.exec(name.slice(prefix.length))?.[1]);
  return pid === process.pid ? ours.has(name) : !Number.isNaN(pid) && isProcessAlive(pid);
}

/** Returns whether a process with this id runs on this machine, as any user. */
function isProcessAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return errorCode(error) === 'EPERM';
  }
}
