import type { AgentCommit, FileChange } from '../../../domain/change.ts';
import { isFailureOf } from '../../../domain/failure.ts';
import type { CheckoutRequest } from '../../../ports/repository-checkouts.ts';
import { type PushRequest, SnapshotRefusal, type SnapshotCommit } from '../../../ports/work-tree-snapshot.ts';
import { type GitResult, type GitRunner, isSha256 } from '../../shared/git-process.ts';
import { collectEntries, diffFlags, diffSettings, listFlags, logFlags, nameFlags, parseCommits, parseFiles } from './change-list.ts';
import { failureOfFetch, machineFailure, messageOfHost } from './git-failures.ts';
import { networkEnvironment, type NetworkOptions, writableIdentity } from './mirror-git.ts';
import type { SnapshotHeader } from './snapshot-script.ts';

/** A repository on this machine with the received objects of a snapshot. */
export interface SnapshotFolder {
  readonly git: GitRunner;
  readonly folder: string;
  readonly base: string | null;
  readonly header: SnapshotHeader;
}

const diff = [...diffSettings, 'diff-tree', ...diffFlags];

const emptyTree = '4b825dc642cb6eb9a060e54bf8d69288fbee4904';
const emptyTreeOfSha256 = '6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321';

/** Throws a refusal if git found something wrong with the objects, or has no space for them. */
export function requireIntact({ code, stderr }: { readonly code: number | null; readonly stderr: string }): void {
  if (code === 0) return;
  const isFull = /No space left|quota exceeded/iu.test(stderr);
  const cause = new Error(`git ended with exit code ${code ?? 'none'}: ${stderr}`);
  throw new SnapshotRefusal({ code: isFull ? 'disk_full' : 'snapshot_damaged' }, { cause });
}

/** Returns the commits since the base, newest first. */
export async function listCommits(snapshot: SnapshotFolder, signal: AbortSignal): Promise<AgentCommit[]> {
  const { base, header: { head, boundary } } = snapshot;
  if (head === null || head === base) return [];
  return parseCommits(await entriesOf(snapshot, ['log', ...logFlags, head, '--not', ...boundary], signal));
}

/** Returns the files that differ from the base. */
export async function listFiles(snapshot: SnapshotFolder, signal: AbortSignal): Promise<FileChange[]> {
  const { base, header: { head, tree } } = snapshot;
  const [entries, uncommitted] = await Promise.all([
    entriesOf(snapshot, [...diff, ...listFlags, orEmptyTree(base, tree), tree], signal),
    head === base ? null : entriesOf(snapshot, ['diff-tree', ...nameFlags, orEmptyTree(head, tree), tree], signal),
  ]);
  return parseFiles(entries, uncommitted === null ? null : new Set(uncommitted));
}

/** Returns the path at which the work tree has the object, if the base does not have it there. Null if there is none. */
export async function pathOfObject(snapshot: SnapshotFolder, object: string, signal: AbortSignal): Promise<string | null> {
  const { base, header: { tree } } = snapshot;
  const args = ['diff-tree', '-r', '-t', '-z', '--raw', '--no-abbrev', '--no-renames', orEmptyTree(base, tree), tree];
  const entries = await entriesOf(snapshot, args, signal);
  const path = entries[entries.findIndex((entry) => entry.startsWith(':') && entry.split(' ')[3] === object) + 1];
  return path === undefined || path.startsWith(':') ? null : Buffer.from(path, 'latin1').toString('utf8');
}

async function entriesOf({ git, folder }: SnapshotFolder, args: readonly string[], signal: AbortSignal): Promise<string[]> {
  const { entries, take } = collectEntries();
  requireIntact(await git.run({ args, folder }, signal, take));
  return entries;
}

/** Returns the difference as a patch for `git apply --binary`. */
export function patchOf(snapshot: SnapshotFolder, paths: readonly string[] | null, signal: AbortSignal): ReadableStream<Uint8Array> {
  const { git, folder, base, header: { tree } } = snapshot;
  const args = [...diff, '-p', '--binary', orEmptyTree(base, tree), tree, ...(paths === null ? [] : ['--', ...exactly(paths)])];
  return ReadableStream.from(git.stream({ args, folder, environment: { GIT_LITERAL_PATHSPECS: '0' } }, signal, requireIntact));
}

/** Returns git's patterns for these paths only. */
function exactly(paths: readonly string[]): string[] {
  const patterns = paths.map((path) => path.replaceAll(/^.|[*?[\\]/gsu, '\\$&'));
  // Git also takes each pattern as a literal path, and a literal path as all files in a folder of that name.
  const isAsked = (name: string): boolean => paths.some((path) => path === name || path.startsWith(`${name}/`));
  const others = patterns.filter((pattern) => !isAsked(pattern)).map((name) => `:(top,exclude,literal)${name}`);
  return [...patterns.map((pattern) => `:(top,glob)${pattern}`), ...others];
}

/** Returns the commit, or the empty tree if there is none. The form of `tree` determines the hash algorithm. */
function orEmptyTree(commit: string | null, tree: string): string {
  return commit ?? (isSha256(tree) ? emptyTreeOfSha256 : emptyTree);
}

/** Returns a commit of the whole tree: the last one of the work tree, or a new one on top of it. */
export async function commitAll(snapshot: SnapshotFolder, request: SnapshotCommit, signal: AbortSignal): Promise<string> {
  const { git, folder, header: { head, tree } } = snapshot;
  await requireDescendant(snapshot, signal);
  const same = await git.run({ args: ['diff-tree', '--quiet', orEmptyTree(head, tree), tree], folder }, signal);
  if (same.code === 0 && head !== null) return head;
  if (same.code === 0) throw new SnapshotRefusal({ code: 'nothing_to_publish' });
  if (same.code !== 1) requireIntact(same);
  const { name, email } = writableIdentity(request.author);
  const before = head === null ? null : await git.run({ args: ['log', '-1', '--format=%ct', head], folder }, signal);
  const date = `@${Math.max(Math.floor(request.at / 1000), Number(before?.stdout ?? 0))} +0000`;
  const author = { GIT_AUTHOR_NAME: name, GIT_AUTHOR_EMAIL: email, GIT_AUTHOR_DATE: date };
  const identity = { ...author, GIT_COMMITTER_NAME: name, GIT_COMMITTER_EMAIL: email, GIT_COMMITTER_DATE: date };
  const args = ['commit-tree', tree, ...(head === null ? [] : ['-p', head]), '-F', '-'];
  const exit = await git.run({ args, folder, environment: identity, input: request.message }, signal);
  requireIntact(exit);
  return exit.stdout.trim();
}

/** Throws a refusal unless the last commit descends from the base. A wrong boundary only removes parents, so it can't fake that. */
async function requireDescendant({ git, folder, base, header: { head } }: SnapshotFolder, signal: AbortSignal): Promise<void> {
  if (base === null || head === base) return;
  if (head === null) throw new SnapshotRefusal({ code: 'history_rewritten' });
  const args = ['merge-base', '--is-ancestor', base, head];
  const exit = await git.run({ args, folder }, signal);
  if (exit.code === 1) throw new SnapshotRefusal({ code: 'history_rewritten' });
  requireIntact(exit);
}

// The hooks of a folder of this machine must not run as this user, and what is checked out there must stay. A remote host decides itself.
const receiveSettings = [
  'core.hooksPath=/dev/null', 'core.alternateRefsCommand=true', 'core.logAllRefUpdates=false', 'receive.autogc=false',
  'receive.denyCurrentBranch=refuse',
];
const receivePack = `git ${receiveSettings.map((setting) => `-c ${setting}`).join(' ')} receive-pack`;
const settings = ['push.negotiate=true', 'core.hooksPath=/dev/null'].flatMap((setting) => ['-c', setting]);
const flags = ['--porcelain', '--no-verify', '--no-signed', '--no-follow-tags', '--no-recurse-submodules', `--receive-pack=${receivePack}`];

const refusals = [
  // Git can't have a branch `a` beside `a/b`.
  [/cannot create 'refs|directory file conflict/u, 'branch_name_conflict'],
  [/File name too long/u, 'branch_name_too_long'],
  [/No space left|quota exceeded/iu, 'disk_full'],
  [/Permission denied|Read-only file system|insufficient permission|unable to create temporary object directory/u, 'push_forbidden'],
  [/Unable to create '[^\n]+\.lock'/u, 'locked'],
  // Hosts report two pushes at once in several ways.
  [/stale info|fetch first|incorrect old value|already exists|failed to (?:lock|update ref)|cannot lock ref/u, 'branch_moved'],
  [/\(branch is currently checked out\)/u, 'branch_checked_out'],
  // In the messages of GitHub (GH006) and GitLab. Those about other rules, such as GH013, do not have it.
  [/protected branch/iu, 'branch_protected'],
  [/\[remote rejected\]/u, 'host_refused'],
] as const;

/** Pushes the commit, with the credential of the request, if the branch is at the expected commit. */
export async function push(
  snapshot: SnapshotFolder, { request, commit, expected }: PushRequest, options: NetworkOptions, signal: AbortSignal,
): Promise<void> {
  await requireComplete(snapshot, commit, signal);
  const { git, folder } = snapshot;
  const ref = `refs/heads/${request.branch}`;
  const args = [...settings, 'push', ...flags, `--force-with-lease=${ref}:${expected ?? ''}`, request.remote.url, `${commit}:${ref}`];
  const exit = await git.run({ args, folder, environment: networkEnvironment(request.remote, options) }, signal);
  if (exit.code !== 0) throw pushFailure(request, exit, options.answerMs);
}

/** Throws a refusal if an object of the commits is missing, before the host finds out. */
async function requireComplete({ git, folder, header: { boundary } }: SnapshotFolder, commit: string, signal: AbortSignal): Promise<void> {
  const exit = await git.run({ args: ['rev-list', '--objects', '--quiet', commit, '--not', ...boundary], folder }, signal);
  if (exit.code === 0) return;
  const incomplete = new SnapshotRefusal({ code: 'history_incomplete' }, { cause: new Error(exit.stderr) });
  throw machineFailure(exit, git.provider) ?? incomplete;
}

/** Returns the refusal for the exit of a push, or the failure if git's report has no reason for a refusal. */
function pushFailure(request: CheckoutRequest, exit: GitResult, answerMs: number): Error {
  const failure = failureOfFetch(request, exit, answerMs);
  const message = messageOfHost(request, exit);
  // What git writes about objects that the host can't store, and about a ref that it can't lock.
  const hostError = /(?:remote unpack failed:|cannot lock ref) .*/u.exec(exit.stderr)?.[0] ?? '';
  const protection = /protected branch/iu.exec(message)?.[0] ?? '';
  const report = exit.stdout + hostError + protection;
  // The credential could read, so it has no permission to push.
  const forbidden = isFailureOf(failure, 'repository_forbidden') ? 'push_forbidden' : null;
  const code = refusals.find(([text]) => text.test(report))?.[1] ?? forbidden;
  if (code === null) return failure;
  const isOfHost = code === 'push_forbidden' || code === 'branch_protected' || code === 'host_refused';
  return new SnapshotRefusal(isOfHost ? { code, message: message || hostError } : { code }, { cause: failure.cause ?? failure });
}
