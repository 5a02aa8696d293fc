import { Readable } from 'node:stream';

const sources = new WeakMap<ReadableStream<Uint8Array>, Readable>();

/**
 * Returns a stream of Node's as a web stream. Unlike `Readable.toWeb`, it copies nothing, and {@link nodeStreamOf} gives the stream back
 * to who can do without the web stream, which costs more than all else for many bytes.
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

/** Returns a web stream that nobody has read from as a stream of Node's. */
export function nodeStreamOf(stream: ReadableStream<Uint8Array>): Readable {
  const source = sources.get(stream);
  if (source === undefined || stream.locked) return Readable.fromWeb(stream);
  // Nobody else reads it from here on.
  stream.getReader();
  return source;
}
