import { Readable } from 'node:stream';

const sources = new WeakMap<ReadableStream<Uint8Array>, Readable>();

/**
 * Returns a Node stream as a web stream. Unlike `Readable.toWeb`, it copies nothing, and {@link nodeStreamOf} can return the original
 * stream. For many bytes, the web stream is the most expensive part of a transfer.
 */
export function webStreamOf(source: Readable): ReadableStream<Uint8Array> {
  const chunks = source.iterator();
  const stream = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = await chunks.next();
        if (done === true) controller.close();
        else controller.enqueue(value);
      },
      async cancel() {
        await chunks.return?.();
        source.destroy();
      },
    },
    { highWaterMark: 0 },
  );
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
