const headerBytes = 8;

/**
 * Decodes the engine's stream of an execution or a log. Each frame has one byte for the output (2 is the standard error), three zero bytes,
 * the length in four bytes, and the content. Passes the content on in the pieces in which it arrives, each with the number of missing bytes
 * of its frame.
 */
export function createFrameReader(
  onContent: (stream: 'stdout' | 'stderr', content: Buffer, toCome: number) => void,
): (chunk: Buffer) => void {
  let header = Buffer.alloc(0);
  let missing = 0;
  let stream: 'stdout' | 'stderr' = 'stdout';
  return (chunk) => {
    for (let rest = chunk; rest.length > 0; ) {
      if (missing > 0) {
        const content = rest.subarray(0, missing);
        rest = rest.subarray(content.length);
        missing -= content.length;
        onContent(stream, content, missing);
        continue;
      }
      const wanted = headerBytes - header.length;
      header = Buffer.concat([header, rest.subarray(0, wanted)]);
      rest = rest.subarray(wanted);
      if (header.length < headerBytes) continue;
      stream = header[0] === 2 ? 'stderr' : 'stdout';
      missing = header.readUInt32BE(4);
      header = Buffer.alloc(0);
    }
  };
}
