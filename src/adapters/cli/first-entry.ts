import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { stat, truncate, utimes } from 'node:fs/promises';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { CommandError } from './console.ts';

const tarBlockBytes = 512;
/** What says more of an entry is far smaller. */
const maxHeadBytes = 1 << 20;

/** The first entry of a tar. */
export interface FirstEntry {
  readonly type: 'file' | 'directory' | 'other';
  readonly size: number;
  readonly mode: number;
  /** In seconds since 1970. */
  readonly modifiedAt: number;
  /** Where its content begins. */
  readonly contentAt: number;
}

/** Returns the first entry, with what stands before it and says more of it. Null if the beginning of the tar does not hold it. */
function firstEntry(tar: Buffer): FirstEntry | null {
  const more = new Map<string, string>();
  for (let at = 0; tar.length >= at + tarBlockBytes; ) {
    const field = (offset: number, length: number): string => tar.toString('latin1', at + offset, at + offset + length);
    const number = (offset: number, length: number): number => Number.parseInt(field(offset, length), 8);
    const type = field(156, 1);
    const contentAt = at + tarBlockBytes;
    const size = number(124, 11);
    if (!'xgLK'.includes(type)) {
      const said = { size: Number(more.get('size') ?? size), modifiedAt: Number(more.get('mtime') ?? number(136, 11)) };
      // A number that is not octal is left to the program tar.
      const isFile = type === '0' && Object.values(said).every(Number.isFinite);
      return { type: type === '5' ? 'directory' : isFile ? 'file' : 'other', ...said, mode: number(100, 7) & 0o777, contentAt };
    }
    const records = type === 'x' ? tar.toString('utf8', contentAt, contentAt + size).matchAll(/^\d+ (\w+)=(.*)$/gm) : [];
    for (const [, name = '', value = ''] of records) more.set(name, value);
    at = contentAt + tarBlockBytes * Math.ceil(size / tarBlockBytes);
  }
  return null;
}

/** Reads a tar as far as its first entry, and gives that back to the stream. Null if the entry is not found so soon. */
export async function readFirstEntry(tar: Readable): Promise<FirstEntry | null> {
  let head: Buffer = Buffer.alloc(0);
  let first: FirstEntry | null = null;
  while (first === null && head.length < maxHeadBytes) {
    const chunk: unknown = tar.read();
    if (chunk instanceof Buffer) {
      head = Buffer.concat([head, chunk]);
      first = firstEntry(head);
    } else if (tar.readableEnded) throw new CommandError('The archive ended too early.');
    else await Promise.race([once(tar, 'readable'), once(tar, 'end')]);
  }
  tar.unshift(head);
  return first;
}

/** Writes the content of the first entry to a file. */
export async function writeFirstEntry(tar: Readable, { size, mode, modifiedAt, contentAt }: FirstEntry, path: string): Promise<void> {
  tar.read(contentAt);
  await pipeline(tar, createWriteStream(path, { mode, flags: 'wx', highWaterMark: 1 << 20 }));
  if ((await stat(path)).size < size) throw new CommandError('The archive ended too early.');
  // What follows the content in the tar.
  await truncate(path, size);
  await utimes(path, modifiedAt, modifiedAt);
}
