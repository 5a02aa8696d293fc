const texts = new WeakMap<object, string>();

/**
 * The value as JSON. What is answered is never changed afterwards, so a value that is answered again is not written
 * again.
 */
export function jsonOf(value: unknown): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  let text = texts.get(value);
  if (text === undefined) {
    text = JSON.stringify(value);
    texts.set(value, text);
  }
  return text;
}
