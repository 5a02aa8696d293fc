import { isSameReason, type Reason } from '../../../domain/reason.ts';
import type { CheckoutProgress } from '../../../ports/repository-checkouts.ts';
import { providerFailures } from '../../shared/provider-failures.ts';
import type { CheckoutJob } from './checkout.ts';
import { Corruption, failureOfFetch } from './git-failures.ts';
import { networkEnvironment, oldMistakes } from './mirror-git.ts';
import { commitAt, refOf } from './mirror-folder.ts';
import { maxRepositoryBytes, sizeOf } from './mirror-store.ts';
import { branchPrefix, type BranchTip } from './branch-tip.ts';

const watchIntervalMs = 500;

/** Fetches the branch into the mirror, and returns the commit of the branch. */
export async function fetchBranch(
  { git, lease: { mirror }, request, options, progress }: CheckoutJob,
  { branch }: BranchTip,
  signal: AbortSignal,
): Promise<string> {
  const { answerMs } = options;
  const { provider, remote } = request;
  const { gitDir } = mirror;
  const maxBytes = maxRepositoryBytes(options);
  const { failed } = providerFailures(provider);
  const tooLarge = (): Error => failed(`the repository is larger than ${maxBytes} bytes, half of what may be kept`);
  const ref = refOf(branch);
  const refspec = `+${branch === null ? 'HEAD' : branchPrefix + branch}:${ref}`;
  const args = [...settings, 'fetch', ...flags, remote.url, refspec];
  const environment = networkEnvironment(remote, options);
  const growth = new AbortController();
  const checkSize = async (): Promise<void> => {
    if ((await sizeOf(gitDir)) > maxBytes) growth.abort(tooLarge());
  };
  const timer = setInterval(() => void checkSize(), watchIntervalMs);
  const either = AbortSignal.any([signal, growth.signal]);
  try {
    const exit = await git.run({ args, folder: gitDir, environment, onStderr: parseProgress(progress) }, either);
    if (exit.code !== 0) throw failureOfFetch(request, exit, answerMs);
  } finally {
    clearInterval(timer);
  }
  // A fast fetch can exceed the limit between two checks.
  if ((await sizeOf(gitDir)) > maxBytes) throw tooLarge();
  const oid = await commitAt(mirror, ref);
  if (oid === null) throw new Corruption('git fetched, and the ref is not there');
  return oid;
}

// Fetched objects are checked as strictly as the hosts do.
const settings = [
  'fetch.fsckObjects=true',
  ...oldMistakes.map((mistake) => `fetch.fsck.${mistake}=ignore`),
  // One pack for each fetch, rather than thousands of files.
  'fetch.unpackLimit=1',
  'core.hooksPath=/dev/null',
].flatMap((setting) => ['-c', setting]);

const branchOnly = ['--no-tags', '--no-write-fetch-head', '--no-auto-maintenance', '--no-recurse-submodules'];
const flags = ['--progress', '--force', '--update-shallow', ...branchOnly];

const phases = [
  ['Receiving objects', 'receiving'],
  ['Resolving deltas', 'unpacking'],
] as const;

function parseProgress(progress: CheckoutProgress): (stderr: string) => void {
  let last: Reason | null = null;
  return (stderr) => {
    for (const [words, phase] of phases) {
      const percent = [...stderr.matchAll(new RegExp(`${words}: +(\\d{1,3})%`, 'gu'))].at(-1)?.[1];
      if (percent === undefined) continue;
      const reason: Reason = { code: 'fetching_repository', phase, percent: Math.floor(Number(percent) / 10) * 10 };
      if (!isSameReason(reason, last)) progress(reason);
      last = reason;
    }
  };
}
