import { createCipheriv, createDecipheriv, hash, randomBytes } from 'node:crypto';
import type { z } from 'zod';

/** Encrypts values for a client that sends them back later. Only who has the secret can make and read them. They are safe in a URL. */
export interface SealedTokens<S extends z.ZodType> {
  encode(content: z.input<S>): string;
  /** Returns the content, or null if it was not encoded with this secret and schema. */
  decode(token: string): z.output<S> | null;
}

const ivBytes = 12;
const tagBytes = 16;

export function createSealedTokens<S extends z.ZodType>(secret: string, schema: S): SealedTokens<S> {
  const key = hash('sha256', secret, 'buffer');
  return {
    encode(content) {
      const iv = randomBytes(ivBytes);
      const cipher = createCipheriv('aes-256-gcm', key, iv);
      return Buffer.concat([iv, cipher.update(JSON.stringify(content)), cipher.final(), cipher.getAuthTag()]).toString('base64url');
    },
    decode(token) {
      const bytes = Buffer.from(token, 'base64url');
      // Accepts only one spelling of a token, although base64url decodes several to the same bytes.
      if (bytes.length < ivBytes + tagBytes || bytes.toString('base64url') !== token) return null;
      const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, ivBytes)).setAuthTag(bytes.subarray(-tagBytes));
      try {
        const text = Buffer.concat([decipher.update(bytes.subarray(ivBytes, -tagBytes)), decipher.final()]).toString();
        return schema.safeParse(JSON.parse(text)).data ?? null;
      } catch {
        return null;
      }
    },
  };
}
