import { Failure } from '../../../domain/failure.ts';
import { providerFailures } from '../../shared/provider-failures.ts';

/** What a failure is about. */
export interface Subject {
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
  if (status >= 500) return down({ code: 'server_error', status }, cause);
  return failed({ code: 'unexpected_status', status }, cause);
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
