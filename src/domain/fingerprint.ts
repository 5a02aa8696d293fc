/** Returns JSON with sorted keys and without undefined members. */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map((item) => canonicalJson(item)).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null';
  const entries = Object.entries(value)
    .filter(([, member]) => member !== undefined)
    .toSorted(([a], [b]) => (a < b ? -1 : 1));
  return `{${entries.map(([key, member]) => `${JSON.stringify(key)}:${canonicalJson(member)}`).join(',')}}`;
}

/**
 * Returns a digest of 64 bits of the value's content: FNV-1a over code points instead of bytes. It is good enough for our own values, but
 * not against an attacker. It must not change, because message ids of repeated requests and stored pool members are compared by it.
 */
export function fingerprintOf(value: unknown): string {
  let hash = 0xcbf29ce484222325n;
  for (const char of canonicalJson(value)) {
    hash = BigInt.asUintN(64, (hash ^ BigInt(char.codePointAt(0) ?? 0)) * 0x100000001b3n);
  }
  return hash.toString(16).padStart(16, '0');
}
