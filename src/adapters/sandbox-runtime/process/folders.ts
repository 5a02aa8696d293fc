import { randomUUID } from 'node:crypto';
import { chmod, lstat, mkdir, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { errorCode, unavailable } from './file-errors.ts';
import { isSandboxId, sandboxLayout, type Layout } from './layout.ts';

/** Makes the folder of the runtime, which only its owner can enter. Idempotent. */
export async function makeRoot({ root, trash, ports }: Layout): Promise<void> {
  await mkdir(root, { recursive: true, mode: 0o700 });
  await chmod(root, 0o700);
  await mkdir(trash, { recursive: true });
  await mkdir(ports, { recursive: true });
}

/**
 * Rejects where the runtime's folder is not the one that was made: a disk that is not mounted must not look like one
 * whose sandboxes are gone.
 */
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
export async function discarded(layout: Layout, id?: string): Promise<string[]> {
  const names = await readdir(layout.trash);
  return names.filter((name) => id === undefined || name.startsWith(`${id}.`)).map((name) => join(layout.trash, name));
}

/** The ids of all sandboxes. */
export async function sandboxIds({ root }: Layout): Promise<string[]> {
  return (await readdir(root)).filter(isSandboxId).toSorted();
}

/** Removes a folder with all that is in it, also what its owner may not write to at present. */
export async function removeTree(folder: string): Promise<void> {
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

export async function exists(path: string): Promise<boolean> {
  return lstat(path).then(
    () => true,
    (error: unknown) => {
      if (errorCode(error) === 'ENOENT') return false;
      throw error;
    },
  );
}
