/**
 * The caller's promise that two requests with one key are the same request. It is kept with the record that the first
 * one made, in the same transaction, and goes when that record is purged.
 */
export interface IdempotencyClaim {
  readonly ownerId: string;
  /** The caller's idempotency key. */
  readonly key: string;
  /** A digest of the request; another one under the same key is a conflict. */
  readonly fingerprint: string;
}

/** What a claim that exists already says. */
export type ClaimOutcome =
  | { readonly kind: 'repeated'; readonly id: string }
  | { readonly kind: 'conflict' };
