import type { CachedFile, Head, ListingSource, OpenRequest, Opened, TreeFile } from '../incremental-listing.ts';
import type { GitHubApi } from './github-api.ts';
import { failed, reasons } from './github-failures.ts';
import { readHead } from './head-commit.ts';
import type { RepositorySource } from './repository-source.ts';

/** Lists directories of GitHub. While nothing has changed, that is one conditional request. */
export function createGitHubListing(api: GitHubApi, source: RepositorySource): ListingSource {
  return {
    async readHead(repository, last, signal) {
      if (last === null || isRenamed(repository, last)) return null;
      // The documented entity tag of a response that holds nothing but a commit's id.
      const etag = last.commit === null ? null : (last.etag ?? `"${last.commit}"`);
      const head = await readHead(api, repository, etag, signal);
      if (head.kind === 'same') return last;
      if (head.kind === 'empty') return { ...last, commit: null, etag: null };
      return head.kind === 'commit' && head.oid === last.commit ? { ...last, etag: head.etag } : null;
    },
    open: (request, signal) => open(source, request, signal),
    async addDates({ id }, commit, paths, dates, signal) {
      await source.addDates({ path: String(id), commit, files: paths }, dates, signal);
      if (paths.some((path) => !dates.has(path) && !isUnreadable(path))) throw failed(reasons.undatedFile);
    },
  };
}

/**
 * A file that has the same content as at an earlier commit has the same first commit, if the head descends from that
 * commit. If history was rewritten, all dates are asked for again.
 */
async function open(source: RepositorySource, request: OpenRequest, signal: AbortSignal): Promise<Opened> {
  const { earlier, cachedFiles } = request;
  const opened = await source.open(request, signal);
  const { head, directory, files } = opened;
  const undated = { head, directory, files: files.map((file) => ({ ...file, createdAt: null })) };
  if (head.commit === null) return undated;
  const known = await cachedFiles(head.commit, directory);
  if (known !== null) return { head, directory, files: inheritDates(files, known) };
  const before = earlier === null || earlier === head.commit ? null : await cachedFiles(earlier, directory);
  if (before === null) return undated;
  const dated = inheritDates(files, before);
  const isUseful = dated.some(({ createdAt }) => createdAt !== null);
  return isUseful && (await opened.descends(signal)) ? { head, directory, files: dated } : undated;
}

function inheritDates(files: readonly TreeFile[], before: readonly CachedFile[]): CachedFile[] {
  const byPath = new Map(before.map((file) => [file.path, file]));
  return files.map((file) => {
    const known = byPath.get(file.path);
    return { ...file, createdAt: known?.mark === file.mark ? known.createdAt : null };
  });
}

/** A repository that has another name can get yet another one while the head stays the same. */
function isRenamed(repository: string, { id }: Head): boolean {
  return repository.toLowerCase() !== String(id).toLowerCase();
}

/** The host replaces what is not UTF-8 in a path, so the history of such a path can't be asked for. */
function isUnreadable(path: string): boolean {
  return path.includes('\u{fffd}');
}
