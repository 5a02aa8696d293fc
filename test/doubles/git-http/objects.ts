/** How many objects the pack holds that an answer of protocol 2 to a fetch carries; 0 where it carries none. */
export function objectsIn(answer: Buffer): number {
  const pack: Buffer[] = [];
  for (let at = 0; at + 4 <= answer.length; ) {
    const length = Number.parseInt(answer.toString('latin1', at, at + 4), 16);
    if (Number.isNaN(length)) return 0;
    // The first band is the pack, the others are words.
    if (length > 5 && answer[at + 4] === 1) pack.push(answer.subarray(at + 5, at + length));
    if (pack.length > 0 && Buffer.concat(pack).length >= 12) break;
    at += Math.max(length, 4);
  }
  const header = Buffer.concat(pack);
  return header.toString('latin1', 0, 4) === 'PACK' ? header.readUInt32BE(8) : 0;
}
