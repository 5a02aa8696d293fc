import { tooLarge } from './failures.ts';
import { isRegular } from './entries.ts';
import type { RepositoryName } from './name.ts';
import { getJson } from './rest.ts';
import { RestTree } from './schema.ts';
import type { TreeFile } from './source.ts';
import type { Transport } from './transport.ts';

/** Reads directories by REST, which tells any depth at once. */
export interface RestTrees {
  /** The entries of one directory. */
  read(repository: RepositoryName, oid: string, recursive: boolean, signal: AbortSignal): Promise<RestTree>;
  /** The regular files at any depth below a directory. */
  files(repository: RepositoryName, oid: string, directory: string, signal: AbortSignal): Promise<TreeFile[]>;
}

export function createRestTrees(transport: Transport, baseUrl: string, maxFiles: number): RestTrees {
  async function read({ owner, name }: RepositoryName, oid: string, recursive: boolean, signal: AbortSignal): Promise<RestTree> {
    const call = {
      route: 'GET /repos/{owner}/{repo}/git/trees/{tree_sha}',
      parameters: { owner, repo: name, tree_sha: oid, ...(recursive ? { recursive: '1' } : {}) },
      what: 'a directory',
    };
    return await getJson(transport, baseUrl, call, RestTree, signal);
  }

  /** What is too large for one answer is read directory by directory. */
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

export function prefixOf(directory: string): string {
  return directory === '' ? '' : `${directory}/`;
}

function filesOf({ tree }: RestTree, prefix: string): TreeFile[] {
  return tree.filter(isRegular).map(({ path, sha }) => ({ path: prefix + path, oid: sha }));
}
