import { GraphQLError } from 'graphql';
import { countsBetween, defaultBranch, resolve, type TreeEntry, treeOf, typeOf } from '../git.ts';
import type { HostedRepositories, HostedRepository } from '../../hosted-repositories.ts';
import { statusOf } from '../rest/commits.ts';
import { type GraphqlBehavior, type HistoryArguments, historyConnection } from './history.ts';

/** The root objects of queries. Their methods are called as fields. */
export function rootOf(repositories: HostedRepositories, behavior: GraphqlBehavior) {
  return {
    repository({ owner, name }: { readonly owner: string; readonly name: string }) {
      const found = repositories.find(`${owner}/${name}`);
      if (found === null) throw notFound(`Could not resolve to a Repository with the name '${owner}/${name}'.`);
      return repositoryObject(found.repository, behavior);
    },
  };
}

function notFound(message: string): GraphQLError {
  return new GraphQLError(message, { extensions: { type: 'NOT_FOUND' } });
}

function repositoryObject({ path, gitDir, archived = false }: HostedRepository, behavior: GraphqlBehavior) {
  return {
    name: path.slice(path.indexOf('/') + 1),
    nameWithOwner: path,
    isArchived: archived,
    async defaultBranchRef() {
      const branch = await defaultBranch(gitDir);
      if (branch === null) return null;
      return {
        name: branch.name,
        target: () => commitObject(gitDir, branch.oid, behavior),
        compare: ({ headRef }: { readonly headRef: string }) => comparison(gitDir, branch.oid, headRef),
      };
    },
    async object({ oid }: { readonly oid?: string }) {
      if (oid === undefined || (await typeOf(gitDir, oid)) !== 'commit') return null;
      return commitObject(gitDir, oid, behavior);
    },
  };
}

async function comparison(gitDir: string, base: string, headRef: string) {
  const head = await resolve(gitDir, `${headRef}^{commit}`);
  const counts = head === null ? null : await countsBetween(gitDir, base, head);
  if (counts === null) throw notFound(`Could not resolve to a Ref with the name '${headRef}'.`);
  return { status: statusOf(counts).toUpperCase(), aheadBy: counts.ahead, behindBy: counts.behind, baseTarget: { __typename: 'Commit', oid: base } };
}

function commitObject(gitDir: string, oid: string, behavior: GraphqlBehavior) {
  return {
    __typename: 'Commit',
    oid,
    tree: async () => treeObject(gitDir, (await resolve(gitDir, `${oid}^{tree}`)) ?? ''),
    file: ({ path }: { readonly path: string }) => fileEntry(gitDir, oid, path),
    history: (args: HistoryArguments) => historyConnection(gitDir, oid, args, behavior),
  };
}

async function fileEntry(gitDir: string, commit: string, path: string) {
  const parent = path.includes('/') ? path.slice(0, path.lastIndexOf('/')) : '';
  const tree = await resolve(gitDir, `${commit}:${parent}`);
  if (tree === null || (await typeOf(gitDir, tree)) !== 'tree') return null;
  const name = Buffer.from(path.slice(path.lastIndexOf('/') + 1));
  const entry = (await treeOf(gitDir, tree)).find((each) => each.name.equals(name));
  return entry === undefined ? null : entryObject(gitDir, entry);
}

function treeObject(gitDir: string, oid: string) {
  return {
    __typename: 'Tree',
    oid,
    entries: async () => (await treeOf(gitDir, oid)).map((entry) => entryObject(gitDir, entry)),
  };
}

function entryObject(gitDir: string, { name, mode, type, oid }: TreeEntry) {
  const objects: Readonly<Record<string, () => object | null>> = {
    tree: () => treeObject(gitDir, oid),
    blob: () => ({ __typename: 'Blob', oid }),
    commit: () => null,
  };
  return {
    name: name.toString('utf8'),
    nameRaw: name.toString('base64'),
    mode: Number.parseInt(mode, 8),
    type,
    oid,
    object: () => objects[type]?.() ?? null,
  };
}
