import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

/** The entry at a path. Text or bytes are the content of a regular file. */
export type Entry = string | Uint8Array | { readonly executable: string } | { readonly link: string } | { readonly submodule: string };

export interface CommitDescription {
  readonly id: string;
  /** Ids of earlier commits. Default: the previous commit in the list. Empty for a root commit. */
  readonly parents?: readonly string[];
  /** Committer date, in seconds since the epoch. */
  readonly at: number;
  /** Author date, in seconds since the epoch. Default: a day before `at`. Providers must ignore it. */
  readonly authoredAt?: number;
  /** Changes against the first parent: paths (bytes if not UTF-8) and their new entries. Null removes the entry. */
  readonly files: readonly (readonly [path: string | Uint8Array, entry: Entry | null])[];
}

export interface RepositoryDescription {
  readonly commits: readonly CommitDescription[];
  /** Commit ids by branch. By default, the default branch is at the last commit. */
  readonly branches?: Readonly<Record<string, string>>;
  readonly defaultBranch?: string;
  /** The branch of HEAD, if it is a branch without commits. */
  readonly unborn?: string;
  readonly objectFormat?: 'sha1' | 'sha256';
}

/** Describes a repository whose only commit adds these files. */
export const oneCommit = (at: number, files: CommitDescription['files']): RepositoryDescription => ({ commits: [{ id: 'first', at, files }] });

/** Git runs without any configuration, as the author A and the committer C. */
export const gitEnvironment: NodeJS.ProcessEnv = {
  PATH: process.env['PATH'],
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_AUTHOR_NAME: 'A',
  GIT_AUTHOR_EMAIL: 'a@example.com',
  GIT_COMMITTER_NAME: 'C',
  GIT_COMMITTER_EMAIL: 'c@example.com',
};

const building = 'refs/skep-building';

/** Makes a bare repository with the real git program, which must be on the PATH. */
export async function createRepository(gitDir: string, description: RepositoryDescription): Promise<void> {
  const { defaultBranch = 'main', objectFormat = 'sha1', unborn } = description;
  const options = [`--object-format=${objectFormat}`, `--initial-branch=${unborn ?? defaultBranch}`];
  // Without the sample hooks of git's template, which take longer to copy than the rest.
  await git(gitDir, ['init', '--quiet', '--bare', '--template=', ...options, gitDir]);
  await addCommits(gitDir, description);
}

/** Runs git without any configuration. Returns its output. */
export async function git(gitDir: string, args: readonly string[], input?: string): Promise<string> {
  return (await gitBytes(gitDir, args, input)).toString();
}

/** As `git`, but returns bytes. The input has one character for each byte. */
export async function gitBytes(gitDir: string, args: readonly string[], input?: string): Promise<Buffer> {
  const options = { env: { ...gitEnvironment, GIT_DIR: gitDir }, encoding: 'buffer', maxBuffer: 64 * 1024 * 1024 } as const;
  const running = promisify(execFile)('git', args, options);
  if (input !== undefined) running.child.stdin?.end(input, 'latin1');
  return (await running).stdout;
}

async function addCommits(gitDir: string, description: RepositoryDescription): Promise<void> {
  const { commits, defaultBranch = 'main' } = description;
  const last = commits.at(-1);
  if (last === undefined) return;
  const marks = new Map(commits.map(({ id }, index) => [id, `:${index + 1}`]));
  const markOf = (id: string): string => {
    const mark = marks.get(id);
    if (mark === undefined) throw new Error(`no commit has the id ${id}`);
    return mark;
  };
  const branches = { [defaultBranch]: last.id, ...description.branches };
  const stream = [
    ...commits.map((commit, index) => commitCommand(commit, commits[index - 1]?.id, markOf)),
    ...Object.entries(branches).map(([branch, id]) => `reset refs/heads/${byteString(branch)}\nfrom ${markOf(id)}\n`),
    // An id of zeros deletes the branch.
    `reset ${building}\nfrom ${'0'.repeat(description.objectFormat === 'sha256' ? 64 : 40)}\n`,
  ];
  await git(gitDir, ['fast-import', '--quiet', '--force'], stream.join('\n'));
}

function commitCommand(commit: CommitDescription, before: string | undefined, markOf: (id: string) => string): string {
  const { id, at, authoredAt = Math.max(at - 86_400, 0), files, parents = before === undefined ? [] : [before] } = commit;
  const lines = [
    ...(parents.length === 0 ? [`reset ${building}`, ''] : []),
    `commit ${building}`,
    `mark ${markOf(id)}`,
    `author A <a@example.com> ${authoredAt} +0000`,
    `committer C <c@example.com> ${at} +0000`,
    data(id),
    ...parents.map((parent, index) => `${index === 0 ? 'from' : 'merge'} ${markOf(parent)}`),
    ...files.map(([path, entry]) => change(quote(path), entry)),
  ];
  return `${lines.join('\n')}\n`;
}

function change(path: string, entry: Entry | null): string {
  if (entry === null) return `D ${path}`;
  if (typeof entry === 'string' || entry instanceof Uint8Array) return `M 100644 inline ${path}\n${data(entry)}`;
  if ('executable' in entry) return `M 100755 inline ${path}\n${data(entry.executable)}`;
  if ('link' in entry) return `M 120000 inline ${path}\n${data(entry.link)}`;
  return `M 160000 ${entry.submodule} ${path}`;
}

function data(content: string | Uint8Array): string {
  const bytes = byteString(content);
  return `data ${bytes.length}\n${bytes}`;
}

/** Returns one character for each byte, so that the stream can contain bytes that are not UTF-8. */
function byteString(content: string | Uint8Array): string {
  return Buffer.from(content).toString('latin1');
}

function quote(path: string | Uint8Array): string {
  const octal = [...Buffer.from(path)].map((byte) => `\\${byte.toString(8).padStart(3, '0')}`);
  return `"${octal.join('')}"`;
}
