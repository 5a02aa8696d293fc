/** Where a deployment of GitHub is found. */
export interface Endpoint {
  /** The URL of the REST API, without a slash at the end. */
  readonly rest: string;
  /** The URL of GraphQL, or its path below that of the REST API. */
  readonly graphql: string;
  /** The hosts that stand in front of a repository's name. */
  readonly hosts: readonly string[];
  /** Where the pages of repositories are, and git fetches them from, without a slash at the end. */
  readonly pages: string;
}

const enterprisePath = /\/api\/v3$/u;

/**
 * A GitHub Enterprise Server has the REST API at `/api/v3` and GraphQL at `/api/graphql`, on the host that people browse.
 * Elsewhere the API has a host of its own, `api.` in front of the other.
 */
export function endpointOf(url: string): Endpoint {
  const { host, protocol } = new URL(url);
  const pagesHost = host.replace(/^api\./u, '');
  const graphql = enterprisePath.test(url) ? url.replace(enterprisePath, '/api/graphql') : '/graphql';
  return { rest: url, graphql, hosts: [pagesHost], pages: `${protocol}//${pagesHost}` };
}
