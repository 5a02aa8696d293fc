import { hash } from 'node:crypto';
import { posix } from 'node:path';
import { z } from 'zod';
import { type FileEntry, fileTypes } from '../../../domain/file-entry.ts';
import { flagOf, text, timestamp, toTimestamp } from '../common-schemas.ts';
import { chooseRange, etagOf, fileHeaders, partHeaders, rangeHeaders, validators } from '../file-ranges.ts';
import { byteStream, operation, StreamedBody } from '../operation.ts';
import { pageQuery, pageSchema, readPage } from '../page-token.ts';
import type { RequestContext } from '../request-context.ts';
import { headerOf, takeBody } from '../request-input.ts';
import { sandboxPath } from './sandboxes.ts';

const octal = /^0?[0-7]{3,4}$/;

const fileResource = z
  .object({
    name: z.string(),
    path: z.string().meta({ description: 'Absolute. What is not UTF-8 in it is replaced.' }),
    type: z.enum(fileTypes).meta({ description: '`other` is a device, a pipe or a socket.' }),
    size: z.int().meta({ description: 'The length of a file in bytes. Of anything else it means nothing.' }),
    mode: z.string().meta({ description: 'The permission bits, octal.', example: '0644' }),
    modified_at: timestamp,
    target: z.string().nullable().meta({ description: 'Where a symbolic link leads to; null for anything else.' }),
  })
  .meta({ id: 'File', description: 'What is at a path of a sandbox.' });

function presentFile({ path, type, size, mode, modifiedAt, target }: FileEntry): z.output<typeof fileResource> {
  const octalMode = mode.toString(8).padStart(4, '0');
  return { name: posix.basename(path), path, type, size, mode: octalMode, modified_at: toTimestamp(Math.floor(modifiedAt)), target };
}

const path = text(4096).regex(/^\//, 'must be an absolute path')
  .meta({ description: 'Absolute, in the sandbox.', example: '/workspace/a.txt' });
const maxDepth = 32;
const depth = z
  .string()
  .refine((given) => /^\d{1,2}$/.test(given) && Number(given) >= 1 && Number(given) <= maxDepth, `must be a number from 1 to ${maxDepth}`)
  .transform(Number)
  .default(1)
  .meta({
    description: 'How many levels: 1 is what the directory itself holds.',
    override: { type: 'integer', minimum: 1, maximum: maxDepth, default: 1 },
  });
const mode = z.string().regex(octal, 'must be an octal number such as 0644').optional()
  .meta({ description: 'The permission bits, octal. Default: those of the file that is replaced, or 0644.' });

const bytes = 'application/octet-stream';
const files = '/api/v1/sandboxes/{id}/files';
const directories = '/api/v1/sandboxes/{id}/directories';
const archive = '/api/v1/sandboxes/{id}/archive';
const common = { tag: 'Files', params: sandboxPath, query: z.object({ path }) } as const;
const runtimeFailures = ['sandbox_not_found', 'sandbox_not_running', 'runtime_unavailable', 'runtime_timeout'] as const;
const pathFailures = [...runtimeFailures, 'wrong_file_type'] as const;
const existingFileFailures = [...pathFailures, 'file_not_found'] as const;
const noContent = { status: 204, description: 'Done.' };
const fileResponse = { status: 200, description: 'What is there then.', schema: fileResource };

/** Returns the body of the request, and its length if the client sends one. */
function contentOf(context: RequestContext): { readonly content: ReadableStream<Uint8Array>; readonly size?: number } {
  const length = headerOf(context.request, 'content-length');
  return { content: takeBody(context), ...(length !== null && { size: Number(length) }) };
}

const read = operation({
  ...common,
  method: 'get',
  path: files,
  operationId: 'read_file',
  summary: 'Read a file',
  description: 'Links are followed within the sandbox. One range is served; a request for several gets the whole file. Wakes nothing.',
  headers: rangeHeaders,
  success: { status: 200, description: 'The bytes.', schema: byteStream, media: bytes, headers: fileHeaders },
  otherwise: [
    { status: 206, description: 'A part of the bytes.', schema: byteStream, media: bytes, headers: partHeaders },
    { status: 304, description: 'The file still has the `ETag`.', headers: validators },
  ],
  failures: [...existingFileFailures, 'range_not_satisfiable'],
  handle: async (context, { params, query }): Promise<StreamedBody> => {
    const { skep, scope, request, response } = context;
    const ends = context.openStream();
    const choose = (file: FileEntry) => chooseRange(request, response, file);
    const { content } = await skep.files.read(scope, params.id, query.path, choose, ends);
    return new StreamedBody(content, ends);
  },
});

const write = operation({
  ...common,
  method: 'put',
  path: files,
  operationId: 'write_file',
  summary: 'Write a file',
  description:
    'Whoever reads it gets the old content or the new one, whole; if the request breaks off, the old file stays. Missing directories are ' +
    'made, and a link is followed. Without a `Content-Length`, the sandbox may have to run. That counts as activity, and wakes nothing.',
  query: z.object({ path, mode }),
  takesBytes: true,
  success: { ...fileResponse, headers: validators.pick({ ETag: true }) },
  failures: pathFailures,
  handle: async (context, { params, query }) => {
    const { content, ...size } = contentOf(context);
    const options = { ...size, ...(query.mode !== undefined && { mode: Number.parseInt(query.mode, 8) }) };
    const { skep, scope, response } = context;
    const file = await skep.files.write(scope, params.id, query.path, content, options, context.openStream());
    response.set('ETag', etagOf(file));
    return presentFile(file);
  },
});

const remove = operation({
  ...common,
  method: 'delete',
  path: files,
  operationId: 'remove_file',
  summary: 'Remove a file',
  description: 'A link itself is removed. That counts as activity, and wakes nothing.',
  query: z.object({ path, recursive: flagOf('Whether to remove a directory too, with all that is in it.') }),
  success: noContent,
  failures: existingFileFailures,
  handle: async (context, { params, query: { path, recursive = false } }) => {
    await context.skep.files.remove(context.scope, params.id, path, recursive, context.closed);
  },
});

const list = operation({
  ...common,
  method: 'get',
  path: directories,
  operationId: 'list_directory',
  summary: 'List a directory',
  description:
    'Ordered by path. Links below it are not followed. One that holds much can be listed only while the sandbox runs. Wakes nothing.',
  query: z.object({ path, depth, ...pageQuery }),
  success: { status: 200, description: 'A page of what it holds.', schema: pageSchema(fileResource, 'FilePage') },
  failures: existingFileFailures,
  handle: async (context, { params, query }) => {
    const { skep, scope } = context;
    const listing = hash('sha256', JSON.stringify(['directory', params.id, query.path, query.depth]));
    return await readPage(context, listing, query, ({ after, limit }) =>
      skep.files.list(scope, params.id, query.path, { depth: query.depth, after: after?.id ?? null, limit }, context.closed), presentFile);
  },
});

const make = operation({
  ...common,
  method: 'post',
  path: directories,
  operationId: 'make_directory',
  summary: 'Make a directory',
  description: 'With the missing ones above it. That counts as activity, and wakes nothing.',
  success: { ...fileResponse, description: 'It was there already.' },
  otherwise: [{ ...fileResponse, status: 201, description: 'It is made.' }],
  failures: pathFailures,
  handle: async (context, { params, query }) => {
    const { skep, scope, response, closed } = context;
    const { directory, isNew } = await skep.files.makeDirectory(scope, params.id, query.path, closed);
    if (isNew) response.status(201);
    return presentFile(directory);
  },
});

const readArchive = operation({
  ...common,
  method: 'get',
  path: archive,
  operationId: 'read_archive',
  summary: 'Read a directory as a tar',
  description: 'Or a file. Names begin with the last segment of the path. Links are content. Wakes nothing.',
  success: { status: 200, description: 'The tar.', schema: byteStream, media: 'application/x-tar' },
  failures: [...runtimeFailures, 'file_not_found'],
  handle: async (context, { params, query }) => {
    const ends = context.openStream();
    return new StreamedBody(await context.skep.files.readArchive(context.scope, params.id, query.path, ends), ends);
  },
});

const writeArchive = operation({
  ...common,
  method: 'put',
  path: archive,
  operationId: 'write_archive',
  summary: 'Unpack a tar below a directory',
  description:
    'The directory is made if it is not there. What is there stays, or is replaced file by file. An archive whose names lead elsewhere ' +
    'is refused, and part of it may be unpacked. That counts as activity, and wakes nothing.',
  takesBytes: true,
  success: noContent,
  failures: runtimeFailures,
  handle: async (context, { params, query }) => {
    const { skep, scope } = context;
    await skep.files.writeArchive(scope, params.id, query.path, takeBody(context), context.openStream());
  },
});

export const fileOperations = [read, write, remove, list, make, readArchive, writeArchive];
