import { randomBytes } from 'node:crypto';
import type { Random } from '../../ports/random.ts';

/** The operating system's source of randomness. */
export function createSystemRandom(): Random {
  return {
    id: (prefix) => `${prefix}-${base32(randomBytes(16))}`,
    secret: () => randomBytes(32).toString('base64url'),
  };
}

const alphabet = 'abcdefghijklmnopqrstuvwxyz234567';

/** RFC 4648's base 32 in lower case, without padding: 16 bytes make 26 characters. */
function base32(bytes: Uint8Array): string {
  let text = '';
  let held = 0;
  let bits = 0;
  for (const byte of bytes) {
    held = (held << 8) | byte;
    for (bits += 8; bits >= 5; bits -= 5) text += alphabet.charAt((held >>> (bits - 5)) & 31);
    held &= (1 << bits) - 1;
  }
  return bits === 0 ? text : text + alphabet.charAt((held << (5 - bits)) & 31);
}
