import { pageSize, type GitLabApi, type Page, type ProjectName } from './gitlab-api.ts';
import { failed, reasons } from './gitlab-failures.ts';
import type { Commit } from './gitlab-schemas.ts';

const maxPage = 2 ** 20;

/**
 * The committer date of the first commit that touches a path, in ms. One request, unless the path has so many commits
 * that they fill a page. Null if the host knows none, as for a path that is not UTF-8, which it lists by another name.
 */
export async function firstDate(api: GitLabApi, project: ProjectName, sha: string, path: string): Promise<number | null> {
  const read = (page: number): Promise<Page<Commit>> => api.history(project, { ref: sha, path, page });
  const first = await read(1);
  // An empty history is asked for twice: a file must not be left out because of a mistake that the host makes once.
  const newest = first.items.length === 0 ? await read(1) : first;
  const oldest = isLast(newest) ? newest : await lastPage(read, newest);
  return oldest.items.at(-1)?.committed_date ?? null;
}

function isLast({ items, next }: Page<Commit>): boolean {
  return next === null && items.length < pageSize;
}

/** GitLab does not say how many pages there are, so the number is doubled until a page is empty, and then the gap is halved. */
async function lastPage(read: (page: number) => Promise<Page<Commit>>, first: Page<Commit>): Promise<Page<Commit>> {
  let [found, at, beyond] = [first, 1, Number.POSITIVE_INFINITY];
  while (beyond - at > 1) {
    const middle = beyond === Number.POSITIVE_INFINITY ? at * 2 : Math.floor((at + beyond) / 2);
    if (middle > maxPage) throw failed(reasons.endlessHistory);
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
