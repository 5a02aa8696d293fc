import { opendir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { isFailure } from '../../../domain/failure.ts';
import type { CheckResult } from '../../../ports/check-result.ts';
import type { DirectoryListing, FileQuery, GitProvider } from '../../../ports/git-provider.ts';
import { gitEnvironment, gitVersion } from '../../shared/git-process.ts';
import { realTimers, startTimeout, withTimeout } from '../../shared/timeout.ts';
import { exitFailure, failed, providerName, timedOut } from './failures.ts';
import { createStandIns } from './fetch-folders.ts';
import { readHead, readShallow } from './head.ts';
import { locate } from './repository-location.ts';
import { createSnapshots } from './snapshot-cache.ts';

export interface LocalGitOptions {
  /** The folder below which repositories are addressed. */
  readonly root: string;
  /** Limit of one listing, waiting for a slot included, in milliseconds. */
  readonly timeoutMs?: number;
  /** How many repositories are read by git at the same time. */
  readonly concurrency?: number;
  /** The git program: a name that is looked up on the PATH, or a path. */
  readonly gitBinary?: string;
  /** How many listings are remembered. */
  readonly cacheEntries?: number;
  /** How many paths the remembered listings hold together. */
  readonly cachePaths?: number;
  /** How many paths a directory may hold, those that its history has lost included. */
  readonly maxPaths?: number;
  /** How much one git process may write, in bytes. */
  readonly maxOutputBytes?: number;
  /** Where the private folders go that git runs in. */
  readonly temporaryFolder?: string;
}

export type ResolvedOptions = Required<LocalGitOptions>;

function resolveOptions(options: LocalGitOptions): ResolvedOptions {
  return {
    timeoutMs: 30_000,
    concurrency: 4,
    gitBinary: 'git',
    cacheEntries: 256,
    cachePaths: 500_000,
    maxPaths: 100_000,
    maxOutputBytes: 64 * 1024 * 1024,
    temporaryFolder: tmpdir(),
    ...options,
  };
}

/**
 * Serves the repositories below a folder, with the plumbing of the git program. A repository is hostile input: its
 * configuration, hooks and attributes are never read, and no link or name leads out of the folder.
 */
export function createLocalGitProvider(options: LocalGitOptions): GitProvider {
  const resolved = resolveOptions(options);
  const { root, timeoutMs } = resolved;
  const closing = new AbortController();
  const snapshots = createSnapshots(resolved, closing.signal);
  const standIns = createStandIns(resolved.temporaryFolder);

  function limited<T>(signal: AbortSignal | undefined, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    return withTimeout(startTimeout(realTimers, timeoutMs, () => timedOut(timeoutMs), [signal, closing.signal]), work);
  }

  async function list(repository: string, query: FileQuery, signal: AbortSignal): Promise<DirectoryListing> {
    const found = await locate(root, repository);
    const directory = query.directory(found.name);
    const [{ oid }, shallow] = await Promise.all([readHead(found), readShallow(found)]);
    if (oid === null) return { directory, files: [] };
    const { files } = await snapshots.at({ repository: found, directory, oid, shallow }, signal);
    const from = directory === '' ? 0 : directory.length + 1;
    return { directory, files: files.filter(({ path }) => query.accepts(path.slice(from))) };
  }

  return {
    name: providerName,
    family: 'other',
    hosts: ['localhost'],
    listFiles: (repository, query, signal) => limited(signal, (either) => list(repository, query, either)),
    find: (repository, signal) =>
      limited(signal, async () => {
        const found = await locate(root, repository);
        return { path: found.path, defaultBranch: (await readHead(found)).branch };
      }),
    remote: (repository, signal) =>
      limited(signal, async (either) => ({ url: await standIns.of(await locate(root, repository), either), authorization: null })),
    check: async () => {
      try {
        return await limited(undefined, (signal) => checkLocalGit(resolved, signal));
      } catch (error) {
        return { ok: false, detail: error instanceof Error ? error.message : 'the check failed' };
      }
    },
    async close() {
      closing.abort(failed('the provider is closed'));
      await snapshots.settled();
      await standIns.remove();
    },
  };
}

/** Is git there, and can the root be read? */
async function checkLocalGit(options: ResolvedOptions, signal: AbortSignal): Promise<CheckResult> {
  try {
    const version = await versionOf(options, signal);
    await (await opendir(options.root)).close();
    return { ok: true, detail: `git ${version}; the root folder can be read` };
  } catch (error) {
    if (isFailure(error)) return { ok: false, detail: error.message };
    return { ok: false, detail: 'the root folder does not exist or can not be read; create it, or configure another' };
  }
}

async function versionOf({ gitBinary }: ResolvedOptions, signal: AbortSignal): Promise<string> {
  const command = { binary: gitBinary, folder: tmpdir(), environment: gitEnvironment({}), failed };
  const { version, exit } = await gitVersion(command, signal);
  const failure = exitFailure(exit);
  if (failure !== null) throw failure;
  return version ?? 'of an unknown version';
}
