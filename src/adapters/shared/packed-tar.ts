import { isUtf8 } from 'node:buffer';
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

/** The names of an entry as bytes. */
export interface NamesInBytes {
  readonly path: Buffer;
  readonly linkpath?: Buffer;
}

type Content = AsyncIterable<Uint8Array> | Iterable<Uint8Array>;

/**
 * Adds an entry to a tar, as fast as the tar is read. Rejects if the tar is destroyed. If `names` are not UTF-8, the entry has them instead
 * of the names in the header.
 */
export async function addEntry(tar: Pack, header: TarHeader, content?: Content, names?: NamesInBytes): Promise<void> {
  const given = withPax(header);
  if (names === undefined || Object.values(names).every(isUtf8)) {
    await writeEntry(tar, given, content);
    return;
  }
  // The package writes only UTF-8. Without PAX records of its own, it does not name the entry again.
  const { pax, linkname, ...rest } = given;
  tar.push(paxEntry({ ...pax, ...names }));
  await writeEntry(tar, { ...rest, name: 'PaxHeader', ...(linkname && { linkname: 'PaxHeader' }) }, content);
}

/** Returns the entry with the PAX records of the next entry. */
function paxEntry(records: Readonly<Record<string, string | Buffer>>): Buffer {
  const content = Buffer.concat(Object.entries(records).map(([key, value]) => paxRecord(key, value)));
  const header = Buffer.alloc(512);
  header.write('PaxHeader');
  const size = content.length.toString(8).padStart(11, '0');
  // Mode, owner, group, size and time; then spaces, because they count in the checksum, and the type.
  header.write(`0000644\0${'0000000\0'.repeat(2)}${size}\0${'0'.repeat(11)}\0${' '.repeat(8)}x`, 100);
  header.write('ustar\u{0}00', 257);
  const checksum = header.reduce((sum, byte) => sum + byte, 0);
  header.write(`${checksum.toString(8).padStart(6, '0')}\0`, 148);
  return Buffer.concat([header, content], Math.ceil((512 + content.length) / 512) * 512);
}

/** A record begins with its length, including that number. */
function paxRecord(key: string, value: string | Buffer): Buffer {
  const rest = Buffer.concat([Buffer.from(` ${key}=`), Buffer.from(value), Buffer.from('\n')]);
  let digits = 1;
  while (String(rest.length + digits).length > digits) digits += 1;
  return Buffer.concat([Buffer.from(String(rest.length + digits)), rest]);
}

async function writeEntry(tar: Pack, header: TarHeader, content?: Content): Promise<void> {
  const done = Promise.withResolvers<void>();
  const sink = tar.entry(header, (error) => {
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
