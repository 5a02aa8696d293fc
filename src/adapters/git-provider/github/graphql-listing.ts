import { isUtf8 } from 'node:buffer';
import { prefixOf, type TreeFile } from '../incremental-listing.ts';
import { addFirstDates } from './commit-histories.ts';
import { failed, TooHeavy, notFound, parse, tooLarge } from './github-failures.ts';
import { parseName, type RepositorySource } from './github-listing.ts';
import type { ResolvedOptions } from './github-provider.ts';
import { type GraphqlEntry, type GraphqlErrors, GraphqlRepository } from './github-schemas.ts';
import { type AskGraphql, type GraphqlQuery, levels, repositoryQuery } from './graphql-queries.ts';
import type { RestTrees } from './rest-listing.ts';

/** Reads repositories by GraphQL: one request for the directory, and one for the dates of each hundred files. */
export function createGraphqlListing(askGraphql: AskGraphql, trees: RestTrees, { maxFiles }: ResolvedOptions): RepositorySource {
  async function ask(repository: string, query: GraphqlQuery, signal: AbortSignal): Promise<GraphqlRepository> {
    const { data, errors } = await askGraphql(query, signal);
    if (errors.some((error) => !isAbsence(error))) throw failed('it refused a query');
    const isKnown = !(data === null && errors.length > 0);
    const found = isKnown ? parse(GraphqlRepository, data, query.what).repository : null;
    if (found === null) throw notFound(repository);
    return found;
  }

  /** If the tree takes the host too long, it is asked for the rest alone. */
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
      const found = await ask(repository, repositoryQuery(parseName(repository), null, null, 0), signal);
      return { path: found.nameWithOwner, defaultBranch: found.defaultBranchRef?.name ?? null };
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

/** Null if the directory is missing, or no directory. */
function rootOf({ defaultBranchRef }: GraphqlRepository, directory: string): Root | null {
  const target = defaultBranchRef?.target;
  if (directory === '') return target?.tree === undefined ? null : { oid: target.tree.oid, entries: target.tree.entries ?? null };
  if (target?.file?.type !== 'tree') return null;
  return { oid: target.file.oid, entries: target.file.object?.entries ?? null };
}

/** No repository, no directory, or no commit to compare with: the host reports each as null, and as an error besides. */
function isAbsence({ type, path = [] }: GraphqlErrors[number]): boolean {
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
    if (type === 'blob' && (mode & typeMask) === regularType) files.push({ path, blobId: oid, mode: null });
    const below = type === 'tree' ? collectFiles(object?.entries, `${path}/`) : [];
    if (below === null) return null;
    files.push(...below);
  }
  return files;
}
