/** The lines of git's wire format; null stands for what separates them. */
export function readPackets(bytes: Buffer): (string | null)[] | null {
  const packets: (string | null)[] = [];
  for (let at = 0; at < bytes.length; ) {
    const digits = bytes.toString('latin1', at, at + 4);
    if (!/^[0-9a-f]{4}$/u.test(digits)) return null;
    const length = Number.parseInt(digits, 16);
    if (length === 3 || at + length > bytes.length) return null;
    packets.push(length < 4 ? null : bytes.toString('utf8', at + 4, at + length).replace(/\n$/u, ''));
    at += Math.max(length, 4);
  }
  return packets;
}

export const flush = '0000';
export const delimiter = '0001';

export function packet(line: string): string {
  const length = Buffer.byteLength(line) + 5;
  return `${length.toString(16).padStart(4, '0')}${line}\n`;
}
