/** Returns a request of one message. */
export function wrapped(text: string, flags = 0): Buffer {
  const content = Buffer.from(text);
  const header = Buffer.alloc(5);
  header.writeUInt8(flags);
  header.writeUInt32BE(content.length, 1);
  return Buffer.concat([header, content]);
}
