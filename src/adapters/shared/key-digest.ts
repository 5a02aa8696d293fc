import { hash } from 'node:crypto';

/** Returns the SHA-256 of an API key, in hexadecimal. Only this is stored, and `Auth` identifies keys by it. */
export function keyDigest(key: string): string {
  return hash('sha256', key, 'hex');
}

export const digestLength = 64;
