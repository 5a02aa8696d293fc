/**
 * A cache of what git hosts said. It survives a restart and is bounded in size: the entry that was not used for the longest
 * time goes first. Callers also work without it, only slower.
 *
 * Entries of one scope are never seen in another. Scopes, keys and values hold no secret. Failure: `store_unavailable`.
 */
export interface ListingCache {
  /** Returns the value; null if there is none (any more). */
  get(scope: string, key: string): Promise<string | null>;

  /** Stores the value in place of an earlier one. A value that is larger than the bound is not kept. */
  put(scope: string, key: string, value: string): Promise<void>;
}
