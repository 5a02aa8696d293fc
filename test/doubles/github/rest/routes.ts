import type { PullRequests } from '../pull-requests.ts';
import type { HostedRepositories, HostedRepository } from '../../hosted-repositories.ts';
import { type DoubleRequest, type DoubleResponse, refusal } from '../request.ts';
import { compare, listCommits, readHead } from './commits.ts';
import { listContents, readBlob, readTree } from './objects.ts';
import type { Operation } from './openapi.ts';
import { createPull, listPulls, updatePull } from './pulls.ts';
import { listBranches, searchOperation, showRepository } from './repositories.ts';

export interface RouteContext {
  /** The URL of the API. */
  readonly url: string;
  readonly request: DoubleRequest;
  readonly repository: HostedRepository;
  readonly pullRequests: PullRequests;
  readonly hasCredential: boolean;
  /** The values of the rest of the path, decoded. */
  readonly rest: readonly string[];
  readonly treeLimit: number | null;
}

export interface Route {
  readonly operation: Operation;
  readonly answer: (context: RouteContext) => Promise<DoubleResponse>;
}

/** The routes, by the part of the path after the repository. */
const routes: readonly (readonly [begin: readonly string[], values: number, route: Route])[] = [
  [[], 0, showRepository],
  [['commits'], 0, listCommits],
  [['commits'], 1, readHead],
  [['git', 'trees'], 1, readTree],
  [['git', 'blobs'], 1, readBlob],
  [['compare'], 1, compare],
  [['branches'], 0, listBranches],
  [['pulls'], 0, listPulls],
  [['pulls'], 0, createPull],
  [['pulls'], 1, updatePull],
  [['contents'], Number.POSITIVE_INFINITY, listContents],
];

/** The operations that GitHub's description must contain. */
export const operations: readonly Operation[] = [...routes.map(([, , { operation }]) => operation), searchOperation];

export interface FoundRoute {
  readonly route: Route;
  readonly owner: string;
  readonly name: string;
  readonly rest: readonly string[];
}

/** Returns null if GitHub has no such route, or the double does not implement it. */
export function findRoute({ method, segments }: DoubleRequest): FoundRoute | null {
  const [collection, owner, name, ...path] = segments;
  if (collection !== 'repos' || owner === undefined || name === undefined) return null;
  for (const [begin, values, route] of routes) {
    const rest = path.slice(begin.length);
    const fits = route.operation.method === method.toLowerCase() && begin.every((segment, index) => path[index] === segment);
    if (fits && (values === Number.POSITIVE_INFINITY ? rest.length > 0 : rest.length === values)) return { route, owner, name, rest };
  }
  return null;
}

/** Without a credential, only public repositories are found. A renamed repository is a redirect. */
export function locate(
  repositories: HostedRepositories,
  { owner, name }: FoundRoute,
  { path, query }: DoubleRequest,
  url: string,
  hasCredential: boolean,
): HostedRepository | DoubleResponse {
  const found = repositories.find(`${owner}/${name}`);
  if (found === null || (found.repository.visibility === 'private' && !hasCredential)) return refusal(404, 'Not Found');
  if (!found.moved) return found.repository;
  const below = path.split('/').slice(4).map((segment) => `/${segment}`).join('');
  const search = query.size === 0 ? '' : `?${query.toString()}`;
  const location = `${url}/repositories/${found.repository.id}${below}${search}`;
  return { ...refusal(301, 'Moved Permanently'), headers: { location } };
}
