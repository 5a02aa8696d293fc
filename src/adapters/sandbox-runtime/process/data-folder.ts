import { randomUUID } from 'node:crypto';
import { chmod, lstat, mkdir, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { dnsLabel } from '../../../domain/dns-label.ts';
import { ignoring } from '../../shared/system-errors.ts';
import { readLastLaunch } from './launch-records.ts';
import type { PortReservations } from './port-reservations.ts';
import { killAll } from './process-groups.ts';
import type { ProcessTable } from './process-table.ts';
import { unavailable } from './runtime-failures.ts';

/**
 * Where everything of the runtime lies. All of it is below one folder that only its owner can enter:
 *
 * - `<id>/workspace/`: the sandbox's own files.
 * - `<id>/launches/`: Skep's records of each time that the command was run, see `launch-records.ts`.
 * - `<id>/executions/<execution>/`: what is kept of a command, see `execution-supervisor.ts`.
 * - `<id>/output.log`: what the command wrote to its standard output and error, see `sandbox-logs.ts`.
 * - `.ports/<port>`: a link whose text is the id of the sandbox that the port is reserved for.
 * - `.trash/`: what is half made or half removed. It is never seen as a sandbox.
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
    launches: join(folder, 'launches'),
    executions: join(folder, 'executions'),
    log: join(folder, 'output.log'),
  };
}

/** Rejects if the runtime's folder is not the one that was made: an unmounted disk must not look like one without sandboxes. */
export async function demandRoot({ trash }: Layout): Promise<void> {
  if (!(await lstat(trash)).isDirectory()) throw unavailable('its data folder is not what it was');
}

/** Makes the folder of a sandbox: whole, or not at all. Idempotent. */
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
      // Somebody else made it first, or swept the new folder away as left over.
      ignoring('ENOTEMPTY', 'EEXIST', 'ENOENT')(error);
    }
  }
}

/** Takes the folder out of sight, from when on there is no such sandbox. Idempotent. */
export async function discardSandbox(layout: Layout, id: string): Promise<void> {
  await rename(layout.sandbox(id).folder, join(layout.trash, `${id}.${randomUUID()}`)).catch(ignoring('ENOENT'));
}

/** The ids of all sandboxes. */
export async function sandboxIds({ root }: Layout): Promise<string[]> {
  return (await readdir(root)).filter((name) => dnsLabel.test(name)).toSorted();
}

/** Removes folders with all that is in them, also what their owner may not write to at present. */
export async function removeDiscarded(folders: readonly string[]): Promise<void> {
  for (const folder of folders) {
    const remove = (): Promise<void> => rm(folder, { recursive: true, force: true, maxRetries: 3 });
    await remove().catch(async (error: unknown) => {
      ignoring('EACCES', 'EPERM')(error);
      await makeWritable(folder);
      await remove();
    });
  }
}

async function makeWritable(folder: string): Promise<void> {
  await chmod(folder, 0o700);
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    if (entry.isDirectory()) await makeWritable(join(folder, entry.name));
  }
}

async function exists(path: string): Promise<boolean> {
  return (await lstat(path).catch(ignoring('ENOENT'))) !== null;
}

/**
 * Makes the runtime's folder, which only its owner can enter, and ends what an earlier process left half removed. Returns the removal of
 * its files, which nobody has to wait for.
 */
export async function openRoot(layout: Layout, table: ProcessTable, ports: PortReservations): Promise<{ readonly removal: Promise<void> }> {
  await mkdir(layout.root, { recursive: true, mode: 0o700 });
  await chmod(layout.root, 0o700);
  for (const folder of [layout.trash, layout.ports]) await mkdir(folder, { recursive: true });
  const folders = await endDiscarded(layout, table);
  await ports.releaseAll(async (owner) => !(await exists(layout.sandbox(owner).folder)));
  // What can't be removed now is tried again by the next process.
  return { removal: removeDiscarded(folders).catch(() => {}) };
}

/** Ends the processes of discarded sandboxes: of one, or of all. Returns the folders that are left to remove. */
export async function endDiscarded(layout: Layout, table: ProcessTable, id?: string): Promise<string[]> {
  const names = (await readdir(layout.trash)).filter((name) => id === undefined || name.startsWith(`${id}.`));
  const folders = names.map((name) => join(layout.trash, name));
  for (const folder of folders) {
    const record = await readLastLaunch(sandboxLayout(folder).launches);
    if (record !== null && record.claim !== null && !record.isGone) await killAll(table, record.claim);
  }
  return folders;
}

/** Returns what the files of a sandbox take on the disk, in bytes. Null if there is no such sandbox. Links are not followed. */
export async function sizeOfWorkspace(layout: Layout, id: string): Promise<number | null> {
  if (!dnsLabel.test(id)) return null;
  const folder = layout.sandbox(id).workspace;
  const entries = await readdir(folder, { recursive: true }).catch(ignoring('ENOENT'));
  if (entries === null) return null;
  let bytes = 0;
  // What is gone by now takes nothing.
  for (const name of entries) bytes += ((await lstat(join(folder, name)).catch(ignoring('ENOENT', 'ENOTDIR')))?.blocks ?? 0) * 512;
  return bytes;
}
