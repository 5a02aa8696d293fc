const newline = 0x0a;

/** The other side wrote a line that is longer than what is held in memory for it. */
export class LineTooLong extends Error {}

/**
 * The lines of a stream, one at a time: nothing is read while the last one is worked on, so that what is held is one
 * chunk of the stream and the beginning of one line. A last line without an end counts too.
 */
export async function* linesOf(reader: ReadableStreamDefaultReader<Uint8Array>, maxBytes: number): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let begun: Uint8Array[] = [];
  let bytes = 0;
  const hold = (part: Uint8Array): void => {
    bytes += part.length;
    if (bytes > maxBytes) throw new LineTooLong();
    begun.push(part);
  };
  const take = (): string => {
    const line = decoder.decode(begun.length === 1 ? begun[0] : Buffer.concat(begun));
    begun = [];
    bytes = 0;
    return line;
  };
  for (;;) {
    const { value: chunk, done } = await reader.read();
    if (done) break;
    let start = 0;
    for (let end = chunk.indexOf(newline); end !== -1; end = chunk.indexOf(newline, start)) {
      hold(chunk.subarray(start, end));
      start = end + 1;
      yield take();
    }
    if (start < chunk.length) hold(chunk.subarray(start));
  }
  if (bytes > 0) yield take();
}
