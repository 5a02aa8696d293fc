import type { CheckoutProgress, CheckoutRequest } from '../../../ports/repository-checkouts.ts';
import { providerFailures } from '../../shared/provider-failures.ts';
import { Damage, failureOfFetch } from './git-failures.ts';
import type { ResolvedOptions } from './git-mirror.ts';
import { type Git, networkEnvironment } from './git-runner.ts';
import { sizeOf, watchSize } from './mirror-store.ts';
import { commitAt, type Mirror, refOf } from './mirror.ts';
import type { Head } from './remote-head.ts';

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

const phases = [
  ['Receiving objects', 'received'],
  ['Resolving deltas', 'put together'],
] as const;

/** Reads how far git says that it is, and tells it in steps of ten percent. */
function reportProgress(progress: CheckoutProgress): (words: string) => void {
  let told = '';
  return (words) => {
    for (const [phase, done] of phases) {
      const percent = [...words.matchAll(new RegExp(`${phase}: +(\\d{1,3})%`, 'gu'))].at(-1)?.[1];
      if (percent === undefined) continue;
      const detail = `fetching the repository: ${Math.floor(Number(percent) / 10) * 10}% ${done}`;
      if (detail !== told) progress(detail);
      told = detail;
    }
  };
}
