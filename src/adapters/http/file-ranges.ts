import type { IncomingMessage } from 'node:http';
import type { Response } from 'express';
import { z } from 'zod';
import { wholeFile } from '../../application/files/files.ts';
import type { FileEntry } from '../../domain/file-entry.ts';
import type { ByteRange, FileVersion, WriteOptions } from '../../ports/sandbox-files.ts';
import { HttpProblem } from './problems.ts';

export const rangeHeaders = z.object({
  'Range': z.string().optional().meta({ description: 'The range of bytes to read.', example: 'bytes=0-1023' }),
  'If-Range': z.string().optional().describe('An `ETag`. If the file has changed since, the whole file is returned.'),
  'If-None-Match': z.string().optional().describe('An `ETag`. If the file is unchanged, the response is 304 without a body.'),
});

export const writeConditions = z.object({
  'If-Match': z.string().optional().describe('An `ETag`. If the file has another one, the response is 412; with `*`, if there is no file.'),
  'If-None-Match': z.string().optional().meta({ description: 'With `*`, the response is 412 if there is a file.', example: '*' }),
});

export const validators = z.object({
  'ETag': z.string().describe('Changes with the content.'),
  'Last-Modified': z.string(),
});

export const fileHeaders = validators.extend({ 'Accept-Ranges': z.literal('bytes'), 'Content-Length': z.int() });

export const partHeaders = fileHeaders.extend({
  'Content-Range': z.string().meta({ description: 'The range that is returned, and the size of the file.', example: 'bytes 0-1023/4096' }),
});

/** Returns an entity tag that changes when the size or the modification time changes. */
export function etagOf({ size, modifiedAt }: FileVersion): string {
  return `"${size.toString(36)}-${Math.round(modifiedAt * 1000).toString(36)}"`;
}

/**
 * Sets the status and headers of the response for a file. Returns the bytes to send. Throws `range_not_satisfiable`. Source: RFC 9110, 13
 * and 14.
 */
export function prepareFileResponse(request: Pick<IncomingMessage, 'headers'>, response: Response, file: FileEntry): ByteRange {
  const etag = etagOf(file);
  const lastModified = new Date(file.modifiedAt).toUTCString();
  response.set({ 'ETag': etag, 'Last-Modified': lastModified, 'Accept-Ranges': 'bytes' });
  // Does not use Express's `fresh`: Node's and browsers' clients add `Cache-Control: no-cache`, and then `fresh` is always false.
  if (hasTag(request.headers['if-none-match'], etag)) {
    response.status(304);
    return { offset: 0, length: 0 };
  }
  const ifRange = request.headers['if-range'];
  const range = ifRange === undefined || ifRange === etag ? rangeIn(request.headers.range ?? '', file.size) : null;
  if (range === 'beyond') {
    response.set('Content-Range', `bytes */${file.size}`);
    throw new HttpProblem('range_not_satisfiable', { size: file.size });
  }
  const { offset, length } = range ?? wholeFile(file);
  if (range !== null) response.status(206).set('Content-Range', `bytes ${offset}-${offset + length - 1}/${file.size}`);
  response.set('Content-Length', String(length));
  return { offset, length };
}

/** Returns a function that throws `precondition_failed` if the file may not be replaced. Source: RFC 9110, 13.1. */
export function conditionsOf(headers: z.output<typeof writeConditions>): Pick<WriteOptions, 'check'> {
  const { 'If-Match': wanted, 'If-None-Match': unwanted } = headers;
  if (wanted === undefined && unwanted === undefined) return {};
  return {
    check: (file) => {
      const etag = file === null ? null : etagOf(file);
      const isWanted = wanted === undefined || (etag !== null && hasTag(wanted, etag));
      if (!isWanted || (etag !== null && hasTag(unwanted, etag))) throw new HttpProblem('precondition_failed', { etag });
    },
  };
}

/**
 * Returns true if the value of `If-Match` or `If-None-Match` has the entity tag, or is `*`. A weak tag counts too: a proxy that compresses
 * responses makes the tags in them weak.
 */
function hasTag(header: string | undefined, etag: string): boolean {
  return (header ?? '').split(',').map((tag) => tag.trim()).some((tag) => tag.replace(/^W\//, '') === etag || tag === '*');
}

/**
 * Returns null if the whole file must be sent: there is no range, it has another form, there are several, or the file is empty and the
 * range begins at its start. With such a range, a client only limits how much it gets.
 */
function rangeIn(header: string, size: number): ByteRange | 'beyond' | null {
  const [, first = '', last = ''] = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(header.trim()) ?? [];
  if (first === '' && last === '') return null;
  if (first !== '' && last !== '' && Number(last) < Number(first)) return null;
  const offset = first === '' ? Math.max(0, size - Number(last)) : Number(first);
  const end = first === '' || last === '' ? size : Math.min(size, Number(last) + 1);
  if (offset === 0 && size === 0) return null;
  return offset >= end ? 'beyond' : { offset, length: end - offset };
}
