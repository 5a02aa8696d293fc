import { isUtf8 } from 'node:buffer';
import { prefixOf, type TreeFile } from '../incremental-listing.ts';
import { addFirstDates } from './commit-histories.ts';
import { failed, isTooHeavy, notFound, parseValue, reasons, tooLarge } from './github-failures.ts';
import { parseName, type RepositorySource } from './github-listing.ts';
import type { ResolvedOptions } from './github-options.ts';
import { type GraphqlEntry, type GraphqlErrors, GraphqlRepository } from './github-schemas.ts';
import { type AskGraphql, type GraphqlQuery, levels, repositoryQuery } from './graphql-queries.ts';
import type { RestTrees } from './rest-listing.ts';

type GraphqlOptions = Pick<ResolvedOptions, 'concurrency' | 'maxFiles'>;

/** Reads repositories by GraphQL: one request for the directory, and one for the dates of each hundred files. */
export function createGraphqlListing(askGraphql: AskGraphql, trees: RestTrees, options: GraphqlOptions): RepositorySource {
  async function ask(repository: string, query: GraphqlQuery, signal: AbortSignal): Promise<GraphqlRepository> {
    const { data, errors } = await askGraphql(query, signal);
    if (errors.some((error) => !isAbsence(error))) throw failed(reasons.queryRefused);
    const isKnown = !(data === null && errors.length > 0);
    const found = isKnown ? parseValue(GraphqlRepository, data, query.what).repository : null;
    if (found === null) throw notFound(repository);
    return found;
  }

  /** If the tree takes the host too long, it is asked for the rest alone. */
  async function askWithTree(repository: string, directory: string, earlier: string | null, signal: AbortSignal) {
    const name = parseName(repository);
    try {
      return await ask(repository, repositoryQuery(name, directory, earlier, levels), signal);
    } catch (error) {
      if (!isTooHeavy(error)) throw error;
      return await ask(repository, repositoryQuery(name, directory, earlier, 0), signal);
    }
  }

  async function filesOf(found: GraphqlRepository, directory: string, signal: AbortSignal): Promise<readonly TreeFile[]> {
    const root = rootOf(found, directory);
    if (root === null) return [];
    const { files, incomplete } = collectEntries(root.entries ?? [], prefixOf(directory));
    if (files.length > options.maxFiles) throw tooLarge(`${options.maxFiles} files`);
    if (root.entries !== null && !incomplete) return files;
    return await trees.files(parseName(found.nameWithOwner), root.oid, directory, signal);
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
    async addDates(path, commit, paths, dates, signal) {
      const { concurrency } = options;
      await addFirstDates(askGraphql, { repository: parseName(path), commit, paths, concurrency, signal }, dates);
    },
  };
}

interface Root {
  readonly oid: string;
  /** Null if the host left them out. */
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

interface Collected {
  readonly files: TreeFile[];
  /** The host left out the entries of a directory. */
  readonly incomplete: boolean;
}

const typeMask = 0o170_000;
const regularType = 0o100_000;

/** Collects the regular files at any depth. Skips names that are not UTF-8: nobody could ask for their history. */
function collectEntries(entries: readonly GraphqlEntry[], prefix: string): Collected {
  const files: TreeFile[] = [];
  let incomplete = false;
  for (const { nameRaw, type, mode, oid, object } of entries) {
    const bytes = Buffer.from(nameRaw, 'base64');
    if (!isUtf8(bytes)) continue;
    const path = prefix + bytes.toString('utf8');
    if (type === 'blob' && (mode & typeMask) === regularType) files.push({ path, mark: oid });
    if (type !== 'tree') continue;
    const below = object?.entries;
    if (below === undefined || below === null) {
      incomplete = true;
      continue;
    }
    const collected = collectEntries(below, `${path}/`);
    files.push(...collected.files);
    incomplete ||= collected.incomplete;
  }
  return { files, incomplete };
}
