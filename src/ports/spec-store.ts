/** Stores the time at which each spec got its current content. Failure: `store_unavailable`. */
export interface SpecStore {
  /**
   * Returns when this content of the spec was first seen, in milliseconds since the epoch: `now` for a new id or a changed
   * content. Idempotent.
   */
  firstSeen(specId: string, fingerprint: string, now: number): Promise<number>;
}
