import { Failure } from '../../../domain/failure.ts';
import { explained } from '../../../domain/reason.ts';
import { providerFailures } from '../../shared/provider-failures.ts';

export const providerName = 'github';

export const failures = providerFailures(providerName);
export const { failed, notFound, unauthorized, malformed, parse, tooLarge } = failures;

/** The host gave up on a query. A smaller one may do. */
export class TooHeavy extends Failure<'provider_failed'> {
  /** Without a status, GitHub says so in its answer. */
  constructor(status: number | null = null) {
    const reason = status === null ? explained('a query took it too long') : ({ code: 'server_error', status } as const);
    super('provider_failed', { provider: providerName, reason });
  }
}
