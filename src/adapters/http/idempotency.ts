import { hash } from 'node:crypto';
import { z } from 'zod';
import type { IdempotencyClaim } from '../../ports/idempotency-claim.ts';

export const idempotencyHeaders = z.object({
  'Idempotency-Key': z
    .string()
    .regex(/^[\x21-\x7e]{1,255}$/, 'must be 1 to 255 visible ASCII characters')
    .optional()
    .meta({ description: 'Two requests with one key are one request: the second gets the answer of the first.' }),
});

/** The claim of a request that carries an idempotency key; `asked` is everything that it asks for. */
export function claimOf(
  headers: z.output<typeof idempotencyHeaders>,
  ownerId: string,
  operationId: string,
  asked: unknown,
): { readonly claim?: IdempotencyClaim } {
  const key = headers['Idempotency-Key'];
  if (key === undefined) return {};
  return { claim: { ownerId, key, fingerprint: hash('sha256', JSON.stringify([operationId, asked])) } };
}
