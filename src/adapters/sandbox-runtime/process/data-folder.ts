import { randomUUID } from 'node:crypto';
import { chmod, copyFile, type FileHandle, lstat, mkdir, open, readdir, rename, rm, stat, truncate } from 'node:fs/promises';
import { join } from 'node:path';
import { readLastLaunch } from './launch-records.ts';
import type { PortReservations } from './port-reservations.ts';
import { killAll } from './process-groups.ts';
import type { ProcessTable } from './process-table.ts';
import { errorCode, unavailable } from './system-errors.ts';

/**
 * Where everything of the runtime lies. All of it is below one folder that only its owner can enter:
 *
 * - `<id>/workspace/`: the sandbox's own files.
 * - `<id>/launches/`: Skep's records of each time that the command was run, see `records.ts`.
 * - `<id>/output.log`: what the command wrote to its standard output and error.
 * - `.ports/<port>`: a link whose text is the id of the sandbox that the port is reserved for.
 * - `.trash/`: what is half made or half removed. It is never seen as a sandbox.
 */
export interface Layout {
  readonly root: string;
  readonly trash: string;
  readonly ports: string;
  sandbox(id: string): SandboxLayout;
}

interface SandboxLayout {
  readonly folder: string;
  readonly workspace: string;
  readonly launches: string;
  readonly log: string;
}

export function createLayout(root: string): Layout {
  return {
    root,
    trash: join(root, '.trash'),
    ports: join(root, '.ports'),
    sandbox: (id) => sandboxLayout(join(root, id)),
  };
}

function sandboxLayout(folder: string): SandboxLayout {
  return {
    folder,
    workspace: join(folder, 'workspace'),
    launches: join(folder, 'launches'),
    log: join(folder, 'output.log'),
  };
}

const dnsLabel = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

/** May this id become a part of a path? */
export function isSandboxId(id: string): boolean {
  return dnsLabel.test(id);
}

/** Makes the folder of the runtime, which only its owner can enter. Idempotent. */
async function makeRoot({ root, trash, ports }: Layout): Promise<void> {
  await mkdir(root, { recursive: true, mode: 0o700 });
  await chmod(root, 0o700);
  await mkdir(trash, { recursive: true });
  await mkdir(ports, { recursive: true });
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
      if (!['ENOTEMPTY', 'EEXIST', 'ENOENT'].includes(errorCode(error) ?? '')) throw error;
    }
  }
}

/** Takes the folder out of sight, from when on there is no such sandbox. Idempotent. */
export async function discardSandbox(layout: Layout, id: string): Promise<void> {
  await rename(layout.sandbox(id).folder, join(layout.trash, `${id}.${randomUUID()}`)).catch((error: unknown) => {
    if (errorCode(error) !== 'ENOENT') throw error;
  });
}

/** The folders in the trash: of one sandbox, or all. */
async function discarded(layout: Layout, id?: string): Promise<string[]> {
  const names = await readdir(layout.trash);
  return names.filter((name) => id === undefined || name.startsWith(`${id}.`)).map((name) => join(layout.trash, name));
}

/** The ids of all sandboxes. */
export async function sandboxIds({ root }: Layout): Promise<string[]> {
  return (await readdir(root)).filter(isSandboxId).toSorted();
}

/** Removes a folder with all that is in it, also what its owner may not write to at present. */
async function removeTree(folder: string): Promise<void> {
  const remove = (): Promise<void> => rm(folder, { recursive: true, force: true, maxRetries: 3 });
  await remove().catch(async (error: unknown) => {
    if (!['EACCES', 'EPERM'].includes(errorCode(error) ?? '')) throw error;
    await makeWritable(folder);
    await remove();
  });
}

async function makeWritable(folder: string): Promise<void> {
  await chmod(folder, 0o700);
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    if (entry.isDirectory()) await makeWritable(join(folder, entry.name));
  }
}

async function exists(path: string): Promise<boolean> {
  try {
    await lstat(path);
    return true;
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return false;
    throw error;
  }
}

/** Makes the runtime's folder ready, and finishes what an earlier process left half done. */
export class Opening {
  readonly #layout: Layout;
  readonly #table: ProcessTable;
  readonly #ports: PortReservations;
  #opened: Promise<void> | undefined;
  #removal: Promise<void> = Promise.resolve();

  constructor(layout: Layout, table: ProcessTable, ports: PortReservations) {
    this.#layout = layout;
    this.#table = table;
    this.#ports = ports;
  }

  /** Returns when no discarded sandbox runs any more. Tries again after a failure. */
  async done(): Promise<void> {
    this.#opened ??= this.#open();
    try {
      await this.#opened;
    } catch (error) {
      this.#opened = undefined;
      throw error;
    }
  }

  async close(): Promise<void> {
    await this.#opened?.catch(() => {});
    await this.#removal;
  }

  async #open(): Promise<void> {
    const layout = this.#layout;
    await makeRoot(layout);
    const folders = await endDiscarded(layout, this.#table);
    await this.#ports.releaseAll(async (owner) => !(await exists(layout.sandbox(owner).folder)));
    // Nobody has to wait for the files. What can't be removed now is tried again by the next process.
    this.#removal = removeDiscarded(folders).catch(() => {});
  }
}

/** Ends the processes of discarded sandboxes: of one, or of all. Returns the folders that are left to remove. */
export async function endDiscarded(layout: Layout, table: ProcessTable, id?: string): Promise<string[]> {
  const folders = await discarded(layout, id);
  for (const folder of folders) {
    const record = await readLastLaunch(sandboxLayout(folder).launches);
    const claim = record === null || record === 'absent' || record.isGone ? null : record.claim;
    if (claim !== null) await killAll(table, claim);
  }
  return folders;
}

export async function removeDiscarded(folders: readonly string[]): Promise<void> {
  for (const folder of folders) await removeTree(folder);
}

/** Opens the log to write at its end, which stays the end when the log is cut. */
export function openLog(file: string): Promise<FileHandle> {
  return open(file, 'a', 0o600);
}

/** Moves a log that has grown past the limit to `<file>.old`, in place of what was there. What is written meanwhile may be lost. */
export async function cutLog(file: string, limitBytes: number): Promise<void> {
  try {
    if ((await stat(file)).size <= limitBytes) return;
    await copyFile(file, `${file}.old`);
    await truncate(file, 0);
  } catch (error) {
    if (errorCode(error) !== 'ENOENT') throw error;
  }
}

const cutEveryMs = 10_000;

/** Cuts the logs of all sandboxes now and then. Returns the function that ends it. */
export function keepLogsSmall(layout: Layout, limitBytes: number): () => void {
  const cutAll = async (): Promise<void> => {
    for (const id of await sandboxIds(layout)) await cutLog(layout.sandbox(id).log, limitBytes);
  };
  // What can't be cut now is tried again the next time.
  const timer = setInterval(() => void cutAll().catch(() => {}), cutEveryMs).unref();
  return () => clearInterval(timer);
}
