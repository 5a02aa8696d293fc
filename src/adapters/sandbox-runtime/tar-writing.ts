import type { Pack } from 'tar-stream';
import type { TarHeader } from './tar-entries.ts';

/** The largest number that fits the field of an owner. */
const largestOwner = 0o777777;

/** Adds an entry to a tar as fast as that is read. Rejects when the tar is not wanted any more. */
export async function addEntry(tar: Pack, header: TarHeader, content?: AsyncIterable<Uint8Array>): Promise<void> {
  const done = Promise.withResolvers<void>();
  const { uid = 0, gid = 0 } = header;
  const owners = uid > largestOwner || gid > largestOwner ? { pax: { uid: String(uid), gid: String(gid) } } : {};
  const sink = tar.entry({ ...header, ...owners }, (error) => {
    if (error === null || error === undefined) done.resolve();
    else done.reject(error);
  });
  done.promise.catch(() => {});
  sink.on('error', () => {});
  if (content !== undefined) {
    let goOn: (() => void) | null = null;
    sink.on('drain', () => goOn?.());
    sink.once('close', () => goOn?.());
    for await (const chunk of content) {
      if (sink.destroying) break;
      if (sink.write(chunk) || sink.destroying) continue;
      await new Promise<void>((resolve) => {
        goOn = resolve;
      });
    }
    sink.end(null);
  }
  await done.promise;
}

/** What `fill` adds to a tar, made as it is read. It fails as `fill` does; where nobody reads on, `fill` is told by its next entry. */
export function tarOf(tar: Pack, fill: () => Promise<void>): AsyncIterable<Uint8Array> {
  // Whoever reads it is told.
  tar.on('error', () => {});
  const filling = fill().then(
    () => tar.finalize(),
    (error: unknown) => tar.destroy(error instanceof Error ? error : new Error('the archive failed', { cause: error })),
  );
  return {
    async *[Symbol.asyncIterator]() {
      try {
        for await (const chunk of tar) if (chunk instanceof Uint8Array) yield chunk;
      } finally {
        tar.destroy(null);
        await filling;
      }
    },
  };
}
