import type { CheckoutRequest } from '../../../ports/repository-checkouts.ts';
import { providerFailures } from '../../shared/provider-failures.ts';
import { realTimers, startTimeout, withTimeout } from '../../shared/timeout.ts';
import { noBranch, noCommit } from './failures.ts';
import type { Git } from './git.ts';
import { hasBranches, headIn, isBranchName, refsOf, type Head, type Ref, type Wanted } from './heads.ts';
import { askHost } from './http-heads.ts';
import { askFolder } from './local-heads.ts';
import { isUrl } from './network-environment.ts';
import type { ResolvedOptions } from './options.ts';

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
