/** A line that a shell prints into the output of its commands, after its mark. See `shellCommand`, and `codeMark` of the supervisor. */
interface MarkedLine {
  /** `begin` of a command, the exit `code` of a durable one, or the `end`: nothing of it writes to this output any more. */
  readonly event: string;
  /** The exit code; 0 for `begin`. */
  readonly code: number;
}

const afterMark = /^ (begin|code|end) (\d{1,3})\n/;
const longestAfterMark = ' begin 255\n'.length;

export type MarkedOutput = ReturnType<typeof splitAtMarks>;

/** Yields the bytes of an output of a shell and the marked lines between them. The first byte of the mark must not be in it twice. */
export async function* splitAtMarks(
  stream: ReadableStream<Uint8Array>, markText: string,
): AsyncGenerator<Uint8Array | MarkedLine, undefined> {
  const mark = Buffer.from(markText);
  /** The bytes that are read, but not yet yielded. */
  let rest: Buffer = Buffer.alloc(0);
  const take = (bytes: number): Buffer => {
    const taken = rest.subarray(0, bytes);
    rest = rest.subarray(bytes);
    return taken;
  };
  for await (const chunk of stream) {
    // Almost always nothing is left, and then nothing is copied.
    rest = rest.length > 0 ? Buffer.concat([rest, chunk]) : Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length);
    for (;;) {
      const output = take(indexOfMark(mark, rest));
      if (output.length > 0) yield output;
      const after = rest.toString('latin1', mark.length, mark.length + longestAfterMark);
      const [line, event = '', code] = afterMark.exec(after) ?? [];
      if (line !== undefined) {
        take(mark.length + line.length);
        yield { event, code: Number(code) };
      } else if (after.length === longestAfterMark) yield take(1);
      else break;
    }
  }
  if (rest.length > 0) yield rest;
}

/** Returns where the mark begins, also if only its first bytes are there. The length of the bytes if it is not there. */
function indexOfMark(mark: Buffer, bytes: Buffer): number {
  const whole = bytes.indexOf(mark);
  if (whole >= 0) return whole;
  const part = bytes.lastIndexOf(mark[0] ?? 0);
  return part >= 0 && mark.subarray(0, bytes.length - part).equals(bytes.subarray(part)) ? part : bytes.length;
}
