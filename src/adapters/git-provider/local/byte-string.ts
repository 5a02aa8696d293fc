/**
 * Paths in git are bytes. While they are compared, they are kept as byte strings (one character a byte), so that two
 * paths which are not UTF-8 stay two.
 */
export function toByteString(text: string): string {
  return Buffer.from(text, 'utf8').toString('latin1');
}

/** The text of a byte string; bytes that are not UTF-8 become U+FFFD. */
export function fromByteString(bytes: string): string {
  return Buffer.from(bytes, 'latin1').toString('utf8');
}

/** Splits a stream of NUL-terminated entries into byte strings. */
export function splitAtNul(onEntry: (entry: string) => void): (chunk: Buffer) => void {
  let rest = '';
  return (chunk) => {
    const entries = (rest + chunk.toString('latin1')).split('\0');
    rest = entries.pop() ?? '';
    for (const entry of entries) onEntry(entry);
  };
}
