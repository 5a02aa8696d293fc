import { maskUrlPasswords } from '../../domain/credentials.ts';
import { outputTail } from '../../domain/output-tail.ts';
import { plainText } from '../../domain/plain-text.ts';

const maxBytes = 1000;

/** Returns the beginning of a git host's text, on one line, without control characters, passwords in URLs and these secrets. */
export function hostMessage(text: string, secrets: readonly string[]): string {
  // Control characters go first, since a secret that contains some would not be found.
  const line = maskUrlPasswords(withoutSecrets(plainText(text), secrets)).replaceAll(/\s+/gu, ' ');
  const bytes = Buffer.from(line);
  const message = outputTail(bytes.subarray(0, maxBytes), maxBytes);
  // The cut can be inside a character.
  return bytes.length > maxBytes ? message.replace(/\uFFFD+$/u, '') : message;
}

export function withoutSecrets(text: string, secrets: readonly string[]): string {
  return secrets.filter((secret) => secret.length > 3).reduce((redacted, secret) => redacted.replaceAll(secret, '***'), text);
}
