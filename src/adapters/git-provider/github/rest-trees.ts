import { prefixOf } from '../file-selector.ts';
import type { TreeFile } from '../incremental-listing.ts';
import type { GitHubApi } from './github-api.ts';
import { parseJson, tooLarge } from './github-failures.ts';
import { RestTree } from './github-schemas.ts';
import type { RepositoryName } from './repository-source.ts';

/** Reads directories by REST. */
export interface RestTrees {
  /** Returns the entries of one directory, or those at any depth below it. */
  read(repository: RepositoryName, oid: string, recursive: boolean, signal: AbortSignal): Promise<RestTree>;
  /** Returns the regular files at any depth below a directory. */
  files(repository: RepositoryName, oid: string, directory: string, signal: AbortSignal): Promise<TreeFile[]>;
}

export function createRestTrees(api: GitHubApi, maxFiles: number): RestTrees {
  async function read({ owner, name }: RepositoryName, oid: string, recursive: boolean, signal: AbortSignal): Promise<RestTree> {
    const route = 'GET /repos/{owner}/{repo}/git/trees/{tree_sha}';
    const parameters = { owner, repo: name, tree_sha: oid, ...(recursive ? { recursive: '1' } : {}) };
    const { text } = await api.send({ route, parameters, follow: true }, signal);
    return parseJson(RestTree, text, 'a directory');
  }

  /** What is too large for one response is read directory by directory. */
  async function collect(repository: RepositoryName, oid: string, prefix: string, signal: AbortSignal): Promise<TreeFile[]> {
    const whole = await read(repository, oid, true, signal);
    if (!whole.truncated) return filesOf(whole, prefix);
    const { truncated, tree } = await read(repository, oid, false, signal);
    if (truncated) throw tooLarge('what one answer holds of a single directory');
    const directories = tree.filter(({ type }) => type === 'tree');
    const below = await Promise.all(directories.map(({ path, sha }) => collect(repository, sha, `${prefix}${path}/`, signal)));
    return [...filesOf({ truncated, tree }, prefix), ...below.flat()];
  }

  return {
    read,
    async files(repository, oid, directory, signal) {
      const files = await collect(repository, oid, prefixOf(directory), signal);
      if (files.length > maxFiles) throw tooLarge(`${maxFiles} files`);
      return files;
    },
  };
}

function filesOf({ tree }: RestTree, prefix: string): TreeFile[] {
  const regular = tree.filter(({ type, mode }) => type === 'blob' && mode.startsWith('100'));
  return regular.map(({ path, sha }) => ({ path: prefix + path, mark: sha }));
}
