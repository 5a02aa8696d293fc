/**
 * A cache of results that are expensive to get from a host. It survives a restart. Its size is bounded, and the least recently used entries
 * are removed first. Callers also work without it, only slower, so an entry may disappear at any time.
 *
 * Entries of one scope are never visible in another. Neither a scope nor a key nor a value contains a secret. Failure of both methods:
 * `store_unavailable`. It is closed with the store that it belongs to.
 */
export interface ListingCache {
  /** Returns the value exactly as it was put, or null if it is not known (any more). */
  get(scope: string, key: string): Promise<string | null>;

  /** Stores the value in place of an earlier one. A value that is larger than the bound is not stored; this is not a failure. */
  put(scope: string, key: string, value: string): Promise<void>;
}
