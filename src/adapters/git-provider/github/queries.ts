import type { GraphqlQuery } from './graphql.ts';
import type { RepositoryName } from './name.ts';

/** Directories that are listed by one query. What lies deeper takes another request. */
export const levels = 8;

/**
 * Asks for a repository, its head and what the directory holds there. All of it hangs on one commit, so that a push in
 * the same moment can't mix two.
 */
export function repositoryQuery(
  { owner, name }: RepositoryName,
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

/** One history to ask for. */
export interface HistoryPage {
  readonly path: string;
  readonly first: number;
  /** A cursor, or null for the newest commits. */
  readonly after: string | null;
}

/** Asks for pages of the histories of paths, which `pageAlias` names. */
export function historiesQuery({ owner, name }: RepositoryName, head: string, pages: readonly HistoryPage[]): GraphqlQuery {
  const variables: Record<string, unknown> = { owner, name, head };
  const declarations = ['$owner: String!', '$name: String!', '$head: GitObjectID!'];
  const selections = pages.map(({ path, first, after }, index) => {
    variables[`p${index}`] = path;
    declarations.push(`$p${index}: String!`);
    if (after === null) return `${pageAlias(index)}: history(path: $p${index}, first: ${first}) { ...page }`;
    variables[`c${index}`] = after;
    declarations.push(`$c${index}: String!`);
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
