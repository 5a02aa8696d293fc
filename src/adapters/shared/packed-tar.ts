import { isUtf8 } from 'node:buffer';
import { once } from 'node:events';
import { type Header, pack } from 'tar-stream';

/** The header of an entry, as the package takes it, but its names may also be bytes that are not UTF-8. */
export type TarHeader = Partial<Omit<Header, 'name' | 'linkname' | 'pax'>> & {
  readonly name: string | Buffer;
  readonly linkname?: string | Buffer;
  readonly pax?: Readonly<Record<string, string>>;
};

export const blockBytes = 512;

/** The end of a tar, after its last entry. */
export const tarEnd: Uint8Array = new Uint8Array(2 * blockBytes);

/** Yields an entry of a tar. Passes the content on unchanged. Throws if the content does not have the length that the header says. */
export async function* tarEntry(
  header: TarHeader, content: AsyncIterable<Uint8Array> | Iterable<Uint8Array> = [],
): AsyncGenerator<Uint8Array, void> {
  const { size = 0 } = header;
  yield await headOf(header);
  let left = size;
  for await (const chunk of content) {
    left -= chunk.length;
    yield chunk;
  }
  if (left !== 0) throw new Error(`the content of an entry does not have the announced length of ${size} bytes`);
  if (size % blockBytes !== 0) yield new Uint8Array(blockBytes - (size % blockBytes));
}

/** Returns the blocks of an entry before its content. */
async function headOf({ name, linkname = '', ...header }: TarHeader): Promise<Buffer> {
  const [path, target] = [Buffer.from(name), Buffer.from(linkname)];
  if (isUtf8(path) && isUtf8(target)) return await encode({ ...withPax(header), name: String(name), linkname: String(linkname) });
  // The package writes only UTF-8. So the bytes replace names of the same length in PAX records, which have no checksum.
  const standIns = { name: 'n'.repeat(path.length), linkname: 'l'.repeat(target.length) };
  const head = await encode({ ...withPax(header), pax: withPax(header).pax ?? {}, ...standIns });
  if (target.length > 0) target.copy(head, head.indexOf(`=${standIns.linkname}\n`) + 1);
  path.copy(head, head.indexOf(`=${standIns.name}\n`) + 1);
  return head;
}

/** The largest number that fits into the header's field for an owner. */
const largestOwner = 0o777777;

/** The last time that the package can write into the header's field, in 2038, in seconds. */
const lastSecond = 2 ** 31 - 1;

/** Adds PAX records for numbers that do not fit into the header's fields. */
function withPax({ pax, ...given }: Omit<TarHeader, 'name' | 'linkname'>): Omit<TarHeader, 'name' | 'linkname'> {
  const { uid = 0, gid = 0, mtime = new Date() } = given;
  const seconds = Math.floor(mtime.getTime() / 1000);
  const header = {
    ...given,
    mtime: new Date(1000 * Math.min(Math.max(0, seconds), lastSecond)),
    // The package writes a default instead of the mode 0, unless there is a bit that it leaves out.
    ...(given.mode !== undefined && { mode: given.mode | 0o100_000 }),
  };
  const owners = uid > largestOwner || gid > largestOwner ? { uid: String(uid), gid: String(gid) } : {};
  const records = { ...pax, ...owners, ...(seconds > lastSecond && { mtime: String(seconds) }) };
  return Object.keys(records).length === 0 ? header : { ...header, pax: records };
}

async function encode(header: Partial<Header> & Pick<Header, 'name'>): Promise<Buffer> {
  const tar = pack();
  tar.on('error', () => {});
  tar.entry(header, () => {}).on('error', () => {});
  await once(tar, 'readable');
  const parts: Uint8Array[] = [];
  for (let part: unknown = tar.read(); part instanceof Uint8Array; part = tar.read()) parts.push(part);
  tar.destroy();
  return Buffer.concat(parts);
}
