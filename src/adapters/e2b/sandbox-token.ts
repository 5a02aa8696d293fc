import { createHmac } from 'node:crypto';
import type { Skep } from '../../application/skep.ts';
import { isSameSecret } from '../../domain/credentials.ts';
import { digestLength } from '../shared/key-digest.ts';

/**
 * Returns the token with which E2B's clients access a sandbox. It contains the digest of the key that asked for it. It ends with the key or
 * with the sandbox. Every server computes the same token.
 */
export function sandboxToken({ secret }: Pick<Skep, 'secret'>, sandboxId: string, digest: string): string {
  return digest + createHmac('sha256', `e2b ${secret}`).update(`${sandboxId} ${digest}`).digest('hex');
}

/** Returns the digest of the key in the token. Returns null if the token is not valid for the sandbox. */
export function digestFromToken(skep: Pick<Skep, 'secret'>, sandboxId: string, token: string): string | null {
  const digest = token.slice(0, digestLength);
  return isSameSecret(token, sandboxToken(skep, sandboxId, digest)) ? digest : null;
}
