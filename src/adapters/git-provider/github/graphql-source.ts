import { failed, isTooHeavy, notFound, tooLarge } from './failures.ts';
import { collectEntries } from './entries.ts';
import type { Graphql, GraphqlQuery } from './graphql.ts';
import { createHistories } from './histories.ts';
import { parseName } from './name.ts';
import { parseValue } from './parse.ts';
import { levels, repositoryQuery } from './queries.ts';
import { prefixOf, type RestTrees } from './rest-tree.ts';
import { GraphqlRepository, type GraphqlErrors } from './schema.ts';
import type { OpenRequest, Opened, Source, TreeFile } from './source.ts';

export interface GraphqlSourceOptions {
  readonly concurrency: number;
  readonly maxFiles: number;
}

/** Reads repositories by GraphQL, in a number of requests that does not grow with the number of files, but by hundreds. */
export function createGraphqlSource(graphql: Graphql, trees: RestTrees, options: GraphqlSourceOptions): Source {
  const histories = createHistories(graphql, options.concurrency);

  async function ask(repository: string, query: GraphqlQuery, signal: AbortSignal): Promise<GraphqlRepository> {
    const { data, errors } = await graphql.ask(query, signal);
    if (errors.some((error) => !isAbsence(error))) throw failed('it refused a query');
    const isKnown = !(data === null && errors.length > 0);
    const found = isKnown ? parseValue(GraphqlRepository, data, query.what).repository : null;
    if (found === null) throw notFound(repository);
    return found;
  }

  /** Where the host can't tell the tree in time, it is asked for the rest alone. */
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
    async open({ repository, directoryOf, earlier }: OpenRequest, signal): Promise<Opened> {
      const expected = directoryOf(parseName(repository).name);
      let found = await askWithTree(repository, expected, earlier, signal);
      const directory = directoryOf(found.name);
      if (directory !== expected) found = await askWithTree(found.nameWithOwner, directory, earlier, signal);
      const { name, nameWithOwner: path, defaultBranchRef: branch } = found;
      const head = branch?.target?.oid ?? null;
      const descends = branch?.compare?.aheadBy === 0 && branch.compare.baseTarget.oid === head;
      const files = await filesOf(found, directory, signal);
      return { path, name, head, directory, files, descends: async () => descends };
    },
    datesOf: ({ path, head, files }, signal) => histories.datesOf(parseName(path), head, files, signal),
  };
}

interface Root {
  readonly oid: string;
  /** Null where they were not told. */
  readonly entries: NonNullable<Parameters<typeof collectEntries>[0]> | null;
}

/** Null where the directory is missing, or no directory. */
function rootOf({ defaultBranchRef }: GraphqlRepository, directory: string): Root | null {
  const target = defaultBranchRef?.target;
  if (directory === '') return target?.tree === undefined ? null : { oid: target.tree.oid, entries: target.tree.entries ?? null };
  if (target?.file?.type !== 'tree') return null;
  return { oid: target.file.oid, entries: target.file.object?.entries ?? null };
}

/** No repository, no directory, or no commit to compare with: each is told by a null, and by an error besides. */
function isAbsence({ type, path = [] }: GraphqlErrors[number]): boolean {
  const last = path.at(-1);
  return last === 'compare' || (type === 'NOT_FOUND' && (last === 'repository' || last === 'file'));
}
