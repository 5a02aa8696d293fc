import { hash } from 'node:crypto';
import { posix } from 'node:path';
import { z } from 'zod';
import { type FileEntry, fileTypes } from '../../../domain/file-entry.ts';
import { flag, text, timestamp, toTimestamp, wholeNumber } from '../common-schemas.ts';
import {
  conditionsOf, etagOf, fileHeaders, partHeaders, prepareFileResponse, rangeHeaders, validators, writeConditions,
} from '../file-ranges.ts';
import { byteStream, noContent, operation, StreamedBody } from '../operation.ts';
import { pageQuery, pageSchema, readPage } from '../page-token.ts';
import type { RequestContext } from '../request-context.ts';
import { headerOf, takeBody } from '../request-input.ts';

const octal = /^0?[0-7]{3,4}$/;

const fileResource = z
  .object({
    name: z.string(),
    path: z.string().describe('The absolute path. Bytes that are not UTF-8 are replaced by U+FFFD.'),
    type: z.enum(fileTypes).describe('`other` is a device, a pipe or a socket.'),
    size: z.int().describe('The length of a file in bytes. Without meaning for other types.'),
    mode: z.string().meta({ description: 'The permission bits, octal.', example: '0644' }),
    modified_at: timestamp,
    target: z.string().nullable().describe('The target of a symbolic link; null for other types.'),
  })
  .meta({ id: 'FileEntry', description: 'A file, directory or link in a sandbox.' });

function presentFile({ path, type, size, mode, modifiedAt, target }: FileEntry): z.output<typeof fileResource> {
  const octalMode = mode.toString(8).padStart(4, '0');
  return { name: posix.basename(path), path, type, size, mode: octalMode, modified_at: toTimestamp(Math.floor(modifiedAt)), target };
}

const path = text(4096).regex(/^\//, 'must be an absolute path')
  .meta({ description: 'An absolute path in the sandbox.', example: '/workspace/a.txt' });
const depth = wholeNumber(1, 32).default(1)
  .meta({ description: 'How many levels to list. 1: only the entries of the directory itself.', override: { default: 1 } });
const mode = z.string().regex(octal, 'must be an octal number such as 0644').optional()
  .describe('The permission bits, octal. Default: those of the existing file, or 0644 for a new file.');

const bytes = 'application/octet-stream';
const files = '/api/v1/sandboxes/{id}/files';
const directories = '/api/v1/sandboxes/{id}/directories';
const archive = '/api/v1/sandboxes/{id}/archive';
const common = { tag: 'Files', query: z.object({ path }) } as const;
const runtimeFailures = ['sandbox_not_found', 'sandbox_not_running', 'runtime_unavailable', 'runtime_timeout'] as const;
const pathFailures = [...runtimeFailures, 'wrong_file_type'] as const;
const existingFileFailures = [...pathFailures, 'file_not_found'] as const;
const fileResponse = { status: 200, description: 'The file after the change.', schema: fileResource };

/** Returns the body of the request, and its length if the client sends one. */
function contentOf(context: RequestContext): { readonly content: ReadableStream<Uint8Array>; readonly size?: number } {
  const length = headerOf(context.request, 'content-length');
  return { content: takeBody(context), ...(length !== null && { size: Number(length) }) };
}

const read = operation('get', files, {
  ...common,
  operationId: 'read_file',
  summary: 'Read a file',
  description: 'Follows links within the sandbox. Serves one range; for several, returns the whole file. Does not resume the sandbox.',
  headers: rangeHeaders,
  success: { status: 200, description: 'The bytes.', schema: byteStream, media: bytes, headers: fileHeaders },
  otherwise: [
    { status: 206, description: 'A part of the bytes.', schema: byteStream, media: bytes, headers: partHeaders },
    { status: 304, description: 'The file still has the `ETag`.', headers: validators },
  ],
  failures: [...existingFileFailures, 'range_not_satisfiable'],
  handle: async (context, { params, query }): Promise<StreamedBody> => {
    const { skep, principal, request, response } = context;
    const ends = context.openTransfer();
    const choose = (file: FileEntry) => prepareFileResponse(request, response, file);
    const { content } = await skep.files.read(principal, params.id, query.path, choose, ends);
    return new StreamedBody(content, ends);
  },
});

const write = operation('put', files, {
  ...common,
  operationId: 'write_file',
  summary: 'Write a file',
  description:
    'Readers see either the complete old content or the complete new content. If the request breaks off, the old file stays. Creates ' +
    'missing directories, and follows links, but replaces a link without a target. Without `Content-Length`, the sandbox may have to be ' +
    'RUNNING. Counts as activity, but does not resume the sandbox.',
  query: z.object({ path, mode }),
  headers: writeConditions,
  takesBytes: true,
  success: { ...fileResponse, headers: validators.pick({ ETag: true }) },
  failures: [...pathFailures, 'precondition_failed'],
  handle: async (context, { params, query, headers }) => {
    const { content, ...size } = contentOf(context);
    const mode = query.mode === undefined ? {} : { mode: Number.parseInt(query.mode, 8) };
    const options = { ...size, ...mode, ...conditionsOf(headers) };
    const { skep, principal, response } = context;
    const file = await skep.files.write(principal, params.id, query.path, content, options, context.openTransfer());
    response.set('ETag', etagOf(file));
    return presentFile(file);
  },
});

const remove = operation('delete', files, {
  ...common,
  operationId: 'remove_file',
  summary: 'Remove a file',
  description: 'Removes a link itself, not its target. Counts as activity, but does not resume the sandbox.',
  query: z.object({ path, recursive: flag('Whether to remove a directory with everything in it.') }),
  success: noContent,
  failures: existingFileFailures,
  handle: async (context, { params, query: { path, recursive = false } }) => {
    await context.skep.files.remove(context.principal, params.id, path, recursive, context.closed);
  },
});

const list = operation('get', directories, {
  ...common,
  operationId: 'list_directory',
  summary: 'List a directory',
  description:
    'Sorted by path. Does not follow links. A very large directory can be listed only while the sandbox runs. Does not resume the sandbox.',
  query: z.object({ path, depth, ...pageQuery }),
  success: { status: 200, description: 'A page of its entries.', schema: pageSchema(fileResource, 'FilePage') },
  failures: existingFileFailures,
  handle: async (context, { params, query }) => {
    const { skep: { files }, principal } = context;
    const listing = hash('sha256', JSON.stringify(['directory', params.id, query.path, query.depth]));
    return await readPage(context, listing, query, ({ after, limit }) =>
      files.list(principal, params.id, query.path, { depth: query.depth, after: after?.id ?? null, limit }, context.closed), presentFile);
  },
});

const make = operation('post', directories, {
  ...common,
  operationId: 'make_directory',
  summary: 'Make a directory',
  description: 'Also creates missing parent directories. Counts as activity, but does not resume the sandbox.',
  success: { ...fileResponse, description: 'It existed already.' },
  otherwise: [{ ...fileResponse, status: 201, description: 'It was created.' }],
  failures: pathFailures,
  handle: async (context, { params, query }) => {
    const { skep, principal, response, closed } = context;
    const { directory, isNew } = await skep.files.makeDirectory(principal, params.id, query.path, closed);
    if (isNew) response.status(201);
    return presentFile(directory);
  },
});

const readArchive = operation('get', archive, {
  ...common,
  operationId: 'read_archive',
  summary: 'Read a directory or a file as a tar',
  description: 'Names in the tar begin with the last segment of the path. Links are packed as links. Does not resume the sandbox.',
  success: { status: 200, description: 'The tar.', schema: byteStream, media: 'application/x-tar' },
  failures: [...runtimeFailures, 'file_not_found'],
  handle: async (context, { params, query }) => {
    const ends = context.openTransfer();
    return new StreamedBody(await context.skep.files.readArchive(context.principal, params.id, query.path, ends), ends);
  },
});

const writeArchive = operation('put', archive, {
  ...common,
  operationId: 'write_archive',
  summary: 'Unpack a tar below a directory',
  description:
    'Creates the directory if it does not exist. Existing files stay, or are replaced one by one. An archive with names outside of the ' +
    'directory is refused, but part of it may be unpacked by then. If the request breaks off, the last file may be incomplete: send the ' +
    'archive again. Counts as activity, but does not resume the sandbox.',
  takesBytes: true,
  success: noContent,
  failures: runtimeFailures,
  handle: async (context, { params, query }) => {
    const { skep, principal } = context;
    await skep.files.writeArchive(principal, params.id, query.path, takeBody(context), context.openTransfer());
  },
});

export const fileOperations = [read, write, remove, list, make, readArchive, writeArchive];
