import { Failure } from '../../../domain/failure.ts';
import type { CheckoutRequest } from '../../../ports/repository-checkouts.ts';
import type { GitExit } from '../../shared/git-process.ts';
import { providerFailures } from '../../shared/provider-failures.ts';

/** What git could not do because of what the mirror is like: it is made anew, once. */
export class Damage extends Error {}

type Failed = (reason: string, cause?: unknown) => Error;

/** The failure where a git ended badly because of this machine; null where it was something else. The words are without a secret. */
export function troubleOfMachine({ signal }: GitExit, words: string, failed: Failed): Error | null {
  const cause = new Error(words);
  if (signal !== null) return failed('git was killed; the machine may be short of memory', cause);
  if (/No space left|quota exceeded/iu.test(words)) return failed('the disk that repositories are brought to is full', cause);
  if (/temporarily unavailable|cannot fork|unable to create (?:async )?thread|Too many open files/iu.test(words)) {
    return failed('the machine is short of processes or files', cause);
  }
  if (/out of memory|memory limit|attempting to allocate|Cannot allocate/iu.test(words)) {
    return failed('the machine is short of memory, or the repository has an object that is too large', cause);
  }
  return null;
}

/** What a failure is about. */
interface Subject {
  readonly provider: string;
  readonly repository: string;
  /** Was a credential sent? Who sent none, and is refused, can't see the repository. */
  readonly authorized: boolean;
}

/** The failure that a host's status means. */
export function failureOfStatus(subject: Subject, status: number, retryAfter: string | null): Failure {
  const { failed, down, notFound, forbidden, unauthorized, rateLimited } = providerFailures(subject.provider);
  const cause = new Error(`status ${status}`);
  if (status === 429 || (status === 403 && retryAfter !== null)) return rateLimited(waitOf(retryAfter));
  if ((status === 401 || status === 403) && !subject.authorized) return notFound(subject.repository);
  if (status === 401) return unauthorized(cause);
  if (status === 403) return forbidden(subject.repository, cause);
  if (status === 404 || status === 410) return notFound(subject.repository);
  if (status >= 300 && status < 400) return failed('it sends git elsewhere, where the credential must not go; check its URL', cause);
  if (status >= 500) return down(`it answered git with status ${status}`, cause);
  return failed(`it answered git with status ${status}, which was not expected`, cause);
}

const defaultWaitMs = 60_000;
const longestWaitMs = 24 * 3_600_000;

function waitOf(retryAfter: string | null): number {
  return retryAfter !== null && /^\d{1,9}$/u.test(retryAfter) ? Math.min(Number(retryAfter) * 1000, longestWaitMs) : defaultWaitMs;
}

export function noBranch({ repository }: Subject, branch: string): Failure {
  return new Failure('branch_not_found', { repository, branch });
}

export function noCommit({ repository }: Subject, branch: string): Failure {
  return new Failure('repository_empty', { repository, branch });
}

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
    [/Could not resolve/u, () => down("the name of its host can't be resolved", cause)],
    [/certificate|SSL|TLS/u, () => failed('its certificate is not trusted', cause)],
    [/dubious ownership/u, () => failed('the git folder belongs to somebody else', cause)],
    [/fsck error|in strict mode/iu, () => failed('the repository has objects that git refuses as malformed or dangerous', cause)],
    [/unable to access|connect|RPC failed|early EOF|hung up/iu, () => down('the connection failed or broke off', cause)],
  ];
  return readings.find(([pattern]) => pattern.test(words))?.[1]() ?? new Damage('git could not fetch', { cause });
}

/** The text without anything of the credential, in whatever form git may tell it. */
function scrub(text: string, authorization: string | null): string {
  return secretsIn(authorization).reduce((scrubbed, secret) => scrubbed.replaceAll(secret, '***'), text);
}

function secretsIn(authorization: string | null): string[] {
  if (authorization === null) return [];
  const value = authorization.slice(authorization.indexOf(' ') + 1);
  const decoded = Buffer.from(value, 'base64').toString('utf8');
  const password = decoded.slice(decoded.indexOf(':') + 1);
  return [authorization, value, decoded, password, encodeURIComponent(password)].filter((secret) => secret.length > 3);
}
