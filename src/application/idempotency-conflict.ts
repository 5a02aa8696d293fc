import { Failure } from '../domain/failure.ts';
import type { IdempotencyClaim } from '../ports/idempotency-claim.ts';

/** Returns the failure of a request whose claim has the key of another request. */
export function idempotencyConflict(claim: IdempotencyClaim | undefined): Failure {
  return new Failure('idempotency_conflict', { key: claim?.key ?? '' });
}
