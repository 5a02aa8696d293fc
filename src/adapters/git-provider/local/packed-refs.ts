const lineFeed = 0x0a;

/** The object id of a ref in the content of a `packed-refs` file; null where it is not in it. */
export function findPackedRef(content: Buffer, ref: string): string | null {
  const ending = Buffer.from(` ${ref}`);
  for (let at = content.indexOf(ending); at !== -1; at = content.indexOf(ending, at + 1)) {
    const end = at + ending.length;
    if (end < content.length && content[end] !== lineFeed) continue;
    const start = at === 0 ? 0 : content.lastIndexOf(lineFeed, at - 1) + 1;
    const oid = content.toString('latin1', start, at);
    if (/^[0-9a-f]+$/u.test(oid)) return oid;
  }
  return null;
}
