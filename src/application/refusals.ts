import { Failure } from '../domain/failure.ts';
import type { LimitReached } from '../domain/sandbox-limits.ts';

/** Room appears when somebody pauses or deletes a sandbox, which nobody can foretell: a modest guess. */
const limitRetryAfterSeconds = 10;

export function limitFailure({ limit, max }: LimitReached): Failure {
  return new Failure('sandbox_limit_reached', { limit, max, retryAfterSeconds: limitRetryAfterSeconds });
}

export function unknownSpec(specId: string | null): Failure {
  const msg = specId === null ? 'The deployment has no sandbox spec' : `There is no sandbox spec ${JSON.stringify(specId)}`;
  return new Failure('invalid_request', { problems: [{ loc: ['body', 'sandbox_spec_id'], msg, type: 'unknown_sandbox_spec' }] });
}
