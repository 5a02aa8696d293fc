import { randomUUID } from 'node:crypto';
import { renameSync } from 'node:fs';
import { chmod, mkdir, readdir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { KeyedMutex } from '../../shared/keyed-mutex.ts';
import { makeProcessFolder, type ProcessFolder } from '../../shared/process-folder.ts';
import { createSemaphore, type Semaphore } from '../../shared/semaphore.ts';
import { createSingleFlight } from '../../shared/single-flight.ts';
import { ignoring } from '../../shared/system-errors.ts';
import type { ResolvedOptions } from './git-mirror.ts';
import { mirrorId, mirrorIn, repack, type Mirror } from './mirror-folder.ts';
import { createMirrorGit, writeCertificates } from './mirror-git.ts';

/** The right to use a mirror, which is not removed meanwhile. */
export interface MirrorLease {
  readonly mirror: Mirror;
  /** The folder of the export that is read. It is kept until the release. */
  exported: string | null;
  readonly release: () => void;
}

/** Creates the folder of all mirrors, for this user only, and begins to remove mirrors beyond the limit. */
export async function openMirrorStore(options: ResolvedOptions, closing: AbortSignal): Promise<MirrorStore> {
  closing.throwIfAborted();
  const { root } = options;
  const [mirrors, temporary] = [join(root, 'mirrors'), join(root, 'tmp')];
  await mkdir(root, { recursive: true, mode: 0o700 });
  await chmod(root, 0o700);
  await Promise.all([mirrors, temporary].map((path) => mkdir(path, { recursive: true, mode: 0o700 })));
  const own = await makeProcessFolder(temporary, '');
  const store = new MirrorStore(options, mirrors, own, closing);
  store.evictLater();
  await writeCertificates(root, store.temporary());
  return store;
}

/** The open folder of all mirrors, with the locks and limits of the work in it. */
export class MirrorStore {
  /** The fetches under way, by mirror, branch and commit. Each returns the commit that it exported. */
  readonly fetches = createSingleFlight<string>();
  /** Allows one task at a time on a mirror, by its id. */
  readonly mutex = new KeyedMutex();
  /** Limits how many git programs run at the same time. */
  readonly work: Semaphore;
  readonly #options: ResolvedOptions;
  readonly #mirrors: string;
  readonly #temporaryFolder: ProcessFolder;
  readonly #closing: AbortSignal;
  readonly #leases = new Set<MirrorLease>();
  readonly #pendingWork = new Set<Promise<void>>();
  /** The sizes of mirrors by id, since their last use: to measure one takes a request to the disk for each of its files. */
  readonly #sizes = new Map<string, Promise<number>>();
  /** The removal of mirrors that has not begun yet. */
  #nextEviction: Promise<void> | null = null;

  constructor(options: ResolvedOptions, mirrors: string, own: ProcessFolder, closing: AbortSignal) {
    this.work = createSemaphore(options.concurrency);
    this.#options = options;
    this.#mirrors = mirrors;
    this.#temporaryFolder = own;
    this.#closing = closing;
  }

  acquire(provider: string, repository: string): MirrorLease {
    const mirror = mirrorIn(this.#mirrors, mirrorId(provider, repository));
    const released = Promise.withResolvers<void>();
    this.#track(released.promise);
    const release = (): void => {
      if (!this.#leases.delete(lease)) return;
      this.#track(this.#afterRelease(mirror));
      released.resolve();
    };
    const lease: MirrorLease = { mirror, exported: null, release };
    this.#leases.add(lease);
    return lease;
  }

  /** Returns the mirrors on disk. The least recently used comes first. What a checkout under way adds does not count yet. */
  async list(): Promise<readonly { readonly mirror: Mirror; readonly bytes: number; readonly usedAt: number }[]> {
    const mirrors = (await readdir(this.#mirrors)).map((id) => mirrorIn(this.#mirrors, id));
    const listed = mirrors.map(async (mirror) => {
      const used = await stat(mirror.used).catch(() => null);
      return { mirror, bytes: await this.#sizeOf(mirror), usedAt: used?.mtimeMs ?? 0 };
    });
    return (await Promise.all(listed)).toSorted((a, b) => a.usedAt - b.usedAt);
  }

  #sizeOf({ id, folder }: Mirror): Promise<number> {
    const size = this.#sizes.get(id) ?? sizeOf(folder);
    this.#sizes.set(id, size);
    return size;
  }

  /** Returns a new path. Its content is removed when this process ends, unless it is moved. */
  temporary(): string {
    return join(this.#temporaryFolder.path, randomUUID());
  }

  /** Removes a folder in one step. A file that is being read at this moment can be read to its end. */
  async discard(path: string): Promise<void> {
    const trash = this.temporary();
    await rename(path, trash).catch(ignoring('ENOENT'));
    await rm(trash, { recursive: true, force: true });
  }

  evictLater(): void {
    this.#track(this.#evict());
  }

  /** Resolves when all leases are released and the work after them is done. */
  async close(): Promise<void> {
    await this.fetches.settled();
    while (this.#pendingWork.size > 0) await Promise.all(this.#pendingWork);
    await this.#temporaryFolder.remove();
  }

  #leasesOf({ id }: Mirror): MirrorLease[] {
    return [...this.#leases].filter(({ mirror }) => mirror.id === id);
  }

  #track(work: Promise<void>): void {
    // Errors are ignored, because the work is tried again after the next release.
    const done = work.catch(() => undefined).finally(() => this.#pendingWork.delete(done));
    this.#pendingWork.add(done);
  }

  async #afterRelease(mirror: Mirror): Promise<void> {
    await this.mutex.runExclusive(mirror.id, async () => {
      await this.#trimExports(mirror);
      if (this.#leasesOf(mirror).length > 0) return;
      await repack(createMirrorGit(this.#options.gitBinary, 'git'), mirror, this.#closing);
    }).finally(() => this.#sizes.delete(mirror.id));
    await this.#evict();
  }

  /** Removes the exports that nobody reads, except the latest, which the next checkout of the same commit uses. */
  async #trimExports(mirror: Mirror): Promise<void> {
    const { exports } = mirror;
    const paths = (await readdir(exports).catch(() => [])).map((name) => join(exports, name));
    const dated = await Promise.all(paths.map(async (path) => [path, (await stat(path).catch(() => null))?.mtimeMs ?? 0] as const));
    const [, ...older] = dated.toSorted(([, a], [, b]) => b - a);
    const trash = this.temporary();
    await mkdir(trash, { mode: 0o700 });
    // Synchronous, so that nobody can begin to read one between the check and the move.
    const read = new Set(this.#leasesOf(mirror).map(({ exported }) => exported));
    for (const [index, [path]] of older.entries()) if (!read.has(path)) renameSync(path, join(trash, String(index)));
    await rm(trash, { recursive: true, force: true });
  }

  /** Removes unused mirrors, the least recently used first, until the rest fits. */
  #evict(): Promise<void> {
    // No mirror has an empty id.
    return this.#nextEviction ??= this.mutex.runExclusive('', async () => {
      this.#nextEviction = null;
      const mirrors = await this.list();
      let total = mirrors.reduce((sum, { bytes }) => sum + bytes, 0);
      for (const { mirror, bytes } of mirrors) {
        if (total <= this.#options.limitBytes) return;
        await this.mutex.runExclusive(mirror.id, async () => {
          // A checkout that comes meanwhile waits until the mirror is removed, and makes it again.
          if (this.#leasesOf(mirror).length > 0) return;
          await this.discard(mirror.folder);
          this.#sizes.delete(mirror.id);
          total -= bytes;
        });
      }
    });
  }
}

/** Returns the largest size of a repository, which is kept twice: as it was fetched, and as it is exported. */
export function maxRepositoryBytes({ limitBytes }: Pick<ResolvedOptions, 'limitBytes'>): number {
  return Math.floor(limitBytes / 2);
}

/** Returns the size of all files below a folder, in bytes. 0 if there is none. Files that are removed meanwhile do not count. */
export async function sizeOf(folder: string): Promise<number> {
  const entries = await readdir(folder, { withFileTypes: true, recursive: true }).catch(() => []);
  let bytes = 0;
  for (const entry of entries) {
    if (entry.isFile()) bytes += (await stat(join(entry.parentPath, entry.name)).catch(() => null))?.size ?? 0;
  }
  return bytes;
}
