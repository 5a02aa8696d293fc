import { once } from 'node:events';
import { open } from 'node:fs/promises';
import type { Readable } from 'node:stream';
import { CommandError } from './console.ts';

const tarBlockBytes = 512;
/** The limit of what is read to find the first entry. Real extended headers are far smaller. */
const maxHeadBytes = 1 << 20;

interface FirstEntry {
  readonly type: 'file' | 'directory' | 'other';
  readonly size: number;
  readonly mode: number;
  /** In seconds since 1970. */
  readonly modifiedAt: number;
  /** The offset of its content in the tar. */
  readonly contentAt: number;
}

/** Parses the first entry and the extended headers before it. Returns null if the buffer ends before the entry. */
function firstEntry(tar: Buffer): FirstEntry | null {
  const more = new Map<string, string>();
  for (let at = 0; tar.length >= at + tarBlockBytes; ) {
    const field = (offset: number, length: number): string => tar.toString('latin1', at + offset, at + offset + length);
    const number = (offset: number, length: number): number => Number.parseInt(field(offset, length), 8);
    const type = field(156, 1);
    const contentAt = at + tarBlockBytes;
    const size = number(124, 11);
    if (!'xgLK'.includes(type)) {
      const fields = { size: Number(more.get('size') ?? size), modifiedAt: Number(more.get('mtime') ?? number(136, 11)) };
      // Numbers that are not octal are left to the program tar.
      const isFile = type === '0' && Object.values(fields).every(Number.isFinite);
      return { type: type === '5' ? 'directory' : isFile ? 'file' : 'other', ...fields, mode: number(100, 7) & 0o777, contentAt };
    }
    const records = type === 'x' ? tar.toString('utf8', contentAt, contentAt + size).matchAll(/^\d+ (\w+)=(.*)$/gm) : [];
    for (const [, name = '', value = ''] of records) more.set(name, value);
    at = contentAt + tarBlockBytes * Math.ceil(size / tarBlockBytes);
  }
  return null;
}

/** Reads the first entry of a tar, then puts the bytes back into the stream. Returns null if the first MiB does not contain it. */
export async function readFirstEntry(tar: Readable): Promise<FirstEntry | null> {
  let head: Buffer = Buffer.alloc(0);
  let first: FirstEntry | null = null;
  while (first === null && head.length < maxHeadBytes) {
    const chunk: unknown = tar.read();
    if (chunk instanceof Buffer) {
      head = Buffer.concat([head, chunk]);
      first = firstEntry(head);
    } else if (tar.closed) throw tar.errored ?? new CommandError('The archive is not complete. Try again.');
    else await Promise.race([once(tar, 'readable'), once(tar, 'close')]);
  }
  tar.unshift(head);
  return first;
}

export async function writeFirstEntry(tar: Readable, { size, mode, modifiedAt, contentAt }: FirstEntry, path: string): Promise<void> {
  tar.read(contentAt);
  // The only descriptor: if the mode forbids writing, the file can't be opened again.
  await using file = await open(path, 'wx', mode);
  await file.writeFile(tar);
  if ((await file.stat()).size < size) throw new CommandError('The archive is not complete. Try again.');
  // Cuts off the rest of the tar after the content.
  await file.truncate(size);
  await file.utimes(modifiedAt, modifiedAt);
}
