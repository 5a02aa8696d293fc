import { createCipheriv, createDecipheriv, hash, randomBytes } from 'node:crypto';

/** Encrypts text for a client that sends it back later. Only the deployment can make and read it. The result is safe in a URL. */
export interface TokenCipher {
  encrypt(text: string): string;
  /** Returns the text, or null if this deployment did not encrypt it. */
  decrypt(token: string): string | null;
}

const ivBytes = 12;
const tagBytes = 16;

export function createTokenCipher(secret: string): TokenCipher {
  const key = hash('sha256', secret, 'buffer');
  return {
    encrypt(text) {
      const iv = randomBytes(ivBytes);
      const cipher = createCipheriv('aes-256-gcm', key, iv);
      return Buffer.concat([iv, cipher.update(text), cipher.final(), cipher.getAuthTag()]).toString('base64url');
    },
    decrypt(token) {
      const bytes = Buffer.from(token, 'base64url');
      // Accepts only one spelling of a token, although base64url decodes several to the same bytes.
      if (bytes.length < ivBytes + tagBytes || bytes.toString('base64url') !== token) return null;
      const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, ivBytes)).setAuthTag(bytes.subarray(-tagBytes));
      try {
        return Buffer.concat([decipher.update(bytes.subarray(ivBytes, -tagBytes)), decipher.final()]).toString();
      } catch {
        return null;
      }
    },
  };
}
