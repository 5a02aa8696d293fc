import type { z } from 'zod';
import { explained, type Reason } from '../../domain/reason.ts';
import { Failure } from '../../domain/failure.ts';

/** How long a refused client waits if the host names no time: the period of most of GitLab's limits, and GitHub's recommendation. */
export const defaultRateLimitMs = 60_000;
/** A longer wait is a mistake of the host, and would lock the deployment out. */
export const longestRateLimitMs = 24 * 3_600_000;

export type ProviderFailures = ReturnType<typeof providerFailures>;

/**
 * Creates the failures of a git provider. A plain text is a reason without a code. The host's own text may contain a secret: pass it
 * only through `hostMessage`.
 */
export function providerFailures(provider: string) {
  const failed = (why: Reason | string, cause?: unknown): Failure<'provider_failed'> =>
    new Failure('provider_failed', { provider, reason: typeof why === 'string' ? explained(why) : why }, { cause });
  const malformed = (what: string): Failure<'provider_failed'> => failed({ code: 'malformed_answer', about: what });
  return {
    failed,
    timedOut: (limitMs: number): Failure<'provider_timeout'> => new Failure('provider_timeout', { provider, limitMs }),
    notFound: (repository: string): Failure<'repository_not_found'> => new Failure('repository_not_found', { repository }),
    forbidden: (repository: string, cause: unknown): Failure<'repository_forbidden'> =>
      new Failure('repository_forbidden', { provider, repository }, { cause }),
    pullRequestRefused: (repository: string, branch: string, reason: Reason, cause?: unknown): Failure<'pull_request_refused'> =>
      new Failure('pull_request_refused', { provider, repository, branch, reason }, { cause }),
    unauthorized: (cause?: unknown): Failure<'provider_unauthorized'> => new Failure('provider_unauthorized', { provider }, { cause }),
    ssoRequired: (ssoUrl: string | null): Failure<'provider_unauthorized'> => new Failure('provider_unauthorized', { provider, ssoUrl }),
    rateLimited: (waitMs: number): Failure<'provider_rate_limited'> =>
      new Failure('provider_rate_limited', { provider, retryAfterSeconds: Math.max(1, Math.ceil(waitMs / 1000)) }),
    malformed,
    /** Throws `provider_failed` if the value does not match the documented schema. */
    parse: <T>(schema: z.ZodType<T>, value: unknown, what: string): T => {
      const { success, data } = schema.safeParse(value);
      if (!success) throw malformed(what);
      return data;
    },
    /** `limit` completes a sentence: `100 files in a directory`. */
    tooLarge: (limit: string): Failure<'provider_failed'> => failed({ code: 'too_large', limit }),
    unexpected: (status: number, cause: unknown): Failure<'provider_failed'> =>
      failed({ code: status >= 500 ? 'server_error' : 'unexpected_status', status }, cause),
  };
}
