import { Failure } from '../../domain/failure.ts';
import type { Reason } from '../../domain/reason.ts';

const retryAfterSeconds = 5;

export function storeUnavailable(reason: Reason, cause?: unknown): Failure<'store_unavailable'> {
  return new Failure('store_unavailable', { reason, retryAfterSeconds }, { cause });
}

/** The failure for a row that can be read, but whose content is not valid. */
export function damagedRecord(cause?: unknown): Failure<'store_unavailable'> {
  return storeUnavailable({ code: 'damaged' }, cause);
}
