import type { LimitReached } from '../../../../src/domain/admission-limits.ts';
import { type Page, type PageKey, pageOf, type PageRequest } from '../../../../src/domain/page.ts';
import type { ClaimOutcome, IdempotencyClaim } from '../../../../src/ports/idempotency-claim.ts';

/** Runs the work without a break, so no other call can come in between. */
export async function atOnce<T>(work: () => T): Promise<T> {
  return work();
}

interface KeptClaim {
  readonly fingerprint: string;
  readonly recordId: string;
}

/** The idempotency claims on one kind of record. */
export class Claims {
  readonly #kept = new Map<string, KeptClaim>();

  /** Returns the outcome if the claim was made before. Null if it is new. */
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

/** Returns the page of the rows, sorted by their keys. */
export function pageIn<T>(
  rows: readonly T[],
  keyOf: (row: T) => PageKey,
  direction: 'asc' | 'desc',
  { after, limit }: PageRequest,
): Page<T> {
  const sign = direction === 'asc' ? 1 : -1;
  const order = (a: PageKey, b: PageKey): number => sign * (compare(a.value, b.value) || compare(a.id, b.id));
  const following = rows
    .filter((row) => after === null || order(keyOf(row), after) > 0)
    .toSorted((a, b) => order(keyOf(a), keyOf(b)));
  return pageOf(following.slice(0, limit + 1), limit, keyOf);
}

/** Returns the first limit that its count has reached. */
export function firstReached(rules: readonly (readonly [LimitReached['limit'], max: number | null, count: number])[]): LimitReached | null {
  for (const [limit, max, count] of rules) if (max !== null && count >= max) return { limit, max };
  return null;
}

/** Returns the rows after the given id, sorted by id. */
export function scanOf<T extends { readonly id: string }>(rows: readonly T[], afterId: string | null, limit: number): T[] {
  return rows
    .filter(({ id }) => afterId === null || id > afterId)
    .toSorted((a, b) => compare(a.id, b.id))
    .slice(0, limit);
}

export function compare<V extends number | string>(a: V, b: V): number {
  return a < b ? -1 : Number(a > b);
}
