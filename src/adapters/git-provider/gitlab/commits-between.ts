import type { Api, HistoryQuery, ProjectName } from './api.ts';
import { Refusal } from './refusal.ts';
import type { Commit } from './schema.ts';

// What versions of GitLab answer where a commit of the range is gone.
const unknownCommit: ReadonlySet<number> = new Set([400, 404, 500]);

export interface Between {
  readonly project: ProjectName;
  readonly from: string;
  readonly to: string;
}

/**
 * The commits that lead from one commit to a later one along the first parents, the newest first. Null where they don't,
 * as after the history was rewritten, and where there are more than `maxPages` pages of them.
 */
export async function trunkBetween(api: Api, between: Between, maxPages: number): Promise<readonly Commit[] | null> {
  const commits = await readAll(api, between, {}, maxPages);
  if (commits === null || commits.length === 0) return null;
  let expected: string | undefined = between.to;
  for (const { id, parent_ids: parents } of commits) {
    if (id !== expected) return null;
    expected = parents[0];
  }
  return expected === between.from ? commits : null;
}

/** Those of them that change something below the directory, each compared with its first parent. */
export async function changesBetween(api: Api, between: Between, directory: string, maxPages: number): Promise<readonly Commit[] | null> {
  return await readAll(api, between, directory === '' ? {} : { path: directory }, maxPages);
}

async function readAll(
  api: Api,
  { project, from, to }: Between,
  query: Pick<HistoryQuery, 'path'>,
  maxPages: number,
): Promise<readonly Commit[] | null> {
  const commits: Commit[] = [];
  try {
    for (let page = 1; page <= maxPages; page += 1) {
      const { items, next } = await api.history(project, { ref: `${from}..${to}`, firstParent: true, page, ...query });
      commits.push(...items);
      if (next === null) return commits;
    }
  } catch (error) {
    if (!(error instanceof Refusal) || !unknownCommit.has(error.status)) throw error;
  }
  return null;
}
