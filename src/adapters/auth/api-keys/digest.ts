import { hash, timingSafeEqual } from 'node:crypto';

/** SHA-256 of a key, in hexadecimal: what is kept of it. */
export function digestOf(key: string): string {
  return hash('sha256', key, 'hex');
}

/** Compares two digests in a time that does not depend on where they differ. */
export function sameDigest(a: string, b: string): boolean {
  const [left, right] = [Buffer.from(a), Buffer.from(b)];
  return left.length === right.length && timingSafeEqual(left, right);
}
