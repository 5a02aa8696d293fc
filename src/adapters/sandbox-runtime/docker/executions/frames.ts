const headerBytes = 8;

/**
 * Takes apart what the engine sends of an execution: frames of a byte for the output (2 is the standard error), three of
 * nothing, the length in four, and the content. The content of a frame is given in as many pieces as it arrives in.
 */
export function createFrameReader(give: (stream: 'stdout' | 'stderr', content: Buffer) => void): (chunk: Buffer) => void {
  let header = Buffer.alloc(0);
  let missing = 0;
  let stream: 'stdout' | 'stderr' = 'stdout';
  return (chunk) => {
    for (let rest = chunk; rest.length > 0; ) {
      if (missing > 0) {
        const content = rest.subarray(0, missing);
        rest = rest.subarray(content.length);
        missing -= content.length;
        give(stream, content);
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
