import { explained, type Reason } from '../../domain/reason.ts';
import { Failure, isFailureOf } from '../../domain/failure.ts';

const outages = new WeakSet<Error>();

/** Is it the failure of a host that can't be reached, that takes too long, or that fails by its own admission? */
export function isOutage(error: unknown): boolean {
  return isFailureOf(error, 'provider_timeout') || (error instanceof Error && outages.has(error));
}

/** Makes the failures of one git provider. A text explains what has no code. It is never the host's own, which may hold a secret. */
export function providerFailures(provider: string) {
  const failed = (why: Reason | string, cause?: unknown): Failure<'provider_failed'> => {
    const reason = typeof why === 'string' ? explained(why) : why;
    return new Failure('provider_failed', { provider, reason }, cause === undefined ? {} : { cause });
  };
  return {
    failed,
    timedOut: (limitMs: number): Failure<'provider_timeout'> => new Failure('provider_timeout', { provider, limitMs }),
    notFound: (repository: string): Failure<'repository_not_found'> => new Failure('repository_not_found', { repository }),
    forbidden: (repository: string, cause?: unknown): Failure<'repository_forbidden'> =>
      new Failure('repository_forbidden', { provider, repository }, cause === undefined ? {} : { cause }),
    unauthorized: (cause?: unknown): Failure<'provider_unauthorized'> =>
      new Failure('provider_unauthorized', { provider }, cause === undefined ? {} : { cause }),
    rateLimited: (waitMs: number): Failure<'provider_rate_limited'> =>
      new Failure('provider_rate_limited', { provider, retryAfterSeconds: Math.max(1, Math.ceil(waitMs / 1000)) }),
    malformed: (what: string): Failure<'provider_failed'> => failed({ code: 'malformed_answer', about: what }),
    tooLarge: (limit: string): Failure<'provider_failed'> => failed({ code: 'too_large', limit }),
    /** A failure of a host that is down. */
    down: (reason: Reason | string, cause?: unknown): Failure<'provider_failed'> => {
      const failure = failed(reason, cause);
      outages.add(failure);
      return failure;
    },
  };
}
