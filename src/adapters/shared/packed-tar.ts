import { pipeline } from 'node:stream/promises';
import type { Header, Pack } from 'tar-stream';

/** The header of an entry, as the package takes it. */
export type TarHeader = Partial<Omit<Header, 'pax'>> & Pick<Header, 'name'> & { readonly pax?: Readonly<Record<string, string>> };

/** The largest number that fits into the header's field for an owner. */
const largestOwner = 0o777777;

/** The last time that the package can write into the header's field, in 2038, in seconds. */
const lastSecond = 2 ** 31 - 1;

/** Adds PAX records for numbers that do not fit into the header's fields. */
export function withPax({ pax, ...given }: TarHeader): TarHeader {
  const { uid = 0, gid = 0, mtime = new Date() } = given;
  const seconds = Math.floor(mtime.getTime() / 1000);
  const header = { ...given, mtime: new Date(1000 * Math.min(Math.max(0, seconds), lastSecond)) };
  const owners = uid > largestOwner || gid > largestOwner ? { uid: String(uid), gid: String(gid) } : {};
  const records = { ...pax, ...owners, ...(seconds > lastSecond && { mtime: String(seconds) }) };
  return Object.keys(records).length === 0 ? header : { ...header, pax: records };
}

/** Adds an entry to a tar, as fast as the tar is read. Rejects if the tar is destroyed. */
export async function addEntry(
  tar: Pack, header: TarHeader, content?: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
): Promise<void> {
  const done = Promise.withResolvers<void>();
  const sink = tar.entry(withPax(header), (error) => {
    if (error === null || error === undefined) done.resolve();
    else done.reject(error);
  });
  done.promise.catch(() => {});
  if (content === undefined) sink.on('error', () => {});
  else await pipeline(content, sink);
  await done.promise;
}

/**
 * Returns the bytes of a tar while `fill` adds its entries, until `end` ends it. Throws the error of `fill`. If the reader leaves, the next
 * entry fails.
 */
export function tarOf(tar: Pack, fill: () => Promise<void>, end: () => unknown = () => tar.finalize()): AsyncIterable<Uint8Array> {
  let failure: unknown = null;
  // The reader gets the error.
  tar.on('error', () => {});
  const filling = fill().then(
    () => void end(),
    (error: unknown) => {
      // A tar that is destroyed already has a reason of its own.
      if (!tar.destroyed) failure = error;
      tar.destroy();
    },
  );
  return {
    async *[Symbol.asyncIterator]() {
      try {
        for await (const chunk of tar) if (chunk instanceof Uint8Array) yield chunk;
      } catch (error) {
        throw failure ?? error;
      } finally {
        tar.destroy(null);
        await filling;
      }
    },
  };
}
