import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { chmod, lstat, mkdir, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { dnsLabel } from '../../../domain/dns-label.ts';
import { ignoring } from '../../shared/system-errors.ts';
import { joinBytes } from './directories.ts';
import { readLastLaunch } from './launch-records.ts';
import type { PortReservations } from './port-reservations.ts';
import { killAll } from './process-groups.ts';
import type { ProcessTable } from './process-table.ts';
import { unavailable } from './runtime-failures.ts';

/**
 * The files of the runtime. All are below one folder that only its owner can enter:
 *
 * - `<id>/workspace/`: the sandbox's own files.
 * - `<id>/home/`: the home folder of its programs. It is not the workspace, so that their settings and caches stay out of a work tree.
 * - `<id>/launches/`: Skep's records of the sandbox's launches, see `launch-records.ts`.
 * - `<id>/executions/<execution>/`: the kept files of an execution, see `supervisor-script.ts`.
 * - `<id>/output.log`: the command's standard output and error, see `sandbox-logs.ts`.
 * - `.ports/<port>`: the reservation of a port: a link whose text is the sandbox's id.
 * - `.trash/`: half created or half removed folders. They never count as sandboxes.
 */
export type Layout = Readonly<ReturnType<typeof createLayout>>;

export function createLayout(root: string) {
  const sandbox = (id: string) => sandboxLayout(join(root, id));
  return { root, trash: join(root, '.trash'), ports: join(root, '.ports'), sandbox };
}

function sandboxLayout(folder: string) {
  return {
    folder,
    workspace: join(folder, 'workspace'),
    home: join(folder, 'home'),
    launches: join(folder, 'launches'),
    executions: join(folder, 'executions'),
    log: join(folder, 'output.log'),
  };
}

/** Rejects if the runtime's folder was replaced: an unmounted disk must not look like one without sandboxes. */
export async function requireRoot({ trash }: Layout): Promise<void> {
  if (!(await lstat(trash)).isDirectory()) throw unavailable('its data folder is not what it was');
}

/** Creates the folder of a sandbox, completely or not at all. Idempotent. */
export async function makeSandbox(layout: Layout, id: string): Promise<void> {
  const { folder } = layout.sandbox(id);
  while (!(await exists(folder))) {
    const made = sandboxLayout(join(layout.trash, `new.${randomUUID()}`));
    try {
      await mkdir(made.workspace, { recursive: true });
      await mkdir(made.launches);
      await rename(made.folder, folder);
    } catch (error) {
      await rm(made.folder, { recursive: true, force: true });
      // Another process created it first, or removed the new folder as a leftover.
      ignoring('ENOTEMPTY', 'EEXIST', 'ENOENT')(error);
    }
  }
}

/** Creates the home folder if it does not exist: programs may remove it, and a sandbox that an earlier version started has none. */
export async function makeHome(home: string): Promise<void> {
  await mkdir(home, 0o700).catch(ignoring('EEXIST'));
}

/** Moves the folder to the trash. From then on, the sandbox does not exist. Idempotent. */
export async function discardSandbox(layout: Layout, id: string): Promise<void> {
  await rename(layout.sandbox(id).folder, join(layout.trash, `${id}.${randomUUID()}`)).catch(ignoring('ENOENT'));
}

export async function sandboxIds({ root }: Layout): Promise<string[]> {
  return (await readdir(root)).filter((name) => dnsLabel.test(name)).toSorted();
}

/** Also enters directories that their owner may not write to, or whose path is longer than the system allows. */
const removal = 'exec 2>/dev/null; chmod -R u+rwx "$1"; rm -rf "$1"';

/** Removes folders with all their content. */
export async function removeDiscarded(folders: readonly string[]): Promise<void> {
  for (const folder of folders) {
    await rm(folder, { recursive: true, force: true, maxRetries: 3 }).catch(async (error: unknown) => {
      ignoring('EACCES', 'EPERM', 'ENAMETOOLONG')(error);
      await promisify(execFile)('/bin/sh', ['-c', removal, 'sh', folder]).catch((cause: unknown) => {
        throw unavailable('files of a removed sandbox may not be removed', cause);
      });
    });
  }
}

async function exists(path: string): Promise<boolean> {
  return (await lstat(path).catch(ignoring('ENOENT'))) !== null;
}

/**
 * Creates the runtime's folder, which only its owner can enter, and ends the processes of sandboxes that an earlier process left half
 * removed. Returns the removal of their files. Callers need not wait for it.
 */
export async function openRoot(layout: Layout, table: ProcessTable, ports: PortReservations): Promise<{ readonly removal: Promise<void> }> {
  await mkdir(layout.root, { recursive: true, mode: 0o700 });
  await chmod(layout.root, 0o700);
  for (const folder of [layout.trash, layout.ports]) await mkdir(folder, { recursive: true });
  const folders = await endDiscarded(layout, table);
  await ports.release(async (owner) => !(await exists(layout.sandbox(owner).folder)));
  // If a removal fails, the next process tries again.
  return { removal: removeDiscarded(folders).catch(() => {}) };
}

/** Kills the processes of one discarded sandbox, or of all. Returns the folders that are still to be removed. */
export async function endDiscarded(layout: Layout, table: ProcessTable, id?: string): Promise<string[]> {
  const names = (await readdir(layout.trash)).filter((name) => id === undefined || name.startsWith(`${id}.`));
  const folders = names.map((name) => join(layout.trash, name));
  for (const folder of folders) {
    const record = await readLastLaunch(sandboxLayout(folder).launches);
    if (record !== null && record.claim !== null && !record.isGone) await killAll(table, record.claim);
  }
  return folders;
}

/** Returns the disk space of a sandbox's files, in bytes. Null if the sandbox does not exist. */
export async function sizeOfFiles(layout: Layout, id: string): Promise<number | null> {
  if (!dnsLabel.test(id)) return null;
  const { workspace, home } = layout.sandbox(id);
  const bytes = await sizeOfFolder(workspace);
  return bytes === null ? null : bytes + ((await sizeOfFolder(home)) ?? 0);
}

/** System errors of an entry that is gone by now, that this process may not read or name, or whose file system has failed. */
const uncounted = ignoring('ENOENT', 'ENOTDIR', 'EACCES', 'EPERM', 'ELOOP', 'ENAMETOOLONG', 'ENOTCONN', 'ESTALE', 'EIO');

/**
 * Null if the folder does not exist. Does not follow links, and does not enter other file systems. What can't be read counts as 0: programs
 * may remove it or lock it.
 */
async function sizeOfFolder(folder: string): Promise<number | null> {
  const top = await lstat(folder).catch(ignoring('ENOENT'));
  if (top === null) return null;
  let bytes = 0;
  const folders: (string | Buffer)[] = top.isDirectory() ? [folder] : [];
  // A recursive `readdir` would enter links to directories, and so list files of the host.
  for (let at = folders.pop(); at !== undefined; at = folders.pop()) {
    for (const name of (await readdir(at, 'buffer').catch(uncounted)) ?? []) {
      const path = joinBytes(at, name);
      const found = await lstat(path).catch(uncounted);
      bytes += (found?.blocks ?? 0) * 512;
      if (found?.isDirectory() === true && found.dev === top.dev) folders.push(path);
    }
  }
  return bytes;
}
