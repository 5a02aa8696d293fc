import type { Api, ProjectName } from './api.ts';
import { failed, tooLarge } from './failures.ts';
import type { PageName } from './page.ts';
import { isOfDirectory, Refusal } from './refusal.ts';

/** The regular files below a directory: from their paths to a mark that tells one content and mode from another. */
export type Tree = ReadonlyMap<string, string>;

export interface TreeRequest {
  readonly project: ProjectName;
  readonly sha: string;
  readonly directory: string;
  readonly maxFiles: number;
}

/** One request for each page. A directory that does not exist is empty. */
export async function readTree(api: Api, request: TreeRequest): Promise<Tree> {
  try {
    return (await readPages(api, request, null)) ?? (await readPages(api, request, { page: 1 })) ?? lost();
  } catch (error) {
    if (error instanceof Refusal && isOfDirectory(error)) return new Map();
    throw error;
  }
}

/**
 * Reads from the page on; null where the pages lead back to an earlier one. Those that older versions name by the id of
 * a file's content do so where files have the same content; the numbered ones don't.
 */
async function readPages(api: Api, { project, sha, directory, maxFiles }: TreeRequest, first: PageName | null): Promise<Tree | null> {
  const prefix = directory === '' ? '' : `${directory}/`;
  const files = new Map<string, string>();
  const paths = new Set<string>();
  const names = new Set<string>();
  for (let name = first; ; ) {
    const page = await api.tree(project, sha, directory, name);
    const known = paths.size;
    for (const { path, type, mode, id } of page.items) {
      paths.add(path);
      if (type === 'blob' && /^100\d{3}$/u.test(mode) && path.startsWith(prefix)) files.set(path, `${mode} ${id}`);
    }
    if (paths.size > maxFiles) throw tooLarge(`${maxFiles} files and folders`);
    if (page.next === null) return files;
    const key = JSON.stringify(page.next);
    if (names.has(key) || paths.size === known) return null;
    names.add(key);
    name = page.next;
  }
}

function lost(): never {
  throw failed('the pages of a directory lead back to earlier ones');
}
