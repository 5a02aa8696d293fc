import { readGit } from '../hosted-repositories.ts';

export interface TreeEntry {
  readonly mode: string;
  readonly type: string;
  readonly oid: string;
  /** The name's bytes. */
  readonly name: Buffer;
}

export interface HistoryCommit {
  readonly oid: string;
  /** RFC 3339 in UTC. */
  readonly committedDate: string;
}

async function line(gitDir: string, ...args: readonly string[]): Promise<string | null> {
  return (await readGit(gitDir, args))?.toString('utf8').trim() ?? null;
}

/** Caches results that can't change, because they depend only on the id of an object. */
function remembering<T>(ask: (gitDir: string, key: string) => Promise<T>): (gitDir: string, key: string) => Promise<T> {
  const answers = new Map<string, Promise<T>>();
  return (gitDir, key) => {
    const id = `${gitDir}\0${key}`;
    const answer = answers.get(id) ?? ask(gitDir, key);
    answers.set(id, answer);
    return answer;
  };
}

/** Returns the branch of HEAD. Null if it has no commit yet. */
export async function defaultBranch(gitDir: string): Promise<Branch | null> {
  return (await branchesOf(gitDir)).find(({ isDefault }) => isDefault) ?? null;
}

export interface Branch {
  readonly name: string;
  readonly oid: string;
  readonly isDefault: boolean;
}

/** Sorted by name. */
export async function branchesOf(gitDir: string): Promise<readonly Branch[]> {
  const output = (await line(gitDir, 'for-each-ref', '--format=%(objectname)%(HEAD)%(refname:strip=2)', 'refs/heads')) ?? '';
  return output.split('\n').filter((each) => each !== '').map((each) => ({ oid: each.slice(0, 40), isDefault: each[40] === '*', name: each.slice(41) }));
}

const parsed = (gitDir: string, expression: string) => line(gitDir, 'rev-parse', '--verify', '--quiet', '--end-of-options', expression);
const parsedOnce = remembering(parsed);

/** Returns the object id of an expression. */
export async function resolve(gitDir: string, expression: string): Promise<string | null> {
  return await (/^[0-9a-f]{40}/u.test(expression) ? parsedOnce : parsed)(gitDir, expression);
}

export const typeOf = remembering((gitDir, oid) => line(gitDir, 'cat-file', '-t', oid));

/** Returns the content of a file. */
export const blobOf = remembering((gitDir, oid) => readGit(gitDir, ['cat-file', 'blob', oid]));

export const treeOf = remembering(async (gitDir, oid): Promise<readonly TreeEntry[]> => {
  const output = (await readGit(gitDir, ['ls-tree', '-z', '--full-tree', oid]))?.toString('latin1') ?? '';
  return output.split('\0').slice(0, -1).map((entry) => {
    const [mode = '', type = '', id = ''] = entry.slice(0, entry.indexOf('\t')).split(' ');
    return { mode, type, oid: id, name: Buffer.from(entry.slice(entry.indexOf('\t') + 1), 'latin1') };
  });
});

const logOf = remembering(async (gitDir, key): Promise<readonly HistoryCommit[]> => {
  const [head = '', ...path] = key.split('\0');
  const limit = path.length === 0 ? [] : ['--', ...path];
  const output = (await readGit(gitDir, ['log', '--format=%H %ct', head, ...limit]))?.toString('utf8') ?? '';
  return output.split('\n').slice(0, -1).map((entry) => {
    const [oid = '', seconds = ''] = entry.split(' ');
    return { oid, committedDate: new Date(Number(seconds) * 1000).toISOString().replace('.000Z', 'Z') };
  });
});

/** Returns the commits that touch a path, as git lists them: newest first, without merges that took nothing. */
export function historyOf(gitDir: string, head: string, path: string | null): Promise<readonly HistoryCommit[]> {
  return logOf(gitDir, path === null ? head : `${head}\0${path}`);
}

/** Returns how many commits each of two commits has that the other does not have. Null if one is missing. */
export async function countsBetween(gitDir: string, base: string, head: string): Promise<{ readonly ahead: number; readonly behind: number } | null> {
  const counts = await line(gitDir, 'rev-list', '--left-right', '--count', `${base}...${head}`);
  const [behind, ahead] = counts?.split('\t') ?? [];
  return behind === undefined || ahead === undefined ? null : { ahead: Number(ahead), behind: Number(behind) };
}
