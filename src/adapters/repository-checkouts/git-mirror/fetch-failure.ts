import type { CheckoutRequest } from '../../../ports/repository-checkouts.ts';
import type { GitExit } from '../../shared/git-process.ts';
import { providerFailures } from '../../shared/provider-failures.ts';
import { Damage, troubleOfMachine } from './damage.ts';
import { failureOfStatus } from './failures.ts';
import { scrub } from './scrub.ts';

/** The host does not have the ref that it listed. */
export class RefGone extends Error {}

type Reading = readonly [words: RegExp, failure: () => Error];

/** The failure that an exit of git that fetches means. It is made of our words: git's are for the log, without the credential. */
export function failureOfFetch(request: CheckoutRequest, exit: GitExit, answerMs = 0): Error {
  const { provider, repository, remote } = request;
  const { failed, down, notFound, timedOut } = providerFailures(provider);
  const subject = { provider, repository, authorized: remote.authorization !== null };
  const words = scrub(exit.stderr, remote.authorization);
  const cause = new Error(`git ended with exit code ${exit.code}: ${words}`);
  const trouble = troubleOfMachine(exit, words, failed);
  if (trouble !== null) return trouble;
  const status = /returned error: (\d{3})/u.exec(words)?.[1];
  if (status !== undefined) return failureOfStatus(subject, Number(status), null);
  const readings: readonly Reading[] = [
    [/Authentication failed|could not read (?:Username|Password)/u, () => failureOfStatus(subject, 401, null)],
    [/repository '.*' not found|does not appear to be a git repository|does not exist/u, () => notFound(repository)],
    [/couldn't find remote ref/u, () => new RefGone('the ref is not there', { cause })],
    [/remote error/u, () => failed('it refused what git asked for', cause)],
    [/redirect/iu, () => failureOfStatus(subject, 302, null)],
    [/too slow|timed out/iu, () => timedOut(answerMs)],
    [/Could not resolve/u, () => down({ code: 'host_unknown' }, cause)],
    [/certificate|SSL|TLS/u, () => failed({ code: 'certificate_untrusted' }, cause)],
    [/dubious ownership/u, () => failed('the git folder belongs to somebody else', cause)],
    [/fsck error|in strict mode/iu, () => failed('the repository has objects that git refuses as malformed or dangerous', cause)],
    [/unable to access|connect|RPC failed|early EOF|hung up/iu, () => down({ code: 'connection_lost' }, cause)],
  ];
  return readings.find(([pattern]) => pattern.test(words))?.[1]() ?? new Damage('git could not fetch', { cause });
}
