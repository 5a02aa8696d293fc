import { isFailure } from '../../../domain/failure.ts';
import { sentenceOfFailure } from '../../shared/sentences.ts';
import type { DirectoryListing, FileQuery, GitProvider } from '../../../ports/git-provider.ts';
import { checkLocalGit } from './check.ts';
import { failed, providerName, timedOut } from './failures.ts';
import { readHead } from './head.ts';
import { locate } from './locate.ts';
import { resolveOptions, type LocalGitOptions } from './options.ts';
import { readShallow } from './shallow.ts';
import { createStandIns } from './stand-in.ts';
import { createSnapshots } from './snapshots.ts';
import { realTimers, startTimeout, withTimeout } from '../../shared/timeout.ts';

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
        return { ok: false, detail: isFailure(error) ? sentenceOfFailure(error) : 'the check failed' };
      }
    },
    async close() {
      closing.abort(failed({ code: 'closed' }));
      await snapshots.settled();
      await standIns.remove();
    },
  };
}
