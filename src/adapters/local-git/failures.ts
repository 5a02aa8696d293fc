import { Failure } from '../../domain/failure.ts';

/** The name that the provider is configured by. */
export const providerName = 'local';

export function failed(reason: string, cause?: unknown): Failure<'provider_failed'> {
  return new Failure('provider_failed', { provider: providerName, reason }, cause === undefined ? {} : { cause });
}

export function timedOut(limitMs: number): Failure<'provider_timeout'> {
  return new Failure('provider_timeout', { provider: providerName, limitMs });
}

export function notFound(repository: string): Failure<'repository_not_found'> {
  return new Failure('repository_not_found', { repository });
}

export function tooLarge(limit: string): Failure<'provider_failed'> {
  return failed(`the directory or its history is too large to list (limit: ${limit})`);
}
