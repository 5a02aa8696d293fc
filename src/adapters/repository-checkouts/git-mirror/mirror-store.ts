import { randomUUID } from 'node:crypto';
import { access, chmod, constants, mkdir, readdir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { isProcessAlive } from '../../shared/git-process.ts';
import { createSemaphore, type Semaphore } from '../../shared/semaphore.ts';
import { createSingleFlight, type SingleFlight } from '../../shared/single-flight.ts';
import type { ResolvedOptions } from './git-mirror.ts';
import { createGitRunner } from './git-runner.ts';
import { createExportPins, type ExportPins, type Mirror, mirrorId, mirrorIn, repack } from './mirror.ts';

/** The opened folder of all mirrors, and what bounds the work in it. */
export interface MirrorStore {
  readonly folders: MirrorFolders;
  readonly leases: MirrorLeases;
  readonly pins: ExportPins;
  /** The fetches under way, by mirror, branch and commit. Each returns the commit that it exported. */
  readonly fetches: SingleFlight<string>;
  /** Bounds how many git programs work at the same time. */
  readonly work: Semaphore;
  close(): Promise<void>;
}

export async function openMirrorStore(options: ResolvedOptions, closing: AbortSignal): Promise<MirrorStore> {
  closing.throwIfAborted();
  const folders = await openFolders(options.root);
  await access(options.root, constants.R_OK | constants.W_OK | constants.X_OK);
  const pins = createExportPins(folders);
  const git = createGitRunner(options.gitBinary, 'git');
  const leases = await createLeases(folders, options.limitBytes, async (mirror, inUse) => {
    await pins.trim(mirror);
    if (!inUse) await repack(git, mirror, closing);
  });
  const fetches = createSingleFlight<string>();
  return {
    folders,
    leases,
    pins,
    fetches,
    work: createSemaphore(options.concurrency),
    async close() {
      await fetches.settled();
      await leases.settled();
      await folders.close();
    },
  };
}

export interface MirrorFolders {
  /** One folder for each repository. */
  readonly mirrors: string;
  /** A new path. What is there is removed when this process ends, unless it is moved. */
  temporary(): string;
  /** Removes a folder in one step. A file that is being read at this moment can be read to its end. */
  discard(path: string): Promise<void>;
  /** Removes what is temporary. */
  close(): Promise<void>;
}

const ours = new Set<string>();

/** Makes the folder, for this user only, and removes the temporary files of processes that have ended. */
async function openFolders(root: string): Promise<MirrorFolders> {
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
  return {
    mirrors,
    temporary: () => join(own, randomUUID()),
    async discard(path) {
      const trash = join(own, randomUUID());
      await rename(path, trash).catch((error: unknown) => {
        if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error;
      });
      await rm(trash, { recursive: true, force: true });
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

/** The right to use a mirror, which is not removed meanwhile. */
export interface MirrorLease {
  readonly mirror: Mirror;
  /** Lets one at a time work on the mirror. */
  readonly exclusive: Semaphore;
  readonly release: () => void;
}

export interface MirrorLeases {
  take(provider: string, repository: string): MirrorLease;
  /** How many mirrors there are, and their bytes. */
  usage(): { readonly mirrors: number; readonly bytes: number };
  /** Resolves when all leases are released and the work after them is done. */
  settled(): Promise<void>;
}

interface MirrorEntry {
  readonly mirror: Mirror;
  readonly exclusive: Semaphore;
  users: number;
  bytes: number;
  usedAt: number;
}

function newEntry(mirror: Mirror): MirrorEntry {
  return { mirror, exclusive: createSemaphore(1), users: 0, bytes: 0, usedAt: 0 };
}

const never = new AbortController().signal;

/** `maintain` is called after each release, while nobody works on the mirror; `inUse` says whether somebody still holds a lease. */
async function createLeases(
  folders: MirrorFolders,
  limitBytes: number,
  maintain: (mirror: Mirror, inUse: boolean) => Promise<void>,
): Promise<MirrorLeases> {
  const entries = await readEntries(folders);
  const underWay = new Set<Promise<void>>();

  function track(work: Promise<void>): void {
    // What fails here is tried again after the next release, and is in nobody's way.
    const done = work.catch(() => undefined).finally(() => underWay.delete(done));
    underWay.add(done);
  }

  async function afterRelease(entry: MirrorEntry): Promise<void> {
    await entry.exclusive.use(never, async () => {
      await maintain(entry.mirror, entry.users > 0);
      entry.bytes = await sizeOf(entry.mirror.folder);
    });
    const { id } = entry.mirror;
    if (entry.users === 0 && entry.bytes === 0 && entries.get(id) === entry) entries.delete(id);
    await evict(entries, limitBytes, folders);
  }

  track(evict(entries, limitBytes, folders));
  return {
    take(provider, repository) {
      const id = mirrorId(provider, repository);
      const entry = entries.get(id) ?? newEntry(mirrorIn(folders.mirrors, id));
      entries.set(id, entry);
      entry.users += 1;
      entry.usedAt = Date.now();
      const released = Promise.withResolvers<void>();
      track(released.promise);
      let held = true;
      const release = (): void => {
        if (!held) return;
        held = false;
        entry.users -= 1;
        track(afterRelease(entry));
        released.resolve();
      };
      return { mirror: entry.mirror, exclusive: entry.exclusive, release };
    },
    usage: () => ({ mirrors: entries.size, bytes: totalBytes(entries) }),
    async settled() {
      while (underWay.size > 0) await Promise.all(underWay);
    },
  };
}

async function readEntries({ mirrors }: MirrorFolders): Promise<Map<string, MirrorEntry>> {
  const entries = new Map<string, MirrorEntry>();
  for (const id of await readdir(mirrors)) {
    const entry = newEntry(mirrorIn(mirrors, id));
    entry.bytes = await sizeOf(entry.mirror.folder);
    entry.usedAt = (await stat(entry.mirror.used).catch(() => null))?.mtimeMs ?? 0;
    entries.set(id, entry);
  }
  return entries;
}

/** Removes the least recently used mirrors that nobody uses, until the rest fits. */
async function evict(entries: Map<string, MirrorEntry>, limitBytes: number, folders: MirrorFolders): Promise<void> {
  while (totalBytes(entries) > limitBytes) {
    const idle = [...entries.values()].filter(({ users }) => users === 0);
    const [oldest] = idle.toSorted((a, b) => a.usedAt - b.usedAt);
    if (oldest === undefined) return;
    await oldest.exclusive.use(never, async () => {
      if (oldest.users > 0) return;
      // A checkout that comes meanwhile waits for its turn, and makes the mirror again.
      await folders.discard(oldest.mirror.folder);
      oldest.bytes = 0;
    });
    if (oldest.users === 0) entries.delete(oldest.mirror.id);
  }
}

function totalBytes(entries: ReadonlyMap<string, MirrorEntry>): number {
  return [...entries.values()].reduce((sum, { bytes }) => sum + bytes, 0);
}

/** How many bytes the files below a folder have; 0 if there is none. Files that are removed meanwhile do not count. */
export async function sizeOf(folder: string): Promise<number> {
  const entries = await readdir(folder, { withFileTypes: true, recursive: true }).catch(() => []);
  let bytes = 0;
  for (const entry of entries) {
    if (entry.isFile()) bytes += (await stat(join(entry.parentPath, entry.name)).catch(() => null))?.size ?? 0;
  }
  return bytes;
}

const watchIntervalMs = 500;

/** A signal that fires with `signal`, and with a failure when the repository's objects take more than the limit. */
export function watchSize(
  gitDir: string,
  maxBytes: number,
  failure: () => Error,
  signal: AbortSignal,
): { readonly signal: AbortSignal; readonly end: () => void } {
  const tooLarge = new AbortController();
  const look = async (): Promise<void> => {
    if ((await sizeOf(join(gitDir, 'objects'))) > maxBytes) tooLarge.abort(failure());
  };
  const timer = setInterval(() => void look(), watchIntervalMs);
  return { signal: AbortSignal.any([signal, tooLarge.signal]), end: () => clearInterval(timer) };
}
