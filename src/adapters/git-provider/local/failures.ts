import type { Failure } from '../../../domain/failure.ts';
import { providerFailures } from '../../shared/provider-failures.ts';

/** The name that the provider is configured by. */
export const providerName = 'local';

export const { failed, timedOut, notFound } = providerFailures(providerName);

export function tooLarge(limit: string): Failure<'provider_failed'> {
  return failed({ code: 'too_large', limit });
}
