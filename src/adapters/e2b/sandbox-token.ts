import { createHmac, hash } from 'node:crypto';
import pLimit from 'p-limit';
import type { Skep } from '../../application/skep.ts';
import type { PageKey } from '../../domain/page.ts';
import { isSameSecret } from '../../domain/port-access.ts';
import type { Sandbox } from '../../domain/sandbox.ts';

/** What a signed URL allows: E2B's names. */
export type FileOperation = 'read' | 'write';

export interface SignedFile {
  readonly path: string;
  readonly operation: FileOperation;
  readonly user: string;
  readonly signature: string;
  /** In seconds since the epoch; null for never. */
  readonly expiration: string | null;
}

/** Returns the token by which E2B's clients reach what is in a sandbox. It is good until the sandbox is deleted, on every server. */
export function sandboxToken({ secret }: { readonly secret: string }, sandboxId: string): string {
  return createHmac('sha256', `e2b ${secret}`).update(sandboxId).digest('hex');
}

/** Returns true if the signature was made with the token. Source: `getSignature` of the npm package `e2b`. */
function isSignedBy(token: string, { path, operation, user, signature, expiration }: SignedFile): boolean {
  const text = [path, operation, user, token, ...(expiration === null ? [] : [expiration])].join(':');
  return isSameSecret(signature, `v1_${hash('sha256', text, 'base64').replace(/=+$/, '')}`);
}

/** Returns true if the URL may not be used any more. */
export function isExpired({ expiration }: SignedFile, nowMs: number): boolean {
  return expiration !== null && !(Number(expiration) * 1000 > nowMs);
}

const pageSize = 100;

/**
 * Returns the sandbox whose token made the signature; null if there is none. The URL does not name it, so the tokens of all sandboxes are
 * tried, the newest first: about 10 ms for a thousand.
 */
export function findSigned(skep: Skep, signed: SignedFile): Promise<Sandbox | null> {
  return searches(() => search(skep, signed));
}

/** Whoever sends made-up signatures holds up nobody but others with signatures. */
const searches = pLimit(1);

async function search(skep: Skep, signed: SignedFile): Promise<Sandbox | null> {
  let after: PageKey | null = null;
  do {
    const page: Awaited<ReturnType<Skep['sandboxes']['search']>> = await skep.sandboxes.search(null, {}, { after, limit: pageSize });
    const found = page.items.find(({ id }) => isSignedBy(sandboxToken(skep, id), signed));
    if (found !== undefined) return found;
    after = page.next;
  } while (after !== null);
  return null;
}
