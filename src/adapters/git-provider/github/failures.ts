import type { Failure } from '../../../domain/failure.ts';
import { providerFailures } from '../../shared/provider-failures.ts';

/** The name that the provider is configured by. */
export const providerName = 'github';

export const { failed, timedOut, notFound, unauthorized, rateLimited, malformed, tooLarge, down } = providerFailures(providerName);

const heavy = new WeakSet<Error>();

/** The host gave up on a query. A smaller one may do. */
export function tooHeavy(cause?: Error): Failure<'provider_failed'> {
  const failure = down('a query took it too long', cause);
  heavy.add(failure);
  return failure;
}

export function isTooHeavy(error: unknown): boolean {
  return error instanceof Error && heavy.has(error);
}
