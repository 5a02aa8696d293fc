import type { Branch, HostPage, HostPageRequest, SearchHit } from '../../../ports/git-provider.ts';
import { pageOfHost } from '../paging.ts';
import type { GitLabApi } from './gitlab-api.ts';
import { rethrowForbidden } from './gitlab-failures.ts';
import { requireProjectName } from './gitlab-listing.ts';

/** Makes one request. Searches the paths of all visible projects, or only of those that the credential's user is a member of. */
export async function searchGitLab(
  api: GitLabApi, text: string, onlyOfMember: boolean, page: HostPageRequest,
): Promise<HostPage<SearchHit>> {
  return await pageOfHost(page, async (number) => {
    const { items, next } = await api.search(text, onlyOfMember, number).catch(rethrowForbidden);
    return { items: items.map(({ path_with_namespace: path }) => ({ path })), hasNext: next !== null };
  });
}

/** Makes one request. The branches are sorted by name. */
export async function listGitLabBranches(api: GitLabApi, repository: string, page: HostPageRequest): Promise<HostPage<Branch>> {
  requireProjectName(repository);
  return await pageOfHost(page, async (number) => {
    const { items, next } = await api.branches(repository, number);
    return { items, hasNext: next !== null };
  });
}
