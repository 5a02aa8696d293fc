import { tarEnd } from './work-tree-archive.ts';

/**
 * The parts as a stream that is made as it is read. Firing the signal ends it with the reason, read or not; so does cancelling.
 * `onEnd` is called once, with the failure of the parts where that is what ended it.
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
    // What it does at this moment fails by the signal, which is no news.
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
          const chunk = await nextPart(generator);
          if (over || ending.signal.aborted) return;
          if (chunk !== null) return pulled.enqueue(chunk);
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

/** Null at the end. */
async function nextPart(generator: AsyncGenerator<Uint8Array>): Promise<Uint8Array | null> {
  for (;;) {
    const { done, value } = await generator.next();
    if (done === true) return null;
    if (value.length > 0) return value;
  }
}

const blockBytes = 512;
const nothing: Buffer = Buffer.alloc(0);

/**
 * The tar up to its end, without what git fills the last record with: who unpacks a tar stops reading at its end, and
 * would leave the writer with what nobody takes.
 */
export async function* untilTarEnd(tar: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  // Of the entry: what is left of its content, and of which kind it is.
  let [left, extended] = [0, false];
  // The part of a header that came with the chunk before, and the extended header that counts for the next entry.
  let [header, extension] = [nothing, ''];
  let over = false;
  for await (const chunk of tar) {
    // What comes after the end is read all the same, so that git ends well.
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
      if (whole.length === blockBytes && isZero(whole)) {
        over = true;
        yield chunk.subarray(0, at);
        yield tarEnd.subarray(header.length);
        break;
      }
      at += part.length;
      header = whole.length < blockBytes ? whole : nothing;
      if (whole.length < blockBytes) continue;
      left = padded(sizeOf(whole, extension));
      extended = whole[156] === 'x'.charCodeAt(0);
      extension = '';
    }
    if (!over) yield chunk;
  }
}

function isZero(block: Buffer): boolean {
  return block.every((byte) => byte === 0);
}

/** An extended header has the size where eleven octal digits don't. */
function sizeOf(header: Buffer, extension: string): number {
  const extendedSize = /(?:^|\n)\d+ size=(\d+)\n/u.exec(extension)?.[1];
  return extendedSize === undefined ? Number.parseInt(header.toString('latin1', 124, 136), 8) || 0 : Number(extendedSize);
}

function padded(bytes: number): number {
  return Math.ceil(bytes / blockBytes) * blockBytes;
}
