/** Remembers since when a sandbox spec is what it is. Failure: `store_unavailable`. */
export interface SpecStore {
  /**
   * When this content of the spec was first seen, in milliseconds since the epoch: `now` for a new id and for a changed
   * content. Idempotent.
   */
  firstSeen(specId: string, fingerprint: string, now: number): Promise<number>;
}
