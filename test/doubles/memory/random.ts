import type { Random } from '../../../src/ports/random.ts';

const base32 = 'abcdefghijklmnopqrstuvwxyz234567';
const base64url = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';

/** Ids and secrets that look real. The same seed gives the same values, so they are only for tests. */
export function createSeededRandom(seed = 1): Random {
  const next = numbers(seed);
  const text = (alphabet: string, length: number): string =>
    Array.from({ length }, () => alphabet.charAt(Math.floor(next() * alphabet.length))).join('');
  return {
    id: (prefix) => `${prefix}-${text(base32, 26)}`,
    secret: () => text(base64url, 43),
  };
}

/** Numbers from 0 to below 1 (the generator mulberry32). */
function numbers(seed: number): () => number {
  let state = Math.trunc(seed);
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
