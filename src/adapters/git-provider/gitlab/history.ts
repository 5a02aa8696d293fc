import { pageSize, type Api, type ProjectName } from './api.ts';
import { failed } from './failures.ts';
import type { Page } from './page.ts';
import type { Commit } from './schema.ts';

const maxPage = 2 ** 20;

/**
 * The committer date of the first commit that touches a path, in ms: one request, unless the path has as many commits
 * as go into a page. Null where the host knows of none, as for a path that is not UTF-8, which it lists by another name.
 */
export async function firstDate(api: Api, project: ProjectName, sha: string, path: string): Promise<number | null> {
  const read = (page: number): Promise<Page<Commit>> => api.history(project, { ref: sha, path, page });
  const first = await read(1);
  // No history at all is asked for twice: a file of which the list is silent should not be one that the host stumbled over.
  const newest = first.items.length === 0 ? await read(1) : first;
  const oldest = isLast(newest) ? newest : await lastPage(read, newest);
  return oldest.items.at(-1)?.committed_date ?? null;
}

function isLast({ items, next }: Page<Commit>): boolean {
  return next === null && items.length < pageSize;
}

/**
 * The last page that holds something. Pages are numbered, and there is no telling how many there are, so that the number
 * is doubled until there is nothing, and then the gap is halved.
 */
async function lastPage(read: (page: number) => Promise<Page<Commit>>, first: Page<Commit>): Promise<Page<Commit>> {
  let [found, at, beyond] = [first, 1, Number.POSITIVE_INFINITY];
  while (beyond - at > 1) {
    const middle = beyond === Number.POSITIVE_INFINITY ? at * 2 : Math.floor((at + beyond) / 2);
    if (middle > maxPage) throw failed('the history of a file has no end');
    const page = await read(middle);
    if (page.items.length === 0) {
      beyond = middle;
    } else {
      [found, at] = [page, middle];
      if (isLast(page)) return found;
    }
  }
  return found;
}
