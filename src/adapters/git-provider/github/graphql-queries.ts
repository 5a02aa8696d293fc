import { jsonOrNull } from '../http-client.ts';
import type { GitHubApi } from './github-api.ts';
import { parse, TooHeavy, unauthorized } from './github-failures.ts';
import { GraphqlAnswer, type GraphqlErrors } from './github-schemas.ts';
import type { RepositoryName } from './github-listing.ts';

export interface GraphqlQuery {
  readonly text: string;
  /** Whatever comes from outside goes in here, never into the text. */
  readonly variables: Readonly<Record<string, unknown>>;
  /** What the answer is about, for a failure. */
  readonly what: string;
}

export type AskGraphql = ReturnType<typeof createAskGraphql>;

const rateLimitTypes: ReadonlySet<string | undefined> = new Set(['RATE_LIMITED', 'RATE_LIMIT']);
const heavyTypes: ReadonlySet<string | undefined> = new Set(['RESOURCE_LIMITS_EXCEEDED', 'MAX_NODE_LIMIT_EXCEEDED']);
const forbiddenTypes: ReadonlySet<string | undefined> = new Set(['FORBIDDEN', 'INSUFFICIENT_SCOPES']);

/** The caller has to make sense of the errors in the result. Throws a {@link TooHeavy} if a smaller query may do. */
export function createAskGraphql(api: GitHubApi, url: string) {
  return async ({ text, variables, what }: GraphqlQuery, signal: AbortSignal): Promise<{ data: unknown; errors: GraphqlErrors }> => {
    const parameters = { query: text, variables };
    const response = await api.send({ route: `POST ${url}`, parameters, divisible: true }, signal);
    const { data, errors = [] } = parse(GraphqlAnswer, jsonOrNull(response.text), what);
    if (errors.some(({ type }) => rateLimitTypes.has(type))) throw api.rateLimited(response);
    if (errors.some(({ type, message }) => heavyTypes.has(type) || gaveUp(type, message))) throw new TooHeavy();
    if (errors.some(({ type }) => forbiddenTypes.has(type))) throw unauthorized();
    return { data, errors };
  };
}

/** GitHub says so of a query that it has worked at for too long, and gives the error no type. */
function gaveUp(type: string | undefined, message: string): boolean {
  return type === undefined && /something went wrong|timed? ?out|couldn't respond/iu.test(message);
}

/** Directories that one query lists. What lies deeper takes another request. */
export const levels = 8;

/** Reads a repository, its head and the directory there. All of it is of one commit, also if somebody pushes meanwhile. */
export function repositoryQuery(
  { owner, repo: name }: RepositoryName,
  directory: string | null,
  earlier: string | null,
  depth: number,
): GraphqlQuery {
  const named = directory === null || directory === '' ? {} : { directory };
  const variables = { owner, name, ...named, ...(earlier === null ? {} : { earlier }) };
  const declarations = Object.keys(variables).map((variable) => `$${variable}: String!`);
  const comparison = earlier === null ? '' : 'compare(headRef: $earlier) { aheadBy baseTarget { oid } }';
  const text = `query(${declarations.join(', ')}) {
    repository(owner: $owner, name: $name) {
      name nameWithOwner
      defaultBranchRef { name ${comparison} target { oid ... on Commit { ${treeSelection(directory, depth)} } } }
    }
  }`;
  return { text, variables, what: 'the repository' };
}

function treeSelection(directory: string | null, depth: number): string {
  if (directory === null) return 'oid';
  if (directory === '') return `tree { oid ${entriesSelection(depth)} }`;
  return `file(path: $directory) { oid type object { ... on Tree { ${entriesSelection(depth)} } } }`;
}

function entriesSelection(depth: number): string {
  if (depth === 0) return 'oid';
  const below = depth === 1 ? '' : `object { ... on Tree { ${entriesSelection(depth - 1)} } }`;
  return `entries { nameRaw type mode oid ${below} }`;
}

export interface HistoryPage {
  readonly path: string;
  readonly first: number;
  /** A cursor, or null for the newest commits. */
  readonly after: string | null;
}

/** Reads pages of histories. In the answer, `pageAlias` is the name of each. */
export function historiesQuery({ owner, repo: name }: RepositoryName, head: string, pages: readonly HistoryPage[]): GraphqlQuery {
  const variables: Record<string, unknown> = { owner, name, head };
  const declarations = ['$owner: String!', '$name: String!', '$head: GitObjectID!'];
  const selections = pages.map(({ path, first, after }, index) => {
    Object.assign(variables, { [`p${index}`]: path, [`c${index}`]: after });
    declarations.push(`$p${index}: String!`, `$c${index}: String`);
    return `${pageAlias(index)}: history(path: $p${index}, first: ${first}, after: $c${index}) { ...page }`;
  });
  const text = `query(${declarations.join(', ')}) {
    repository(owner: $owner, name: $name) { object(oid: $head) { ... on Commit { ${selections.join('\n')} } } }
  }
  fragment page on CommitHistoryConnection { totalCount nodes { committedDate } pageInfo { hasNextPage endCursor } }`;
  return { text, variables, what: 'the history' };
}

export function pageAlias(index: number): string {
  return `h${index}`;
}
