import { dirname } from 'node:path';
import type { CheckoutRequest } from '../../../ports/repository-checkouts.ts';
import { providerFailures } from '../../shared/provider-failures.ts';
import { realTimers, startTimeout, withTimeout } from '../../shared/timeout.ts';
import { failureOfFetch, noBranch, noCommit } from './git-failures.ts';
import type { ResolvedOptions } from './git-mirror.ts';
import { type Git, isUrl } from './git-runner.ts';
import { askHost } from './http-refs.ts';

/** A commit that is wanted, and where it is found. */
export interface Head {
  /** Null where the host has checked out no branch, but a commit. */
  readonly branch: string | null;
  /** The commit, in 40 (SHA-1) or 64 (SHA-256) hexadecimal digits. */
  readonly oid: string;
  /** Is the branch the one that the host has checked out? */
  readonly isDefault: boolean;
}

/** A name that the host has for a commit. */
export interface Ref {
  readonly name: string;
  readonly oid: string;
  /** The ref that it stands for. */
  readonly target: string | null;
}

export const branchPrefix = 'refs/heads/';
const oidForm = /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/u;
// What git refuses in a name; `..` and the like are seen to by segment.
// oxlint-disable-next-line no-control-regex -- control characters are what it looks for
const unsafe = /[\0-\u0020\u007f~^:?*[\\]|@\{|\.\./u;

/** Would git take it as the name of a branch? */
function isBranchName(name: string): boolean {
  if (name.length > 500 || !name.isWellFormed() || unsafe.test(name) || name === '@' || name.startsWith('-')) return false;
  return name.split('/').every((part) => part !== '' && !part.startsWith('.') && !part.endsWith('.') && !part.endsWith('.lock'));
}

/** Which refs to ask a host for: those with such a name, or all branches. */
export type Wanted = 'branches' | readonly string[];

function refsOf(branch: string | null): readonly string[] {
  return branch === null ? ['HEAD'] : ['HEAD', branchPrefix + branch];
}

function hasBranches(refs: readonly Ref[]): boolean {
  return refs.some(({ name }) => name.startsWith(branchPrefix));
}

/** The commit that is wanted, among what the host has; null where there is none. */
function headIn(refs: readonly Ref[], branch: string | null): Head | null {
  const head = refs.find(({ name }) => name === 'HEAD');
  const target = head?.target ?? null;
  const defaultBranch = target?.startsWith(branchPrefix) === true ? target.slice(branchPrefix.length) : null;
  const found = branch === null ? head : refs.find(({ name }) => name === branchPrefix + branch);
  if (found === undefined || !oidForm.test(found.oid) || /^0+$/u.test(found.oid)) return null;
  const named = branch ?? (defaultBranch !== null && isBranchName(defaultBranch) ? defaultBranch : null);
  return { branch: named, oid: found.oid, isDefault: named !== null && named === defaultBranch };
}

/** Where the branch is at this moment; null for an empty repository, of which no branch is wanted. */
export async function askHead(
  git: Git,
  request: CheckoutRequest,
  { answerMs, root }: Pick<ResolvedOptions, 'answerMs' | 'root'>,
  signal: AbortSignal,
): Promise<Head | null> {
  const { provider, repository, branch, remote } = request;
  const subject = { provider, repository, authorized: remote.authorization !== null };
  if (branch !== null && !isBranchName(branch)) throw noBranch(subject, branch);
  const { failed, timedOut } = providerFailures(provider);
  if (isUrl(remote.url) && holdsCredential(remote.url)) throw failed('its URL holds a credential, which would be handed on; give it apart');
  const limit = startTimeout(realTimers, answerMs, () => timedOut(answerMs), [signal]);
  const ask = async (wanted: Wanted, within: AbortSignal): Promise<readonly Ref[]> =>
    isUrl(remote.url) ? await askHost(request, wanted, within) : await askFolder(git, request, wanted, root, within);
  return await withTimeout(limit, async (within) => {
    const refs = await ask(refsOf(branch), within);
    const head = headIn(refs, branch);
    if (head !== null || branch === null) return head;
    // One whose HEAD leads nowhere may have branches all the same.
    const isEmpty = headIn(refs, null) === null && !hasBranches(await ask('branches', within));
    throw isEmpty ? noCommit(subject, branch) : noBranch(subject, branch);
  });
}

function holdsCredential(url: string): boolean {
  const { username, password } = new URL(url);
  return username !== '' || password !== '';
}

/** Asks a git folder of this machine where its refs are. Git runs in `folder`, which is no repository. */
async function askFolder(
  git: Git,
  request: CheckoutRequest,
  wanted: Wanted,
  folder: string,
  signal: AbortSignal,
): Promise<readonly Ref[]> {
  const run = {
    args: ['ls-remote', '--symref', '--quiet', request.remote.url, ...(wanted === 'branches' ? [`${branchPrefix}*`] : wanted)],
    folder,
    // No repository that the folder may happen to be in has a say.
    environment: { GIT_ALLOW_PROTOCOL: 'file', GIT_CEILING_DIRECTORIES: dirname(folder) },
  };
  const exit = await git.run(run, signal);
  if (exit.code !== 0) throw failureOfFetch(request, exit);
  return readRefs(Buffer.from(exit.output, 'latin1').toString('utf8'));
}

/** Lines `ref: refs/heads/main<tab>HEAD` and `OID<tab>NAME`. */
function readRefs(output: string): Ref[] {
  const pairs = output.split('\n').map((line) => {
    const [first = '', name] = line.split('\t');
    return [first, name] as const;
  });
  const targets = new Map(pairs.flatMap(([target, name]) => (target.startsWith('ref: ') ? [[name, target.slice(5)] as const] : [])));
  return pairs.flatMap(([oid, name]) => {
    return name === undefined || oid.startsWith('ref: ') ? [] : [{ name, oid, target: targets.get(name) ?? null }];
  });
}
