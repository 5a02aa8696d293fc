import { dirname } from 'node:path';
import { Failure } from '../../../domain/failure.ts';
import type { CheckoutRequest } from '../../../ports/repository-checkouts.ts';
import { isRefName, oidForm } from '../../shared/git-process.ts';
import { providerFailures } from '../../shared/provider-failures.ts';
import { realTimers, startTimeout, withTimeout } from '../../shared/timeout.ts';
import { branchNotFound, failureOfFetch } from './git-failures.ts';
import type { ResolvedOptions } from './git-mirror.ts';
import { isUrl, type GitRunner } from './git-runner.ts';
import { listHttpRefs } from './http-refs.ts';

/** The commit to check out, and where the host has it. */
export interface Head {
  /** Null if the host has checked out a commit without a branch. */
  readonly branch: string | null;
  /** The commit, in 40 (SHA-1) or 64 (SHA-256) hexadecimal digits. */
  readonly oid: string;
  /** Whether the branch is the one that the host has checked out. */
  readonly isDefault: boolean;
}

/** A ref of the host. */
export interface Ref {
  readonly name: string;
  readonly oid: string;
  /** The ref that a symbolic ref points to; of a folder, only that of HEAD. */
  readonly target: string | null;
}

export const branchPrefix = 'refs/heads/';

/** Asks the host where the branch is now. Null if the repository is empty and no branch is asked for. */
export async function askHead(
  git: GitRunner,
  request: CheckoutRequest,
  { answerMs, root }: Pick<ResolvedOptions, 'answerMs' | 'root'>,
  signal: AbortSignal,
): Promise<Head | null> {
  const { provider, repository, branch, remote } = request;
  if (branch !== null && !isBranchName(branch)) throw branchNotFound(request, branch);
  const { failed, timedOut } = providerFailures(provider);
  if (holdsCredential(remote.url)) throw failed('its URL holds a credential, which would be handed on; give it apart');
  const list = (prefixes: readonly string[], within: AbortSignal): Promise<readonly Ref[]> =>
    isUrl(remote.url) ? listHttpRefs(request, prefixes, within) : listFolderRefs(git, request, prefixes, root, within);
  const limit = startTimeout(realTimers, answerMs, () => timedOut(answerMs), [signal]);
  return await withTimeout(limit, async (within) => {
    const refs = await list(branch === null ? ['HEAD'] : ['HEAD', branchPrefix + branch], within);
    const head = headIn(refs, branch);
    if (head !== null || branch === null) return head;
    // A repository whose HEAD leads nowhere may have branches all the same.
    const isEmpty = headIn(refs, null) === null && !(await list([branchPrefix], within)).some(({ name }) => name.startsWith(branchPrefix));
    throw isEmpty ? new Failure('repository_empty', { repository, branch }) : branchNotFound(request, branch);
  });
}

function holdsCredential(url: string): boolean {
  if (!isUrl(url)) return false;
  const { username, password } = new URL(url);
  return username !== '' || password !== '';
}

/** Whether git accepts it as the name of a branch. */
function isBranchName(name: string): boolean {
  return name.length <= 500 && name !== '@' && !name.startsWith('-') && isRefName(name);
}

/** The wanted commit among the host's refs; null if it is not there. */
function headIn(refs: readonly Ref[], branch: string | null): Head | null {
  const head = refs.find(({ name }) => name === 'HEAD');
  const target = head?.target ?? null;
  const defaultBranch = target?.startsWith(branchPrefix) === true ? target.slice(branchPrefix.length) : null;
  const found = branch === null ? head : refs.find(({ name }) => name === branchPrefix + branch);
  if (found === undefined || !oidForm.test(found.oid) || /^0+$/u.test(found.oid)) return null;
  const named = branch ?? (defaultBranch !== null && isBranchName(defaultBranch) ? defaultBranch : null);
  return { branch: named, oid: found.oid, isDefault: named !== null && named === defaultBranch };
}

/** Lists the refs of a git folder of this machine. Git runs in `folder`, which is not a repository. */
async function listFolderRefs(
  git: GitRunner,
  request: CheckoutRequest,
  prefixes: readonly string[],
  folder: string,
  signal: AbortSignal,
): Promise<readonly Ref[]> {
  const patterns = prefixes.map((prefix) => (prefix.endsWith('/') ? `${prefix}*` : prefix));
  const args = ['ls-remote', '--symref', '--quiet', request.remote.url, ...patterns];
  // No repository that the folder may lie in has an effect.
  const environment = { GIT_ALLOW_PROTOCOL: 'file', GIT_CEILING_DIRECTORIES: dirname(folder) };
  const exit = await git.run({ args, folder, environment }, signal);
  if (exit.code !== 0) throw failureOfFetch(request, exit);
  // Lines `ref: refs/heads/main<tab>HEAD` and `OID<tab>NAME`.
  const target = /^ref: ([^\n]+)\tHEAD$/mu.exec(exit.stdout)?.[1] ?? null;
  const refs = exit.stdout.matchAll(/^([0-9a-f]+)\t([^\n]+)/gmu);
  return [...refs].map(([, oid = '', name = '']) => ({ name, oid, target: name === 'HEAD' ? target : null }));
}
