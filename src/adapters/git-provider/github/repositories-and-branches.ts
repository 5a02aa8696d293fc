import { z } from 'zod';
import type { Branch, HostPage, HostPageRequest, SearchHit } from '../../../ports/git-provider.ts';
import { itemsPerHostPage, pageOfHost } from '../paging.ts';
import { linkIn, Oid } from '../response-fields.ts';
import type { GitHubApi } from './github-api.ts';
import { failed, notFound, parseResponse } from './github-failures.ts';
import { fullName, parseName } from './github-listing.ts';

const SearchResponse = z.object({
  total_count: z.int(),
  incomplete_results: z.boolean(),
  items: z.array(z.object({ full_name: fullName }).transform(({ full_name: path }) => ({ path }))),
});

const BranchesResponse = z.array(
  z.object({ name: z.string().min(1), commit: z.object({ sha: Oid }) }).transform(({ name, commit }) => ({ name, commit: commit.sha })),
);

/** GitHub returns at most this many results of a search. */
const maxFound = 1000;

/** Makes one request. Searches the names of all visible repositories, including public repositories of others. */
export async function searchGitHub(
  api: GitHubApi, query: string, page: HostPageRequest, signal: AbortSignal,
): Promise<HostPage<SearchHit>> {
  const q = searchQuery(query);
  if (q === null) return { items: [], next: null };
  return await pageOfHost(page, async (number) => {
    const parameters = { q, per_page: itemsPerHostPage, page: number };
    const call = { route: 'GET /search/repositories', parameters, resource: 'search', acceptedStatuses: [422] } as const;
    const { status, text } = await api.send(call, signal);
    // The owner does not exist, or is not visible.
    if (status === 422 && /cannot be searched/iu.test(text)) return { items: [], hasNext: false };
    const { total_count: total, incomplete_results: isCutOff, items } = parseResponse(SearchResponse, text, 'a search');
    if (isCutOff && items.length === 0) throw failed('its search took too long');
    return { items, hasNext: number * itemsPerHostPage < Math.min(total, maxFound) };
  });
}

/** Returns the query in GitHub's search syntax, with the name in quotes. Null if no repository can match. */
function searchQuery(query: string): string | null {
  const slash = query.lastIndexOf('/');
  const [owner, name] = [query.slice(0, Math.max(0, slash)), query.slice(slash + 1).trim()];
  if (/["\\]/u.test(name) || (slash !== -1 && !/^[\w-]+$/u.test(owner))) return null;
  const terms = [...(name === '' ? [] : [`"${name}"`, 'in:name']), ...(slash === -1 ? [] : [`user:${owner}`])];
  return terms.length === 0 ? null : [...terms, 'fork:true'].join(' ');
}

/** Makes one request. The branches have the order of GitHub, which does not document it. */
export async function listGitHubBranches(
  api: GitHubApi, repository: string, page: HostPageRequest, signal: AbortSignal,
): Promise<HostPage<Branch>> {
  return await pageOfHost(page, async (number) => {
    const route = 'GET /repos/{owner}/{repo}/branches';
    const parameters = { ...parseName(repository), per_page: itemsPerHostPage, page: number };
    const { status, headers, text } = await api.send({ route, parameters, acceptedStatuses: [404], follow: true }, signal);
    if (status === 404) throw notFound(repository);
    return { items: parseResponse(BranchesResponse, text, 'the branches'), hasNext: linkIn(headers, 'next') !== null };
  });
}
