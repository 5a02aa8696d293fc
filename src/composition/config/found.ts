const shownLength = 60;

/** What was found, in words. Of what may be a secret only its kind is told. */
export function found(value: unknown, secret: boolean): string {
  if (Array.isArray(value)) return value.length === 0 ? 'an empty list' : 'a list';
  if (typeof value === 'boolean') return String(value);
  if (typeof value === 'number') return secret ? 'a number' : String(value);
  if (typeof value !== 'string') return 'a mapping';
  // A URL may have a password in it.
  if (secret || /\/\/[^/]*@/.test(value)) return 'a text';
  return JSON.stringify(value.length > shownLength ? `${value.slice(0, shownLength)}...` : value);
}
