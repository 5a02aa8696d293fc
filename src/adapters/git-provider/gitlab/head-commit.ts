import { parseRepositoryName } from '../../../domain/repository-name.ts';
import type { Head } from '../incremental-listing.ts';
import type { GitLabApi } from './gitlab-api.ts';
import { failed, notFound, reasons } from './gitlab-failures.ts';
import { isOfContent } from './gitlab-refusal.ts';
import type { HeadCommit } from './gitlab-schemas.ts';

/** Throws `repository_not_found` if no project can have the name. A project is always in a group or a user's space. */
export function checkName(repository: string): void {
  const parsed = parseRepositoryName(repository);
  if (!parsed.ok || parsed.segments.length < 2) throw notFound(repository);
}

/** One request; up to three for a repository that may be empty. Requests by the head's `id` are not redirected any more. */
export async function readHead(api: GitLabApi, repository: string): Promise<Head> {
  try {
    return await headOf(api, repository, await api.commit(repository, 'HEAD'));
  } catch (error) {
    if (!isOfContent(error)) throw error;
  }
  const { id, path, default_branch: branch, empty_repo: empty = false } = await api.project(repository);
  if (empty || branch === null || branch === undefined) return { id, name: path, commit: null, etag: null };
  return { id, name: path, commit: await branchHead(api, id, branch), etag: null };
}

async function branchHead(api: GitLabApi, project: number, branch: string): Promise<string | null> {
  try {
    return (await api.commit(project, branch)).id;
  } catch (error) {
    if (isOfContent(error)) return null;
    throw error;
  }
}

async function headOf(api: GitLabApi, repository: string, commit: HeadCommit): Promise<Head> {
  const name = projectNameIn(commit.web_url);
  if (commit.project_id !== undefined && name !== null) {
    return { id: commit.project_id, name, commit: commit.id, etag: null };
  }
  const { id, path } = await api.project(repository);
  return { id, name: path, commit: commit.id, etag: null };
}

/** The page of a commit is below that of its project: `.../group/name/-/commit/SHA`. */
function projectNameIn(url: string | undefined): string | null {
  const segment = /\/([^/?#]+)\/-\/commit\/[0-9a-f]+$/u.exec(url ?? '')?.[1];
  if (segment === undefined) return null;
  try {
    return decodeURIComponent(segment);
  } catch {
    throw failed(reasons.projectName);
  }
}
