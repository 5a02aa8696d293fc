/**
 * Keeps what was learnt elsewhere at a price and could be learnt again: a cache that survives a restart. Bounded in
 * size; what was not used for longest goes first. It is never the truth: a caller works without it, only dearer.
 *
 * A scope is what may share knowledge: entries of one are never seen by another. Neither a scope nor a key nor a value
 * holds a secret. Failure: `store_unavailable`.
 */
export interface ListingCache {
  /** The value, as it was put; null when it is not known (any more). */
  get(scope: string, key: string): Promise<string | null>;

  /** Keeps the value in the place of an earlier one. What is larger than the bound is not kept. */
  put(scope: string, key: string, value: string): Promise<void>;
}
