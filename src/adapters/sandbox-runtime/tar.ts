import { addAbortSignal } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { extract, type Extract, type Header, type Pack } from 'tar-stream';
import { isFailure } from '../../domain/failure.ts';
import { nodeStreamOf } from '../shared/node-streams.ts';
import { quoted, refusedFiles } from './sandbox-path.ts';

type Entry = Extract extends AsyncIterable<infer E> ? E : never;

interface Common {
  /** The parts of its name, without `..`. Empty for the directory itself. */
  readonly parts: TarName;
  /** The permission bits, 0 to 0o777. */
  readonly mode: number;
  readonly modifiedAt: Date;
}

/** An entry of a tar to unpack in a sandbox. Its names can't lead out of the directory. */
export type TarEntry =
  | (Common & { readonly kind: 'directory' })
  /** The content must be read to its end before the next entry is requested. */
  | (Common & { readonly kind: 'file'; readonly size: number; readonly content: AsyncIterable<Uint8Array> })
  | (Common & { readonly kind: 'symlink'; readonly target: string })
  /** A hard link to an earlier file. */
  | (Common & { readonly kind: 'hardlink'; readonly target: TarName });

/**
 * Yields the entries of a tar in order, while it arrives and no faster than they are used. Throws `invalid_request` for an invalid tar or a
 * name that leads out of the directory, the signal's reason, and the archive's own error. In the end, the archive is always read completely
 * or cancelled.
 */
export async function* tarEntries(archive: ReadableStream<Uint8Array>, signal: AbortSignal): AsyncGenerator<TarEntry, void, void> {
  const { tar, failureOf } = openTar(archive, signal);
  const check = createLinkCheck();
  async function* contentOf(entry: Entry): AsyncGenerator<Uint8Array, void, void> {
    try {
      for await (const chunk of entry) if (chunk instanceof Uint8Array) yield chunk;
    } catch (error) {
      throw failureOf(error);
    }
  }
  try {
    for await (const entry of tar) {
      signal.throwIfAborted();
      const checked = toEntry(entry, contentOf(entry));
      check(checked);
      if (checked.kind !== 'file') entry.resume();
      yield checked;
      signal.throwIfAborted();
    }
    signal.throwIfAborted();
  } catch (error) {
    throw failureOf(error);
  } finally {
    tar.destroy();
  }
}

/** Reads the archive as a tar. `failureOf` returns the cause of a failure, given the error of the tar's reader. */
function openTar(archive: ReadableStream<Uint8Array>, signal: AbortSignal) {
  const tar = extract();
  const source = addAbortSignal(signal, nodeStreamOf(archive));
  let damage: Error | null = null;
  tar.on('error', (error: Error) => (damage ??= error));
  // An error, since a reader that waits for an entry would otherwise wait for ever.
  source.once('error', (cause) => tar.destroy(new Error('the archive broke off', { cause })));
  tar.once('close', () => source.destroy());
  source.pipe(tar);
  const failureOf = (error: unknown): unknown => {
    tar.destroy();
    // An abort or an error of the source is the real cause of the tar's error.
    if (signal.aborted) return signal.reason;
    if (source.errored !== null) return source.errored;
    return isFailure(error) ? error : refusedFiles('archive', `it is not a whole tar archive (${String(damage ?? error)})`);
  };
  return { tar, failureOf };
}

function toEntry({ header }: Entry, content: AsyncIterable<Uint8Array>): TarEntry {
  const { name, type, mode, mtime, size, linkname } = header;
  const parts = checkedName(name, 'name');
  const common = { parts, modifiedAt: Number.isFinite(mtime.getTime()) ? mtime : new Date(0) };
  const bits = mode & 0o777;
  switch (type) {
    case 'directory':
      return { ...common, kind: 'directory', mode: bits };
    case 'file':
    case 'contiguous-file':
      demandName(parts, name);
      return { ...common, kind: 'file', mode: bits, size, content };
    case 'symlink':
      demandName(parts, name);
      if (!linkname || linkname.includes('\0')) throw refusedFiles('archive', `the link ${quoted(name)} leads nowhere`);
      return { ...common, kind: 'symlink', mode: 0o777, target: linkname };
    case 'link':
      demandName(parts, name);
      return { ...common, kind: 'hardlink', mode: bits, target: checkedName(linkname ?? '', 'target') };
    case 'fifo':
    case 'block-device':
    case 'character-device':
    default:
      throw refusedFiles('archive', `${quoted(name)} is neither a file, a directory nor a link; leave it out`);
  }
}

function demandName(parts: TarName, name: string): void {
  if (parts.length === 0) throw refusedFiles('archive', `${quoted(name)} names the directory itself, and is none`);
}

/** An entry's header in the form of `tar-stream`. */
export type TarHeader = Partial<Omit<Header, 'pax'>> & Pick<Header, 'name'> & { readonly pax?: Readonly<Record<string, string>> };

/** The last second that `tar-stream` can write, in 2038. */
const lastSecond = 2 ** 31 - 1;

/** Returns the header of an entry, with the given parts before its name. */
export function tarHeader(entry: TarEntry, below: TarName): TarHeader {
  const name = [...below, ...entry.parts].join('/');
  const seconds = Math.floor(entry.modifiedAt.getTime() / 1000);
  const mtime = new Date(1000 * Math.min(Math.max(0, seconds), lastSecond));
  const common = { mode: entry.mode, mtime };
  switch (entry.kind) {
    case 'directory':
      return { ...common, name: `${name}/`, type: 'directory' };
    case 'file':
      return { ...common, name, type: 'file', size: entry.size };
    case 'symlink':
      return { ...common, name, type: 'symlink', linkname: entry.target };
    case 'hardlink':
      return { ...common, name, type: 'link', linkname: [...below, ...entry.target].join('/') };
  }
}

/** The parts of a name in a tar, relative to the target directory. */
export type TarName = readonly string[];

/** Throws `invalid_request` if the name leads out of the directory, or is not valid for a file. */
function checkedName(name: string, what: 'name' | 'target'): TarName {
  const refuse = (why: string): never => {
    throw refusedFiles('archive', `the ${what} ${quoted(name)} ${why}`);
  };
  if (name.startsWith('/')) refuse('is absolute; it must be relative to the directory');
  if (name.includes('\0')) refuse('holds a NUL character');
  if (name.includes('\uFFFD')) refuse('is not UTF-8');
  const parts = name.split('/').filter((part) => part !== '' && part !== '.');
  if (parts.includes('..')) refuse('leads out of the directory');
  return parts;
}

/** Returns a check to call for each entry in order. It throws `invalid_request` if an entry leads through a link of the archive. */
function createLinkCheck(): (entry: TarEntry) => void {
  const links = new Set<string>();
  const demandNoLink = (parts: TarName): void => {
    if (links.size === 0) return;
    for (let depth = 1; depth < parts.length; depth += 1) {
      if (links.has(parts.slice(0, depth).join('/'))) throw throughLink(parts, depth);
    }
  };
  return (entry) => {
    demandNoLink(entry.parts);
    if (entry.kind === 'hardlink') demandNoLink(entry.target);
    const name = entry.parts.join('/');
    if (entry.kind === 'symlink') links.add(name);
    // A hard link to a link is a link.
    else if (entry.kind === 'hardlink' && links.has(entry.target.join('/'))) links.add(name);
    else links.delete(name);
  };
}

/** The refusal of an entry below a link. The first `depth` parts are the path of the link. */
export function throughLink(parts: TarName, depth: number): Error {
  return refusedFiles('archive', `${quoted(parts.join('/'))} leads through the link ${quoted(parts.slice(0, depth).join('/'))}`);
}

/** The largest number in an owner field of the header. */
const largestOwner = 0o777777;

/** Adds PAX records for values that do not fit into the header. */
export function withPax({ pax, ...header }: TarHeader): TarHeader {
  const { uid = 0, gid = 0 } = header;
  const owners = uid > largestOwner || gid > largestOwner ? { uid: String(uid), gid: String(gid) } : {};
  const records = { ...pax, ...owners };
  return Object.keys(records).length === 0 ? header : { ...header, pax: records };
}

/** Adds an entry to a tar as fast as the tar is read. Rejects if the tar is destroyed. */
export async function addEntry(tar: Pack, header: TarHeader, content?: AsyncIterable<Uint8Array> | Buffer): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const done = (error?: Error | null): void => (error ? reject(error) : resolve());
  const sink = content instanceof Buffer ? tar.entry(withPax(header), content, done) : tar.entry(withPax(header), done);
  promise.catch(() => {});
  if (content === undefined || content instanceof Buffer) sink.on('error', () => {});
  else await pipeline(content, sink);
  await promise;
}

/** Yields the tar while `fill` adds entries, and fails with the error of `fill`. If the reader leaves, the next entry of `fill` fails. */
export function tarOf(tar: Pack, fill: () => Promise<void>): AsyncIterable<Uint8Array> {
  // The reader gets the error too.
  tar.on('error', () => {});
  const filling = fill().then(
    () => tar.finalize(),
    (error: unknown) => tar.destroy(error instanceof Error ? error : new Error('the archive failed', { cause: error })),
  );
  return {
    async *[Symbol.asyncIterator]() {
      try {
        for await (const chunk of tar) if (chunk instanceof Buffer) yield withRest(tar, chunk);
      } finally {
        tar.destroy(null);
        await filling;
      }
    },
  };
}

/** Returns a chunk together with all following chunks that are ready. */
function withRest(tar: Pack, first: Buffer): Buffer {
  const chunks = [first];
  for (let next: unknown = tar.read(); next instanceof Buffer; next = tar.read()) chunks.push(next);
  return chunks.length === 1 ? first : Buffer.concat(chunks);
}
