import type { ClaimOutcome, IdempotencyClaim } from '../ports/idempotency-claim.ts';

interface Claims {
  findClaim(claim: IdempotencyClaim): Promise<ClaimOutcome | null>;
}

/**
 * Does the work of a request, which may check the claim itself. If it fails, returns the outcome of the claim, if there is one: a repeated
 * request is answered whatever has changed since the first, and the first can also end meanwhile.
 */
export async function unlessRepeated<T>(
  claims: Claims, claim: IdempotencyClaim | undefined, work: () => Promise<T>,
): Promise<T | ClaimOutcome> {
  try {
    return await work();
  } catch (error) {
    const earlier = claim === undefined ? null : await claims.findClaim(claim);
    if (earlier === null) throw error;
    return earlier;
  }
}
