import type { IdempotencyClaim, ClaimOutcome } from '../../../ports/idempotency-claim.ts';

interface KeptClaim {
  readonly fingerprint: string;
  readonly recordId: string;
}

/** The claims on one sort of record. */
export class Claims {
  readonly #kept = new Map<string, KeptClaim>();

  /** What the claim says if it was made before; null if it is new. */
  find(claim: IdempotencyClaim | undefined): ClaimOutcome | null {
    const kept = claim && this.#kept.get(placeOf(claim));
    if (claim === undefined || kept === undefined) return null;
    return kept.fingerprint === claim.fingerprint ? { kind: 'repeated', id: kept.recordId } : { kind: 'conflict' };
  }

  keep(claim: IdempotencyClaim | undefined, recordId: string): void {
    if (claim !== undefined) this.#kept.set(placeOf(claim), { fingerprint: claim.fingerprint, recordId });
  }

  forget(recordId: string): void {
    for (const [place, kept] of this.#kept) if (kept.recordId === recordId) this.#kept.delete(place);
  }
}

function placeOf({ ownerId, key }: IdempotencyClaim): string {
  return JSON.stringify([ownerId, key]);
}
