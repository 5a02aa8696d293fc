import { randomUUID } from 'node:crypto';
import { access, chmod, constants, mkdir, readdir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { isProcessAlive } from '../../shared/git-process.ts';
import { createSemaphore, type Semaphore } from '../../shared/semaphore.ts';
import { createSingleFlight, type SingleFlight } from '../../shared/single-flight.ts';
import { createHolds, type Holds } from './commit-export.ts';
import type { ResolvedOptions } from './git-mirror.ts';
import { createGit } from './git-runner.ts';
import { type Mirror, mirrorId, mirrorIn, tidy } from './mirror.ts';

/** The opened folder, and who does what in it. */
export interface Workshop {
  readonly folders: Folders;
  readonly leases: Leases;
  readonly holds: Holds;
  /** What makes commits ready, by mirror, branch and commit. */
  readonly fetches: SingleFlight<string>;
  /** Bounds how many git programs work at the same time. */
  readonly work: Semaphore;
  close(): Promise<void>;
}

export async function openWorkshop(options: ResolvedOptions, closing: AbortSignal): Promise<Workshop> {
  closing.throwIfAborted();
  const folders = await openFolders(options.root);
  await access(options.root, constants.R_OK | constants.W_OK | constants.X_OK);
  const holds = createHolds(folders);
  const git = createGit(options.gitBinary, 'git');
  const leases = await createLeases(folders, options.limitBytes, async (mirror, inUse) => {
    await holds.trim(mirror);
    if (!inUse) await tidy(git, mirror, closing);
  });
  const fetches = createSingleFlight<string>();
  return {
    folders,
    leases,
    holds,
    fetches,
    work: createSemaphore(options.concurrency),
    async close() {
      await fetches.settled();
      await leases.settled();
      await folders.close();
    },
  };
}

/** The right to use a mirror, which stays while there is one. */
export interface Lease {
  readonly mirror: Mirror;
  /** One at a time for each mirror: for whoever works on it. */
  readonly turns: Semaphore;
  readonly release: () => void;
}

interface Leases {
  take(provider: string, repository: string): Lease;
  /** How many there are, and their bytes. */
  stock(): { readonly mirrors: number; readonly bytes: number };
  /** When all are released, and what follows that is done. */
  settled(): Promise<void>;
}

interface Known {
  readonly mirror: Mirror;
  readonly turns: Semaphore;
  users: number;
  bytes: number;
  usedAt: number;
}

/** `tidy` is called after each release, while nobody has a turn; it is told whether somebody still uses the mirror. */
async function createLeases(folders: Folders, limitBytes: number, tidy: (mirror: Mirror, inUse: boolean) => Promise<void>): Promise<Leases> {
  const known = new Map<string, Known>();
  const outstanding = new Set<Promise<void>>();
  const never = new AbortController().signal;
  for (const id of await readdir(folders.mirrors)) {
    const entry = newEntry(id);
    entry.bytes = await sizeOf(entry.mirror.folder);
    entry.usedAt = (await stat(entry.mirror.used).catch(() => null))?.mtimeMs ?? 0;
    known.set(id, entry);
  }
  follow(makeRoom());

  function newEntry(id: string): Known {
    return { mirror: mirrorIn(folders.mirrors, id), turns: createSemaphore(1), users: 0, bytes: 0, usedAt: 0 };
  }

  function follow(work: Promise<void>): void {
    // What can't be tidied is tidied another time; it is in nobody's way.
    const done = work.catch(() => undefined).finally(() => outstanding.delete(done));
    outstanding.add(done);
  }

  async function afterRelease(entry: Known): Promise<void> {
    await entry.turns.use(never, async () => {
      await tidy(entry.mirror, entry.users > 0);
      entry.bytes = await sizeOf(entry.mirror.folder);
    });
    const { id } = entry.mirror;
    if (entry.users === 0 && entry.bytes === 0 && known.get(id) === entry) known.delete(id);
    await makeRoom();
  }

  async function makeRoom(): Promise<void> {
    for (;;) {
      const idle = [...known].filter(([, { users }]) => users === 0).toSorted(([, a], [, b]) => a.usedAt - b.usedAt);
      const [oldest] = idle;
      if (oldest === undefined || total() <= limitBytes) return;
      const [id, entry] = oldest;
      await entry.turns.use(never, async () => {
        if (entry.users > 0) return;
        // Who comes while it goes away waits for the turn, and makes it anew.
        await folders.discard(entry.mirror.folder);
        entry.bytes = 0;
      });
      if (entry.users === 0) known.delete(id);
    }
  }

  const total = (): number => [...known.values()].reduce((sum, { bytes }) => sum + bytes, 0);

  return {
    take(provider, repository) {
      const id = mirrorId(provider, repository);
      const entry = known.get(id) ?? newEntry(id);
      known.set(id, entry);
      entry.users += 1;
      entry.usedAt = Date.now();
      const released = Promise.withResolvers<void>();
      follow(released.promise);
      let held = true;
      return {
        mirror: entry.mirror,
        turns: entry.turns,
        release() {
          if (!held) return;
          held = false;
          entry.users -= 1;
          follow(afterRelease(entry));
          released.resolve();
        },
      };
    },
    stock: () => ({ mirrors: known.size, bytes: total() }),
    async settled() {
      while (outstanding.size > 0) await Promise.all(outstanding);
    },
  };
}

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
async function openFolders(root: string): Promise<Folders> {
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

/** How many bytes the files below a folder have; 0 where there is none. What goes away meanwhile counts nothing. */
export async function sizeOf(folder: string): Promise<number> {
  const entries = await readdir(folder, { withFileTypes: true, recursive: true }).catch(() => []);
  let bytes = 0;
  for (const entry of entries) {
    if (entry.isFile()) bytes += (await stat(join(entry.parentPath, entry.name)).catch(() => null))?.size ?? 0;
  }
  return bytes;
}

const everyMs = 500;

/** A signal that fires when the other does, and, with a failure, when the repository's objects take more than the limit. */
export function watchSize(
  gitDir: string,
  limitBytes: number,
  failure: () => Error,
  signal: AbortSignal,
): { readonly signal: AbortSignal; readonly end: () => void } {
  const tooLarge = new AbortController();
  const look = async (): Promise<void> => {
    if ((await sizeOf(join(gitDir, 'objects'))) > limitBytes) tooLarge.abort(failure());
  };
  const timer = setInterval(() => void look(), everyMs);
  return { signal: AbortSignal.any([signal, tooLarge.signal]), end: () => clearInterval(timer) };
}
