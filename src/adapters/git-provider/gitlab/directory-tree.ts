import { prefixOf } from '../file-selector.ts';
import type { GitLabApi, PageName, ProjectName } from './gitlab-api.ts';
import { failed, reasons, tooLarge } from './gitlab-failures.ts';
import { isOfDirectory } from './gitlab-refusal.ts';

/** The regular files below a directory: their paths, each with a mark that changes with the content or the mode. */
export type Tree = ReadonlyMap<string, string>;

export interface TreeRequest {
  readonly project: ProjectName;
  readonly sha: string;
  readonly directory: string;
  readonly maxFiles: number;
}

/** One request for each page. A directory that does not exist is empty. */
export async function readTree(api: GitLabApi, request: TreeRequest): Promise<Tree> {
  try {
    const tree = (await readPages(api, request, null)) ?? (await readPages(api, request, { page: 1 }));
    if (tree === null) throw failed(reasons.endlessPages);
    return tree;
  } catch (error) {
    if (isOfDirectory(error)) return new Map();
    throw error;
  }
}

/**
 * Reads from a page on. Null if the pages lead back to an earlier one: older versions name them by the id of a file's
 * content, and files may have the same one. That can't happen to pages with numbers.
 */
async function readPages(api: GitLabApi, request: TreeRequest, first: PageName | null): Promise<Tree | null> {
  const { project, sha, directory, maxFiles } = request;
  const files = new Map<string, string>();
  const paths = new Set<string>();
  const names = new Set<string>();
  for (let name = first; ; ) {
    const page = await api.tree(project, sha, directory, name);
    const before = paths.size;
    for (const { path, type, mode, id } of page.items) {
      paths.add(path);
      if (type === 'blob' && /^100\d{3}$/u.test(mode) && path.startsWith(prefixOf(directory))) files.set(path, `${mode} ${id}`);
    }
    if (paths.size > maxFiles) throw tooLarge(`${maxFiles} files and folders`);
    if (page.next === null) return files;
    const key = JSON.stringify(page.next);
    if (names.has(key) || paths.size === before) return null;
    names.add(key);
    name = page.next;
  }
}
