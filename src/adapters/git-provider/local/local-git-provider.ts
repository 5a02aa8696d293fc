import { opendir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { Failure, isFailure } from '../../../domain/failure.ts';
import type { CheckResult } from '../../../ports/check-result.ts';
import type { DirectoryListing, FileContentId, FileQuery, GitProvider } from '../../../ports/git-provider.ts';
import { checkGit, createGitRunner, type GitRunner, oidForm } from '../../shared/git-process.ts';
import { createSemaphore } from '../../shared/semaphore.ts';
import { createSingleFlight } from '../../shared/single-flight.ts';
import { errorCode } from '../../shared/system-errors.ts';
import { sentenceOfFailure } from '../../shared/failure-sentences.ts';
import { createTimeLimit, realTimers } from '../../shared/timeout.ts';
import { requireSuccess, failed, failures, providerName, tooLarge } from './local-git-failures.ts';
import { readHead, readShallow } from './repository-head.ts';
import { createFetchFolders, type ObjectsRequest, type ReadObjects, readObjects } from './private-git-folders.ts';
import { listLocalBranches, searchLocal } from './repositories-and-branches.ts';
import { findRepository, type ServedFolder } from './repository-folder.ts';
import { createSnapshotCache } from './directory-snapshot-cache.ts';

export interface LocalGitOptions extends ServedFolder {
  /** The time limit of one listing, including the wait for other listings, in milliseconds. */
  readonly timeoutMs?: number;
  /** How many repositories git reads at the same time. */
  readonly concurrency?: number;
  /** The git program: a name that is looked up on the PATH, or a path. */
  readonly gitBinary?: string;
  /** How many listings are cached. 0 counts as 1. */
  readonly cacheEntries?: number;
  /** How many paths the cached listings hold together. 0 counts as 1. */
  readonly cachePaths?: number;
  /** How many paths a directory may hold, including the paths that were removed in its history. */
  readonly maxPaths?: number;
  /** How much one git process may write, in bytes. */
  readonly maxOutputBytes?: number;
  /** Where the private git folders are made. */
  readonly temporaryFolder?: string;
}

export type ResolvedOptions = Required<Omit<LocalGitOptions, 'gitBinary'>> & { readonly git: GitRunner };

const defaults = {
  timeoutMs: 30_000,
  concurrency: 4,
  cacheEntries: 256,
  cachePaths: 500_000,
  maxPaths: 100_000,
  maxOutputBytes: 64 * 1024 * 1024,
  excludedFolders: [],
};

/** A repository is not trusted: its configuration, hooks and attributes are never read, and no link or name leads out of the root. */
export function createLocalGitProvider({ gitBinary: binary = 'git', ...options }: LocalGitOptions): GitProvider {
  const resolved = { ...defaults, temporaryFolder: tmpdir(), ...options, git: createGitRunner({ binary, provider: providerName }) };
  const limit = createTimeLimit(realTimers, resolved.timeoutMs, failures);
  const semaphore = createSemaphore(resolved.concurrency);
  const snapshots = createSnapshotCache(resolved, semaphore, limit.closing);
  const reads = createSingleFlight<Buffer | null>();
  const fetchFolders = createFetchFolders(resolved.temporaryFolder);
  const locate = (name: string) => findRepository(resolved, name);

  async function list(name: string, query: FileQuery, signal: AbortSignal): Promise<DirectoryListing> {
    const repository = await locate(name);
    const directory = query.directory(repository.name);
    const [{ oid }, shallow] = await Promise.all([readHead(repository), readShallow(repository)]);
    if (oid === null) return { directory, files: [] };
    const { files } = await snapshots.get({ repository, directory, oid, shallow }, signal);
    const from = directory === '' ? 0 : directory.length + 1;
    return { directory, files: files.filter(({ path }) => query.accepts(path.slice(from))) };
  }

  async function read(name: string, { path, blobId }: FileContentId, maxBytes: number, signal: AbortSignal): Promise<Buffer> {
    const repository = await locate(name);
    const key = JSON.stringify([repository.gitDir, blobId, maxBytes]);
    const readOnce = (unwanted: AbortSignal): Promise<Buffer | null> =>
      semaphore.use(unwanted, () => readBlob(resolved, { repository, oid: blobId, shallow: '' }, maxBytes, unwanted));
    const blob = oidForm.test(blobId) ? await reads.join(key, signal, readOnce) : null;
    if (blob === null) throw new Failure('file_not_found', { path });
    return blob;
  }

  const run = <T>(signal: AbortSignal | undefined, work: (signal: AbortSignal) => Promise<T>): Promise<T> =>
    withFailures(signal, limit.run(signal, work));

  return {
    name: providerName,
    family: 'other',
    hosts: ['localhost'],
    listFiles: (name, query, signal) => run(signal, (either) => list(name, query, either)),
    readFile: (name, file, maxBytes, signal) => run(signal, (either) => read(name, file, maxBytes, either)),
    find: (name, signal) =>
      run(signal, async () => {
        const repository = await locate(name);
        return { path: repository.path, defaultBranch: (await readHead(repository)).branch };
      }),
    remote: (name, signal) =>
      run(signal, async (either) => ({ url: await fetchFolders.get(await locate(name), either), authorization: null })),
    searchRepositories: (text, page, signal) => run(signal, (either) => searchLocal(resolved, text, page, either)),
    listBranches: (name, page, signal) =>
      run(signal, (either) =>
        semaphore.use(either, async () => {
          const folder = await fetchFolders.get(await locate(name), either);
          return await listLocalBranches(resolved, folder, page, either);
        })),
    check: () => limit.run(undefined, (signal) => check(resolved, signal)).catch(failedCheck),
    async close() {
      limit.close();
      await Promise.all([snapshots.settled(), reads.settled()]);
      await fetchFolders.remove();
    },
  };
}

/** What reads a repository turns errors of the system into failures itself, so those that are left are about the private git folders. */
async function withFailures<T>(signal: AbortSignal | undefined, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    signal?.throwIfAborted();
    throw isFailure(error) || errorCode(error) === undefined ? error : failed('the temporary folder can not be used', error);
  }
}

function failedCheck(error: unknown): CheckResult {
  const unreadable = 'the root folder does not exist or can not be read; create it, or configure another';
  return { ok: false, detail: isFailure(error) ? sentenceOfFailure(error) : unreadable };
}

async function check({ git, root }: ResolvedOptions, signal: AbortSignal): Promise<CheckResult> {
  const checked = await checkGit(git, tmpdir(), signal);
  await (await opendir(root)).close();
  return checked.ok ? { ok: true, detail: `${checked.detail}; the root folder can be read` } : checked;
}

/** Reads the content with the id `oid`. Null if the repository has no such content. */
async function readBlob(
  options: ResolvedOptions, request: ObjectsRequest, maxBytes: number, signal: AbortSignal,
): Promise<Buffer | null> {
  return await readObjects(options, request, signal, async (read, either) => {
    // The size is read first, because git loads a large object into memory before it writes the first byte.
    const size = await sizeOf(read, request.oid, either);
    if (size === null) return null;
    if (size > maxBytes) throw tooLarge(`${maxBytes} bytes in a file`);
    const chunks: Buffer[] = [];
    const command = { args: ['cat-file', 'blob', request.oid], maxOutputBytes: maxBytes };
    requireSuccess(await read(command, either, (chunk) => chunks.push(chunk)));
    return Buffer.concat(chunks);
  });
}

/** Returns the size in bytes. Null if the object does not exist, or is not a file's content. */
async function sizeOf(read: ReadObjects, oid: string, signal: AbortSignal): Promise<number | null> {
  const exit = await read({ args: ['cat-file', '--batch-check'], input: `${oid}\n` }, signal);
  requireSuccess(exit);
  // If git can't read an object, it reports the object as missing, with the cause on stderr.
  if (exit.stderr !== '') throw failed('objects of the repository are missing or corrupt', new Error(exit.stderr));
  const size = /^[0-9a-f]+ blob (\d+)\n$/u.exec(exit.stdout)?.[1];
  return size === undefined ? null : Number(size);
}
