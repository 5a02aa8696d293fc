import { maskUrlPasswords } from '../../../domain/credentials.ts';
import { Failure } from '../../../domain/failure.ts';
import type { CheckoutRequest } from '../../../ports/repository-checkouts.ts';
import type { GitExit, GitResult } from '../../shared/git-process.ts';
import { hostMessage, withoutSecrets } from '../../shared/git-host-message.ts';
import { defaultRateLimitMs, longestRateLimitMs, providerFailures } from '../../shared/provider-failures.ts';
import { isUrl } from './mirror-git.ts';

/** Git failed because of the state of the mirror. The mirror is then made again, once. */
export class Corruption extends Error {}

/** The host does not have the ref that it listed. */
export class RefNotFound extends Error {}

/** Returns the failure if git ended because of this machine. Otherwise null. The standard error must not contain a secret. */
export function machineFailure({ signal, stderr }: GitExit, provider: string): Error | null {
  const { failed } = providerFailures(provider);
  const cause = new Error(stderr);
  if (signal !== null) return failed('git was killed; the machine may be short of memory', cause);
  if (/No space left|quota exceeded/iu.test(stderr)) return failed({ code: 'disk_full' }, cause);
  if (/temporarily unavailable|cannot fork|unable to create (?:async )?thread|Too many open files/iu.test(stderr)) {
    return failed('the machine is short of processes or files', cause);
  }
  if (/out of memory|memory limit|attempting to allocate|Cannot allocate/iu.test(stderr)) {
    return failed('the machine is short of memory, or the repository has an object that is too large', cause);
  }
  return null;
}

export function requireSuccess(exit: GitExit, provider: string): void {
  if (exit.code === 0) return;
  const stderr = maskUrlPasswords(exit.stderr);
  throw machineFailure({ ...exit, stderr }, provider) ?? new Corruption(`git ended with exit code ${exit.code}: ${stderr}`);
}

/** Returns the failure for a host's status. If a host refuses a request without a credential, the repository counts as not found. */
export function failureOfStatus({ provider, repository, remote }: CheckoutRequest, status: number, retryAfter: string | null): Failure {
  const { failed, unexpected, notFound, forbidden, unauthorized, rateLimited } = providerFailures(provider);
  const cause = new Error(`status ${status}`);
  if (status === 429 || (status === 403 && retryAfter !== null)) return rateLimited(retryAfterMs(retryAfter));
  if ((status === 401 || status === 403) && remote.authorization === null) return notFound(repository);
  if (status === 401) return unauthorized(cause);
  if (status === 403) return forbidden(repository, cause);
  if (status === 404 || status === 410) return notFound(repository);
  if (status >= 300 && status < 400) return failed('it sends git elsewhere, where the credential must not go; check its URL', cause);
  return unexpected(status, cause);
}

/** Returns the failure for the text of an `ERR` packet, with which a host refuses a request in git's wire format. */
export function failureOfErrorPacket({ provider, remote }: CheckoutRequest, text: string): Failure {
  const message = hostMessage(text, formsOf(remote.authorization));
  return providerFailures(provider).failed(message === '' ? refusedRequest : `${refusedRequest}: ${message}`);
}

const refusedRequest = 'it refused what git asked for';

function retryAfterMs(retryAfter: string | null): number {
  const isKnown = retryAfter !== null && /^\d{1,9}$/u.test(retryAfter);
  return isKnown ? Math.min(Number(retryAfter) * 1000, longestRateLimitMs) : defaultRateLimitMs;
}

export function branchNotFound({ repository }: CheckoutRequest, branch: string): Failure {
  return new Failure('branch_not_found', { repository, branch });
}

/** Returns the failure for the exit of a fetch. Git's own text, without the credential, is only in the cause, for the log. */
export function failureOfFetch(request: CheckoutRequest, exit: GitExit, answerMs = 0): Error {
  const { provider, repository, remote } = request;
  const { failed, notFound, timedOut } = providerFailures(provider);
  // Git's check of objects may quote a URL of .gitmodules.
  const stderr = maskUrlPasswords(withoutSecrets(exit.stderr, formsOf(remote.authorization)));
  const cause = new Error(`git ended with exit code ${exit.code}: ${stderr}`);
  const ofMachine = machineFailure({ ...exit, stderr }, provider);
  if (ofMachine !== null) return ofMachine;
  const status = /returned error: (\d{3})/u.exec(stderr)?.[1];
  if (status !== undefined) return failureOfStatus(request, Number(status), null);
  const meanings: readonly (readonly [text: RegExp, failure: () => Error])[] = [
    [/Authentication failed|could not read (?:Username|Password)/u, () => failureOfStatus(request, 401, null)],
    [/repository '.*' not found|does not appear to be a git repository|does not exist/u, () => notFound(repository)],
    [/couldn't find remote ref/u, () => new RefNotFound('the ref is not there', { cause })],
    [/remote error/u, () => failed(refusedRequest, cause)],
    [/redirect/iu, () => failureOfStatus(request, 302, null)],
    [/too slow|timed out/iu, () => timedOut(answerMs)],
    [/Could not resolve/u, () => failed({ code: 'host_unknown' }, cause)],
    [/certificate|SSL|TLS/u, () => failed({ code: 'certificate_untrusted' }, cause)],
    [/dubious ownership/u, () => failed('the git folder belongs to somebody else', cause)],
    [/fsck error|in strict mode/iu, () => failed('the repository has objects that git refuses as malformed or dangerous', cause)],
    [/unable to access|connect|RPC failed|early EOF|hung up/iu, () => failed({ code: 'connection_lost' }, cause)],
  ];
  return meanings.find(([text]) => text.test(stderr))?.[1]() ?? new Corruption('git could not fetch', { cause });
}

/** Returns what the host wrote about a refused push. Empty for a local folder, because git's text may then show paths of this machine. */
export function messageOfHost({ remote }: CheckoutRequest, { stdout, stderr }: GitResult): string {
  if (!isUrl(remote.url)) return '';
  // The standard error is decoded as Latin-1, byte for byte.
  const lines = [...Buffer.from(stderr, 'latin1').toString('utf8').matchAll(/^remote: (.*)$/gmu)].map(([, line = '']) => line);
  // GitHub counts the objects that it got. GitLab draws frames.
  const text = lines.filter((line) => /[\p{L}\p{N}]/u.test(line) && !line.startsWith('Resolving deltas')).join('\n');
  const hook = /\[remote rejected\] \((.*)\)$/mu.exec(stdout)?.[1] ?? '';
  return hostMessage(text === '' ? hook : text, formsOf(remote.authorization));
}

/** Returns the credential in every form that git may print. */
function formsOf(authorization: string | null): readonly string[] {
  if (authorization === null) return [];
  const value = authorization.slice(authorization.indexOf(' ') + 1);
  const decoded = Buffer.from(value, 'base64').toString('utf8');
  const password = decoded.slice(decoded.indexOf(':') + 1);
  return [authorization, value, decoded, password, encodeURIComponent(password)];
}
