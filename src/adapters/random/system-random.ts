import { randomBytes } from 'node:crypto';
import type { Random } from '../../ports/random.ts';

const alphabet = 'abcdefghijklmnopqrstuvwxyz234567';

/** Uses the operating system's source of randomness. */
export function createSystemRandom(): Random {
  return {
    // 26 characters of 5 bits each are 130 bits, a little more than a UUID.
    id: (prefix) => `${prefix}-${Array.from(randomBytes(26), (byte) => alphabet.charAt(byte % 32)).join('')}`,
    secret: () => randomBytes(32).toString('base64url'),
  };
}
