import type { LimitReached } from '../domain/admission-limits.ts';

/**
 * A caller's promise that two requests with one key are the same request. It is written in one transaction with the record of the first
 * request, and deleted with that record.
 */
export interface IdempotencyClaim {
  readonly ownerId: string;
  /** The caller's idempotency key. */
  readonly key: string;
  /** A digest of the request. Another digest under the same key is a conflict. */
  readonly fingerprint: string;
}

/** The result of a claim that was made before: `id` is the record of the first request. */
export type ClaimOutcome =
  | { readonly kind: 'repeated'; readonly id: string }
  | { readonly kind: 'conflict' };

/** Nothing was written, because of a limit. */
export type Limited = { readonly kind: 'limit'; readonly reached: LimitReached };

export type InsertOutcome = { readonly kind: 'inserted' } | Limited | ClaimOutcome;
