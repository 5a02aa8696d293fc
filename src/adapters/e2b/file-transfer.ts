import { posix } from 'node:path';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import { Busboy } from '@fastify/busboy';
import pLimit from 'p-limit';
import { wholeFile } from '../../application/files/files.ts';
import type { RequestContext } from '../http/request-context.ts';
import { headerOf, requireWholeBody, takeBody } from '../http/request-input.ts';
import { nodeStreamOf, webStreamOf } from '../shared/node-streams.ts';
import { ConnectError, type ServiceCall } from './connect-protocol.ts';

/** Sends a file of the sandbox. */
export async function download(call: ServiceCall, { response }: RequestContext, path: string): Promise<void> {
  const { skep, caller, sandboxId, ends, resolve } = call;
  const { file, content } = await skep.files.read(caller, sandboxId, resolve(path), wholeFile, ends);
  response.set({ 'Content-Type': 'application/octet-stream', 'Content-Length': String(file.size) });
  await pipeline(content, response);
}

/** A written file in the form of E2B's clients. */
interface WrittenFile {
  readonly name: string;
  readonly type: 'file';
  readonly path: string;
}

/**
 * Writes the body to the path. Each file of a form, and its field `file`, goes to the path, or to its own name if there is no path. Returns
 * the written files. As E2B, refuses two files with one path.
 */
export async function upload(call: ServiceCall, context: RequestContext, path: string): Promise<readonly WrittenFile[]> {
  const written = new Set<string>();
  const write = async (target: string, content: ReadableStream<Uint8Array>): Promise<WrittenFile> => {
    if (target === '') throw new ConnectError('invalid_argument', 'The query must have the path of the file.');
    // The form parser replaces bytes that are not UTF-8, so two names could become one.
    if (target.includes('\ufffd')) throw new ConnectError('invalid_argument', 'The name of the file must be UTF-8.');
    const absolute = call.resolve(target);
    if (written.has(absolute)) throw new ConnectError('invalid_argument', `The form has more than one file for ${absolute}.`);
    written.add(absolute);
    const file = await call.skep.files.write(call.caller, call.sandboxId, absolute, content, {}, call.ends);
    return { name: posix.basename(file.path), type: 'file', path: file.path };
  };
  requireWholeBody(context.request, 'gzip');
  const body = takeBody(context);
  const contentType = headerOf(context.request, 'content-type') ?? '';
  if (/^multipart\/form-data\b/i.test(contentType)) {
    return await writeForm(nodeStreamOf(body), contentType, (name, content) => write(path || name, content));
  }
  const isCompressed = headerOf(context.request, 'content-encoding')?.toLowerCase() === 'gzip';
  if (!isCompressed) return [await write(path, body)];
  const plain = createGunzip();
  const [file, received] = await Promise.allSettled([
    writeWhole(plain, (content) => write(path, content)), pipeline(nodeStreamOf(body), plain),
  ]);
  if (file.status === 'rejected') throw file.reason;
  if (received.status === 'rejected') throw incompleteBody();
  return [file.value];
}

/** Writes the files of a form one after the other, as they arrive. The first error ends it. */
async function writeForm(
  body: Readable, contentType: string, write: (name: string, content: ReadableStream<Uint8Array>) => Promise<WrittenFile>,
): Promise<readonly WrittenFile[]> {
  if (!/;\s*boundary=/i.test(contentType)) throw new ConnectError('invalid_argument', 'The form has no boundary.');
  const form = new Busboy({
    headers: { 'content-type': contentType }, preservePath: true,
    isPartAFile: (field, _type, fileName) => field === 'file' || fileName !== undefined,
  });
  const contents: Readable[] = [];
  const writes: Promise<WrittenFile>[] = [];
  const errors: unknown[] = [];
  const oneByOne = pLimit(1);
  form.on('file', (_field, content, name: string | undefined) => {
    const writing = oneByOne(async () => {
      try {
        if (errors.length > 0) throw errors[0];
        return await writeWhole(content, (stream) => write(name ?? '', stream));
      } catch (error) {
        errors.push(error);
        form.destroy();
        throw error;
      }
    });
    writing.catch(() => 'it is thrown below');
    content.on('error', () => 'its write throws it');
    contents.push(content);
    writes.push(writing);
  });
  // The parser holds the body back only while the content of one file waits, so many small files would fill the memory.
  const paced = async function* paced(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    for await (const chunk of chunks) {
      yield chunk;
      await writes.at(-2)?.catch(() => 'the write itself reports the failure');
    }
  };
  const isReceived = await pipeline(body, paced, form).then(() => true, () => false);
  // The form parser does not end the files that it has begun.
  if (!isReceived) for (const content of contents) content.destroy(new Error('the form broke off'));
  await Promise.allSettled(writes);
  if (errors.length > 0) throw errors[0];
  if (!isReceived) throw incompleteBody();
  if (writes.length === 0) throw new ConnectError('invalid_argument', 'The form has no file. Name its field `file`.');
  return await Promise.all(writes);
}

/** Writes a part of the body. If the content fails, and not the write itself, throws `invalid_argument`. */
async function writeWhole(
  content: Readable, write: (stream: ReadableStream<Uint8Array>) => Promise<WrittenFile>,
): Promise<WrittenFile> {
  const contentErrors: unknown[] = [];
  content.on('error', (error) => contentErrors.push(error));
  try {
    return await write(webStreamOf(content));
  } catch (error) {
    // The write may have refused the content unread. Then nobody else would end it, and the body would wait for ever.
    content.destroy();
    throw contentErrors.includes(error) ? incompleteBody() : error;
  }
}

function incompleteBody(): ConnectError {
  return new ConnectError('invalid_argument', 'The body is incomplete, or does not match its headers.');
}
