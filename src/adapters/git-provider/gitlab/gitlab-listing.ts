import type { ListingSource } from '../incremental-listing.ts';
import { readSince } from './changes-since.ts';
import { firstDate } from './first-commit.ts';
import type { ApiFor } from './gitlab-api.ts';
import { readHead } from './head-commit.ts';

/** Lists directories of GitLab: the head, the pages of the tree, and a request for each file. */
export function createGitLabListing(apiFor: ApiFor, maxFiles: number): ListingSource {
  return {
    readHead: (repository, _, signal) => readHead(apiFor(signal), repository),
    async open({ repository, head: known, earlier, directoryOf, cachedFiles }, signal) {
      const api = apiFor(signal);
      const head = known ?? (await readHead(api, repository));
      const { id: project, commit: sha } = head;
      const directory = directoryOf(head.name);
      if (sha === null) return { head, directory, files: [] };
      const before = earlier === null ? null : await cachedFiles(earlier, directory);
      const snapshot = earlier === null || before === null ? null : { sha: earlier, files: before };
      return { head, directory, files: await readSince(api, { project, sha, directory, maxFiles }, snapshot) };
    },
    async addDates({ id: project }, commit, paths, dates, signal) {
      const failing = new AbortController();
      const api = apiFor(AbortSignal.any([signal, failing.signal]));
      const requests = paths.map(async (path) => {
        const date = await firstDate(api, project, commit, path);
        if (date !== null) dates.set(path, date);
      });
      try {
        await Promise.all(requests);
      } catch (error) {
        failing.abort(error);
        await Promise.allSettled(requests);
        throw error;
      }
    },
  };
}
