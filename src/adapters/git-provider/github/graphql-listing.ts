import { isUtf8 } from 'node:buffer';
import { z } from 'zod';
import { Oid } from '../response-fields.ts';
import { prefixOf, type TreeFile } from '../incremental-listing.ts';
import { addFirstDates } from './commit-histories.ts';
import type { AskGraphql, GraphqlErrors, GraphqlQuery } from './github-api.ts';
import { failed, TooHeavy, notFound, parse, tooLarge } from './github-failures.ts';
import { fullName, parseName, type RepositoryName, type RepositorySource } from './github-listing.ts';
import type { ResolvedOptions } from './github-provider.ts';
import type { RestTrees } from './rest-listing.ts';

const GraphqlEntry = z.object({
  nameRaw: z.base64(),
  type: z.string(),
  mode: z.int(),
  oid: Oid,
  get object() {
    return z.object({ entries: z.array(GraphqlEntry).nullish() }).nullish();
  },
});
type GraphqlEntry = z.infer<typeof GraphqlEntry>;

/** An entry of a commit's tree. If it is not a directory, `object` has no entries. */
const GraphqlDirectory = z.object({ oid: Oid, type: z.string(), object: z.object({ entries: z.array(GraphqlEntry).nullish() }).nullish() });

const GraphqlTree = z.object({ oid: Oid, entries: z.array(GraphqlEntry).nullish() });

const GraphqlRepository = z.object({
  repository: z
    .object({
      name: z.string().min(1),
      nameWithOwner: fullName,
      isArchived: z.boolean(),
      defaultBranchRef: z
        .object({
          name: z.string(),
          target: z.object({ oid: Oid, file: GraphqlDirectory.nullish(), tree: GraphqlTree.optional() }).nullable(),
          compare: z.object({ aheadBy: z.int(), baseTarget: z.object({ oid: Oid }) }).nullish(),
        })
        .nullable(),
    })
    .nullable(),
});
type GraphqlRepository = NonNullable<z.infer<typeof GraphqlRepository>['repository']>;

/** Levels of directories that one query lists. Deeper levels take another request. */
const levels = 8;

/**
 * Builds the query for a repository, its head and the directory. All data is from one commit, even if somebody pushes meanwhile.
 * A `directory` of null asks for no tree, an empty one for the root.
 */
function repositoryQuery(
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
      name nameWithOwner isArchived
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

/** Reads repositories by GraphQL: one request for the directory, and one for the dates of each hundred files. */
export function createGraphqlListing(askGraphql: AskGraphql, trees: RestTrees, { maxFiles }: ResolvedOptions): RepositorySource {
  async function ask(repository: string, query: GraphqlQuery, signal: AbortSignal): Promise<GraphqlRepository> {
    const { data, errors } = await askGraphql(query, signal);
    if (errors.some((error) => !isNotFoundError(error))) throw failed('it refused a query');
    const isKnown = !(data === null && errors.length > 0);
    const found = isKnown ? parse(GraphqlRepository, data, query.what).repository : null;
    if (found === null) throw notFound(repository);
    return found;
  }

  /** If the tree takes the host too long, asks again without the tree. */
  async function askWithTree(repository: string, directory: string, earlier: string | null, signal: AbortSignal) {
    const name = parseName(repository);
    try {
      return await ask(repository, repositoryQuery(name, directory, earlier, levels), signal);
    } catch (error) {
      if (!(error instanceof TooHeavy)) throw error;
      return await ask(repository, repositoryQuery(name, directory, earlier, 0), signal);
    }
  }

  async function filesOf(found: GraphqlRepository, directory: string, signal: AbortSignal): Promise<readonly TreeFile[]> {
    const root = rootOf(found, directory);
    if (root === null) return [];
    const files = collectFiles(root.entries, prefixOf(directory));
    if (files === null) return await trees.files(parseName(found.nameWithOwner), root.oid, directory, signal);
    if (files.length > maxFiles) throw tooLarge(`${maxFiles} files`);
    return files;
  }

  return {
    async find(repository, signal) {
      const query = repositoryQuery(parseName(repository), null, null, 0);
      const { nameWithOwner: path, defaultBranchRef: branch, isArchived } = await ask(repository, query, signal);
      return { path, defaultBranch: branch?.name ?? null, ...(isArchived && { isArchived }) };
    },
    async open({ repository, directoryOf, earlier }, signal) {
      const expected = directoryOf(parseName(repository).repo);
      let found = await askWithTree(repository, expected, earlier, signal);
      const directory = directoryOf(found.name);
      if (directory !== expected) found = await askWithTree(found.nameWithOwner, directory, earlier, signal);
      const { name, nameWithOwner: id, defaultBranchRef: branch } = found;
      const commit = branch?.target?.oid ?? null;
      const descends = branch?.compare?.aheadBy === 0 && branch.compare.baseTarget.oid === commit;
      const files = await filesOf(found, directory, signal);
      return { head: { id, name, commit, etag: null }, directory, files, descends: async () => descends };
    },
    addDates: (path, commit, paths, dates, signal) =>
      addFirstDates(askGraphql, { repository: parseName(path), commit, paths, signal }, dates),
  };
}

interface Root {
  readonly oid: string;
  readonly entries: readonly GraphqlEntry[] | null;
}

/** Null if the path is missing, or is not a directory. */
function rootOf({ defaultBranchRef }: GraphqlRepository, directory: string): Root | null {
  const target = defaultBranchRef?.target;
  if (directory === '') return target?.tree === undefined ? null : { oid: target.tree.oid, entries: target.tree.entries ?? null };
  if (target?.file?.type !== 'tree') return null;
  return { oid: target.file.oid, entries: target.file.object?.entries ?? null };
}

/** Returns true for a missing repository, directory or commit to compare with. The host reports each as null and as an error. */
function isNotFoundError({ type, path = [] }: GraphqlErrors[number]): boolean {
  const last = path.at(-1);
  return last === 'compare' || (type === 'NOT_FOUND' && (last === 'repository' || last === 'file'));
}

const typeMask = 0o170_000;
const regularType = 0o100_000;

/** Returns the regular files at any depth whose names are UTF-8. Null if the host left out the entries of a directory. */
function collectFiles(entries: readonly GraphqlEntry[] | null | undefined, prefix: string): TreeFile[] | null {
  if (entries === null || entries === undefined) return null;
  const files: TreeFile[] = [];
  for (const { nameRaw, type, mode, oid, object } of entries) {
    const bytes = Buffer.from(nameRaw, 'base64');
    if (!isUtf8(bytes)) continue;
    const path = prefix + bytes.toString('utf8');
    if (type === 'blob' && (mode & typeMask) === regularType) files.push({ path, blobId: oid });
    const below = type === 'tree' ? collectFiles(object?.entries, `${path}/`) : [];
    if (below === null) return null;
    files.push(...below);
  }
  return files;
}
