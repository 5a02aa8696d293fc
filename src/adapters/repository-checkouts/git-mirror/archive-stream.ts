/**
 * Returns the parts as a stream that is made as it is read. If the signal fires, the stream ends with its reason, read or not; cancelling
 * ends it too. `onEnd` is called once, with the failure if the parts failed, else with null.
 */
export function streamOf(
  parts: (signal: AbortSignal) => AsyncGenerator<Uint8Array>,
  signal: AbortSignal,
  onEnd: (failure: unknown) => Promise<void>,
): ReadableStream<Uint8Array> {
  const ending = new AbortController();
  const generator = parts(ending.signal);
  let over = false;
  const end = async (failure: unknown): Promise<void> => {
    if (over) return;
    over = true;
    signal.removeEventListener('abort', onAbort);
    await onEnd(failure);
  };
  const leave = async (reason: unknown): Promise<void> => {
    ending.abort(reason);
    // What it does at this moment fails because of the signal, which is not a failure of its own.
    await generator.return(undefined).catch(() => undefined);
    await end(null);
  };
  let controller: ReadableStreamDefaultController<Uint8Array> | null = null;
  const onAbort = (): void => {
    controller?.error(signal.reason);
    void leave(signal.reason);
  };
  const stream = new ReadableStream<Uint8Array>(
    {
      start(started) {
        controller = started;
      },
      async pull(pulled) {
        try {
          const { done, value } = await nextPart(generator);
          if (over || ending.signal.aborted) return;
          if (done !== true) return pulled.enqueue(value);
          await end(null);
          pulled.close();
        } catch (error) {
          if (ending.signal.aborted) return;
          await end(error);
          throw error;
        }
      },
      cancel: leave,
    },
    { highWaterMark: 0 },
  );
  if (signal.aborted) onAbort();
  else signal.addEventListener('abort', onAbort, { once: true });
  return stream;
}

/** Skips empty parts: a pull that enqueues nothing is not repeated. */
async function nextPart(generator: AsyncGenerator<Uint8Array>): Promise<IteratorResult<Uint8Array>> {
  for (;;) {
    const next = await generator.next();
    if (next.done === true || next.value.length > 0) return next;
  }
}

const blockBytes = 512;
const tarEnd = Buffer.alloc(2 * blockBytes);
const nothing: Buffer = Buffer.alloc(0);

/**
 * Returns the tar up to its end, without the zeros that git fills the last record with. A program that unpacks a tar stops reading at
 * its end, and nobody would read the rest.
 */
export async function* untilTarEnd(tar: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  // Of the current entry: how many bytes of its content are left, and whether it is an extended header.
  let [left, extended] = [0, false];
  // The part of a header that came with earlier chunks, and the extended header of the next entry.
  let [header, extension] = [nothing, ''];
  let over = false;
  for await (const chunk of tar) {
    // What comes after the end is read all the same, so that git can exit.
    for (let at = 0; at < chunk.length && !over; ) {
      if (left > 0) {
        const content = chunk.subarray(at, at + left);
        if (extended) extension += content.toString('latin1');
        left -= content.length;
        at += content.length;
        continue;
      }
      const part = chunk.subarray(at, at + blockBytes - header.length);
      const whole: Buffer = Buffer.concat([header, part]);
      if (whole.length === blockBytes && whole.every((byte) => byte === 0)) {
        over = true;
        yield chunk.subarray(0, at);
        yield tarEnd.subarray(header.length);
        break;
      }
      at += part.length;
      header = whole.length < blockBytes ? whole : nothing;
      if (whole.length < blockBytes) continue;
      left = Math.ceil(contentBytes(whole, extension) / blockBytes) * blockBytes;
      extended = whole[156] === 'x'.charCodeAt(0);
      extension = '';
    }
    if (!over) yield chunk;
  }
}

/** An extended header has the size if it needs more than eleven octal digits. */
function contentBytes(header: Buffer, extension: string): number {
  const extendedSize = /(?:^|\n)\d+ size=(\d+)\n/u.exec(extension)?.[1];
  return extendedSize === undefined ? Number.parseInt(header.toString('latin1', 124, 136), 8) || 0 : Number(extendedSize);
}
