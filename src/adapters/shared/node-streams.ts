import { Readable } from 'node:stream';

const sources = new WeakMap<ReadableStream<Uint8Array>, Readable>();

/** Returns a stream of what `next` returns. Unlike one of `ReadableStream.from`, it also calls `cancel` if nothing has been read. */
export function pullStream(
  next: () => Promise<IteratorResult<Uint8Array, unknown>>, cancel: (reason: unknown) => void | Promise<void>,
): ReadableStream<Uint8Array> {
  const pull = async (controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> => {
    const { done, value } = await next();
    if (done === true) controller.close();
    else controller.enqueue(value);
  };
  return new ReadableStream({ pull, cancel }, { highWaterMark: 0 });
}

/** Turns a generator into a stream. The generator's signal fires with the given one, or when the stream is cancelled. */
export function streamOf(
  signal: AbortSignal, generate: (signal: AbortSignal) => AsyncGenerator<Uint8Array, unknown>,
): ReadableStream<Uint8Array> {
  const cancelled = new AbortController();
  const chunks = generate(AbortSignal.any([signal, cancelled.signal]));
  return pullStream(() => chunks.next(), (reason) => {
    cancelled.abort(reason);
    void chunks.return(undefined).catch(() => {});
  });
}

/**
 * Returns a Node stream as a web stream. Unlike `Readable.toWeb`, it copies nothing, and {@link nodeStreamOf} can return the original
 * stream. For many bytes, the web stream is the most expensive part of a transfer.
 */
export function webStreamOf(source: Readable): ReadableStream<Uint8Array> {
  const chunks = source.iterator();
  const stream = pullStream(() => chunks.next(), async () => {
    await chunks.return?.();
    source.destroy();
  });
  sources.set(stream, source);
  return stream;
}

/** Reads a stream into memory. Throws the error of `tooLarge` if it has more bytes. */
export async function readAtMost(maxBytes: number, stream: AsyncIterable<Uint8Array>, tooLarge: () => Error): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of stream) {
    bytes += chunk.length;
    if (bytes > maxBytes) throw tooLarge();
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** Returns a web stream as a Node stream. The web stream must be unread. */
export function nodeStreamOf(stream: ReadableStream<Uint8Array>): Readable {
  const source = sources.get(stream);
  if (source === undefined || stream.locked) return Readable.fromWeb(stream);
  // Locks the web stream, so that nobody else reads from it.
  stream.getReader();
  return source;
}
