import type { CheckoutProgress, CheckoutRequest } from '../../../ports/repository-checkouts.ts';
import { providerFailures } from '../../shared/provider-failures.ts';
import { Damage } from './damage.ts';
import { failureOfFetch } from './fetch-failure.ts';
import type { Git } from './git.ts';
import type { Head } from './heads.ts';
import { commitAt, refOf, type Mirror } from './mirror.ts';
import { networkEnvironment } from './network-environment.ts';
import type { ResolvedOptions } from './options.ts';
import { reportProgress } from './progress.ts';
import { sizeOf, watchSize } from './size.ts';

/** Gets what the mirror lacks of the branch, and answers with the commit that the branch is at. */
export async function fetchHead(
  git: Git,
  mirror: Mirror,
  request: CheckoutRequest,
  head: Head,
  options: Pick<ResolvedOptions, 'answerMs' | 'depth' | 'limitBytes'>,
  progress: CheckoutProgress,
  signal: AbortSignal,
): Promise<string> {
  const { answerMs, depth } = options;
  const largest = largestRepository(options);
  const { provider, remote } = request;
  const ref = refOf(head.branch);
  const source = head.branch === null ? 'HEAD' : `refs/heads/${head.branch}`;
  const watch = watchSize(mirror.gitDir, largest, () => tooLarge(provider, largest), signal);
  const run = {
    folder: mirror.gitDir,
    environment: { GIT_DIR: mirror.gitDir, ...networkEnvironment(remote, answerMs) },
    onWords: reportProgress(progress),
    args: [
      ...settings.flatMap((setting) => ['-c', setting]),
      'fetch',
      '--progress',
      '--force',
      '--no-tags',
      '--no-write-fetch-head',
      '--no-auto-maintenance',
      '--no-recurse-submodules',
      '--update-shallow',
      ...(depth === null ? [] : [`--depth=${depth}`]),
      remote.url,
      `+${source}:${ref}`,
    ],
  };
  try {
    const exit = await git.run(run, watch.signal);
    if (exit.code !== 0) throw failureOfFetch(request, exit, answerMs);
  } finally {
    watch.end();
  }
  // One that comes fast is larger before anybody looks.
  if ((await sizeOf(mirror.gitDir)) > largest) throw tooLarge(provider, largest);
  const oid = await commitAt(mirror, ref);
  if (oid === null) throw new Damage('git fetched, and the ref is not there');
  return oid;
}

/** In bytes. It is kept once as it was brought, and once as it is handed out. */
export function largestRepository({ limitBytes }: Pick<ResolvedOptions, 'limitBytes'>): number {
  return Math.floor(limitBytes / 2);
}

// What comes is checked as strictly as the hosts themselves do: old mistakes that harm nobody are common.
const settings = [
  'fetch.fsckObjects=true',
  'fetch.fsck.badTimezone=ignore',
  'fetch.fsck.missingSpaceBeforeDate=ignore',
  'fetch.fsck.zeroPaddedFilemode=ignore',
  // One pack each time, rather than thousands of files.
  'fetch.unpackLimit=1',
  'core.hooksPath=/dev/null',
];

function tooLarge(provider: string, limitBytes: number): Error {
  return providerFailures(provider).failed(`the repository is larger than ${limitBytes} bytes, half of what may be kept`);
}
