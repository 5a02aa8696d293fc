import { addAbortSignal } from 'node:stream';
import { extract, type Extract } from 'tar-stream';
import { isFailure } from '../../domain/failure.ts';
import { nodeStreamOf } from '../shared/node-streams.ts';
import type { TarHeader } from '../shared/packed-tar.ts';
import { maxParts, quotedName, refusedFiles } from './sandbox-path.ts';

type Entry = Extract extends AsyncIterable<infer E> ? E : never;

interface Common {
  /** Empty for the target directory itself. */
  readonly parts: TarName;
  /** The permission bits and the sticky bit, 0 to 0o1777. */
  readonly mode: number;
  readonly modifiedAt: Date;
}

/** An entry to unpack in a sandbox. No name contains `..`, but it may lead through a link, also one of the same archive. */
export type TarEntry =
  | (Common & { readonly kind: 'directory' })
  /** The content must be read to its end before the next entry. */
  | (Common & { readonly kind: 'file'; readonly size: number; readonly content: AsyncIterable<Uint8Array> })
  /** The target has one character per byte, as the names have. */
  | (Common & { readonly kind: 'symlink'; readonly target: string })
  /** Another name for an earlier file. */
  | (Common & { readonly kind: 'hardlink'; readonly target: TarName });

/**
 * Yields the entries of a tar in their order, while it arrives. Throws `invalid_request` if the archive is no tar, or its names lead out of
 * the directory. Throws the signal's reason, or the archive's own error. Once the first entry is requested, the archive is read to its end
 * or cancelled in every case; before, the caller has to cancel it.
 */
export async function* tarEntries(archive: ReadableStream<Uint8Array>, signal: AbortSignal): AsyncGenerator<TarEntry, void, void> {
  const { tar, failureOf } = openTar(archive, signal);
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

/** Connects the archive to a tar extractor. `failureOf` turns an error of the extractor into the error that caused it. */
function openTar(archive: ReadableStream<Uint8Array>, signal: AbortSignal) {
  const tar = extractBytes();
  const source = addAbortSignal(signal, nodeStreamOf(archive));
  let damage: Error | null = null;
  tar.on('error', (error: Error) => (damage ??= error));
  // Without an error, a reader that waits for the next entry would wait forever.
  source.once('error', (cause) => tar.destroy(new Error('the archive broke off', { cause })));
  tar.once('close', () => source.destroy());
  source.pipe(tar);
  const failureOf = (error: unknown): unknown => {
    tar.destroy();
    // If the source ended early, the extractor's error is only a consequence.
    if (signal.aborted) return signal.reason;
    if (source.errored !== null) return source.errored;
    return isFailure(error) ? error : refusedFiles('archive', `it is not a whole tar archive (${String(damage ?? error)})`);
  };
  return { tar, failureOf };
}

// The package has this option, but its types do not.
const bytesAsNames: Parameters<typeof extract>[0] & { readonly filenameEncoding: BufferEncoding } = { filenameEncoding: 'latin1' };

/** Returns an extractor whose names have one character per byte. */
function extractBytes(): Extract {
  const tar: Extract & Partial<RecordReader> = extract(bytesAsNames);
  const read = tar[reader]?.bind(tar);
  if (read === undefined) throw new Error('tar-stream reads PAX records in another way');
  // The package reads PAX records as UTF-8, whatever the option says.
  tar[reader] = (bytes) => read(tar[current]?.type.startsWith('pax') === true ? inUtf8(bytes) : bytes);
  return tar;
}

const current = '_header';
const reader = '_decodeLongHeader';

/** The private members of the extractor for what comes before the header of an entry: GNU's long names and PAX records. */
interface RecordReader {
  readonly [current]: { readonly type: string };
  [reader]: (bytes: Uint8Array) => void;
}

const sparse = 'GNU.sparse.';
/** The keys of the records that have an effect. */
const usedKeys = new Set(['path', 'linkpath', 'size', sparse]);

/**
 * Returns the PAX records that have an effect, each `LENGTH KEY=VALUE<newline>`, with the UTF-8 form of the character for each byte. The
 * package copies the records of a global header for each entry, so they must be few: all those of a sparse file have one key.
 */
function inUtf8(bytes: Uint8Array): Buffer {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('latin1');
  const records: string[] = [];
  const form = /(\d{1,10}) ([^=]*)=/uy;
  for (let at = 0; at < text.length;) {
    form.lastIndex = at;
    const [, length = '', key = ''] = form.exec(text) ?? [];
    const end = at + Number(length);
    // The package reads no records after one of another form.
    if (length === '' || end < form.lastIndex) break;
    const used = key.startsWith(sparse) ? sparse : key;
    const record = ` ${used}=${text.slice(form.lastIndex, end)}`;
    if (usedKeys.has(used)) records.push(String(10 + Buffer.byteLength(record)).padStart(10, '0'), record);
    at = end;
  }
  return Buffer.from(records.join(''));
}

function toEntry({ header }: Entry, content: AsyncIterable<Uint8Array>): TarEntry {
  const { name, type, mtime, size, linkname } = header;
  // The package has no type for the sparse files of GNU tar's old format.
  if (!type || Object.hasOwn(header.pax ?? {}, sparse)) {
    const why = 'is a sparse file, or another extension of tar; pack it without -S, with bsdtar --no-read-sparse, or leave it out';
    throw refusedFiles('archive', `${quoted(name)} ${why}`);
  }
  const parts = checkedName(name, 'name');
  const common = { parts, mode: header.mode & 0o1777, modifiedAt: Number.isFinite(mtime.getTime()) ? mtime : new Date(0) };
  if (type === 'directory') return { ...common, kind: 'directory' };
  if (parts.length === 0) throw refusedFiles('archive', `${quoted(name)} names the directory itself, and is none`);
  if (type === 'file' || type === 'contiguous-file') return { ...common, kind: 'file', size, content };
  if (type === 'link') return { ...common, kind: 'hardlink', target: checkedName(linkname ?? '', 'target') };
  if (type !== 'symlink') throw refusedFiles('archive', `${quoted(name)} is neither a file, a directory nor a link; leave it out`);
  if (!linkname || linkname.includes('\0')) throw refusedFiles('archive', `the link ${quoted(name)} leads nowhere`);
  if (linkname.length > maxBytes) throw refusedFiles('archive', `the target of the link ${quoted(name)} is longer than ${maxBytes} bytes`);
  return { ...common, kind: 'symlink', mode: 0o777, target: linkname };
}

/** Returns the header of an entry. The parts in `below` are the start of its name. */
export function tarHeader(entry: TarEntry, below: TarName): TarHeader {
  const nameOf = (parts: readonly string[]): Buffer => bytesOf([...below, ...parts].join('/'));
  const common = { name: nameOf(entry.parts), mode: entry.mode, mtime: entry.modifiedAt };
  if (entry.kind === 'directory') return { ...common, name: nameOf([...entry.parts, '']), type: 'directory' };
  if (entry.kind === 'file') return { ...common, type: 'file', size: entry.size };
  if (entry.kind === 'symlink') return { ...common, type: 'symlink', linkname: bytesOf(entry.target) };
  return { ...common, type: 'link', linkname: nameOf(entry.target) };
}

/** A part of a name in a tar, with one character per byte, because names need not be UTF-8. It is not `..`. */
export type TarPart = string & { readonly [ofBytes]: true };
declare const ofBytes: unique symbol;

/** The parts of a name in a tar, relative to the target directory. */
export type TarName = readonly TarPart[];

export function tarName(parts: readonly string[]): TarName {
  return parts.map((part) => Buffer.from(part).toString('latin1')).filter(isPart);
}

function isPart(bytes: string): bytes is TarPart {
  return bytes !== '' && bytes !== '.';
}

export function bytesOf(name: string): Buffer {
  return Buffer.from(name, 'latin1');
}

/** Returns the text of a name, with U+FFFD for bytes that are not UTF-8. */
export function textOf(parts: TarName): string {
  return bytesOf(parts.join('/')).toString();
}

const quoted = (name: string): string => quotedName(bytesOf(name).toString());

/** The limit of Linux for a path. */
const maxBytes = 4_095;

/** Throws `invalid_request` if the name leads out of the directory, or no file can have it. */
function checkedName(name: string, what: 'name' | 'target'): TarName {
  const refuse = (why: string): never => {
    throw refusedFiles('archive', `the ${what} ${quoted(name)} ${why}`);
  };
  if (name.length > maxBytes) refuse(`is longer than ${maxBytes} bytes`);
  if (name.startsWith('/')) refuse('is absolute; it must be relative to the directory');
  if (name.includes('\0')) refuse('holds a NUL character');
  const parts = name.split('/').filter(isPart);
  if (parts.some((part) => part === '..')) refuse('leads out of the directory');
  if (parts.length > maxParts) refuse(`has more than ${maxParts} parts`);
  return parts;
}

/** Returns the failure for an entry whose name, or whose target, leads through a link. */
export function throughLink(parts: TarName, link: TarName): Error {
  return refusedFiles('archive', `${quoted(parts.join('/'))} leads through the link ${quoted(link.join('/'))}`);
}
