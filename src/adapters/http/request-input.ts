import { isUtf8 } from 'node:buffer';
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { parse as parseQuery } from 'node:querystring';
import { addAbortSignal, PassThrough } from 'node:stream';
import express from 'express';
import type { z } from 'zod';
import type { ValidationProblem } from './common-schemas.ts';
import { webStreamOf } from '../shared/node-streams.ts';
import { HttpProblem } from './problems.ts';
import type { RequestContext } from './request-context.ts';

type InputPart = 'path' | 'query' | 'header' | 'body';

/** The most mistakes that a response lists, and the most characters of a name that it quotes. */
const maxProblems = 20;
const maxQuoted = 100;

export function invalidRequest(loc: [InputPart, ...string[]], msg: string, type: string): HttpProblem<'invalid_request'> {
  return new HttpProblem('invalid_request', { problems: [{ loc, msg, type }] });
}

/** Parses the input by the schema. Throws `invalid_request` with all mistakes. */
export function parsed<S extends z.ZodType>(schema: S, part: InputPart, input: unknown): z.output<S> {
  const result = schema.safeParse(input, { reportInput: true });
  if (result.success) return result.data;
  throw new HttpProblem('invalid_request', { problems: problemsOf(part, result.error) });
}

function problemsOf(part: InputPart, error: z.ZodError): ValidationProblem[] {
  const problems = error.issues.flatMap((issue, index, all): ValidationProblem[] => {
    // Zod checks the length of a value with a wrong type, too.
    if (all[index - 1]?.code === 'invalid_type' && all[index - 1]?.path.join('.') === issue.path.join('.')) return [];
    // Header names are case-insensitive.
    const nameOf = (key: PropertyKey) => shortened(part === 'header' ? String(key).toLowerCase() : String(key));
    const loc = [part, ...issue.path.map((key) => (typeof key === 'number' ? key : nameOf(key)))];
    if (issue.code !== 'unrecognized_keys') return [{ loc, msg: messageOf(issue), type: typeOf(issue) }];
    return issue.keys.map((key) => ({ loc: [...loc, shortened(key)], msg: 'is not a field of this request', type: issue.code }));
  });
  return problems.slice(0, maxProblems);
}

/** The validation library names the mistakes that our own checks find `custom`. */
function typeOf({ code }: z.core.$ZodIssue): string {
  return code === 'custom' ? 'invalid_value' : code;
}

function messageOf(issue: z.core.$ZodIssue): string {
  if (issue.code === 'invalid_type' && issue.input === undefined) return 'is missing';
  // The location already names the key.
  if (issue.code === 'invalid_key') return issue.issues[0]?.message ?? issue.message;
  if (issue.code === 'too_big' && typeof issue.input === 'string') {
    return `must have at most ${issue.maximum} characters, but has ${issue.input.length}`;
  }
  return issue.code === 'too_small' && issue.minimum === 1 && issue.origin !== 'number' ? 'must not be empty' : issue.message;
}

function shortened(key: string): string {
  return key.length > maxQuoted ? `${key.slice(0, maxQuoted)}...` : key;
}

/** Reads path parameters, still percent-encoded, by the schema. Throws `invalid_request`. */
export function readPath<S extends z.ZodObject>(schema: S, encoded: Readonly<Record<string, string | string[]>>): z.output<S> {
  // Express splits the value of a wildcard at its slashes.
  const given = Object.entries(encoded).map(([name, value]) => [name, decoded([value].flat().join('/')) ?? badEncoding('path', name)]);
  return parsed(schema, 'path', Object.fromEntries(given));
}

/** Reads a raw query (what follows the `?`) by the schema. It ignores other parameters. Throws `invalid_request`. */
export function readQuery<S extends z.ZodObject>(schema: S, raw: string): z.output<S> {
  const given = parseQuery(raw, '&', '=', { maxKeys: 0, decodeURIComponent: (text) => decoded(text) ?? malformed });
  const broken = Object.keys(given).find((name) => Object.hasOwn(schema.shape, name) && [given[name]].flat().includes(malformed));
  return broken === undefined ? parsed(schema, 'query', given) : badEncoding('query', broken);
}

/** Marks a value with broken encoding. Correct encoding never decodes to half of a surrogate pair. */
const malformed = '\ud800';

function badEncoding(part: InputPart, name: string): never {
  throw invalidRequest([part, name], 'must be percent-encoded UTF-8', 'percent_encoding');
}

function decoded(text: string): string | null {
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}

/** Reads the headers that the schema names. Throws `invalid_request`. */
export function readHeaders<S extends z.ZodObject>(schema: S, headers: IncomingHttpHeaders): z.output<S> {
  const names = Object.keys(schema.shape);
  return parsed(schema, 'header', Object.fromEntries(names.map((name) => [name, headers[name.toLowerCase()]])));
}

/** Returns the first value of a header; null if it is missing. */
export function headerOf({ headers }: IncomingMessage, name: string): string | null {
  const value = headers[name];
  return (Array.isArray(value) ? value[0] : value) ?? null;
}

/** Returns the first value of a header; null if it is missing or blank. */
export function nonBlankHeaderOf(request: IncomingMessage, name: string): string | null {
  const value = headerOf(request, name);
  return value === null || value.trim() === '' ? null : value;
}

/** Returns the credential in `Authorization: Bearer`; null if there is none. */
export function bearerOf(request: IncomingMessage): string | null {
  return /^Bearer +(\S+) *$/i.exec(headerOf(request, 'authorization') ?? '')?.[1] ?? null;
}

/**
 * Returns the request target as path and query, without the scheme and authority that a client sends to a proxy, and without a fragment.
 */
export function originForm({ url = '/' }: IncomingMessage): string {
  return url
    .replace(/^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i, '')
    .replace(/#.*$/s, '')
    .replace(/^(?=\?|$)/, '/');
}

/** Throws `invalid_request` if the body is a part of the content, or has another encoding than the one that the caller decodes. */
export function requireWholeBody(request: IncomingMessage, decoded = 'identity'): void {
  const encoding = headerOf(request, 'content-encoding')?.toLowerCase() ?? 'identity';
  if (encoding !== 'identity' && encoding !== decoded) throw encodingProblem();
  if (headerOf(request, 'content-range') === null) return;
  throw invalidRequest(['header', 'content-range'], 'must be left out: send the whole content', 'content_range');
}

function encodingProblem(): HttpProblem {
  return invalidRequest(['header', 'content-encoding'], 'must be left out: send the body without compression', 'content_encoding');
}

const takenBodies = new WeakSet<IncomingMessage>();

/**
 * Returns the body of a request as a stream of bytes. It has no time limit as long as bytes arrive. If the reader stops early, the rest is
 * discarded, so the client gets the response. Destroying the request itself would close the connection first.
 */
export function takeBody({ request, closed }: Pick<RequestContext, 'request' | 'closed'>): ReadableStream<Uint8Array> {
  takenBodies.add(request);
  const given = bodyReadBefore(request);
  if (given !== null) return new Blob([given]).stream();
  const body = request.pipe(addAbortSignal(closed, new PassThrough()));
  // A stream without a reader must not throw an unhandled error.
  body.on('error', () => {});
  body.once('close', () => request.resume());
  return webStreamOf(body);
}

/**
 * Returns the body that the host application has read as bytes before. Null if it has read nothing. Throws if it has read something else:
 * the bytes are gone then.
 */
function bodyReadBefore(request: IncomingMessage & { readonly body?: unknown }): Buffer<ArrayBuffer> | null {
  if (!request.readableDidRead) return null;
  if (Buffer.isBuffer(request.body)) return Buffer.from(request.body);
  throw new Error('the application has parsed a body that Skep needs as bytes; mount the router of Skep before the body parsers');
}

/** Marks the body as taken, because it is read after a wait of the server. Otherwise the server would cut off the client meanwhile. */
export function keepBody(request: IncomingMessage): void {
  takenBodies.add(request);
}

export function isBodyTaken(request: IncomingMessage): boolean {
  return takenBodies.has(request);
}

/** Reads the body of a request. Rejects with `invalid_request` or `payload_too_large`. */
export type BodyReader = (request: IncomingMessage & { readonly body?: unknown }, response: ServerResponse) => Promise<unknown>;

/**
 * Returns a reader of JSON bodies. An empty body has no fields, and neither has `null`, which generated clients send if a caller gives no
 * body. A body that the host application has parsed stays unchanged.
 */
export function jsonReader(limitBytes = 256 * 1024): BodyReader {
  const parse = express.json({
    limit: limitBytes,
    type: ({ headers }) => headers['content-length'] !== '0',
    strict: false,
    inflate: false,
    verify: (request, _response, bytes) => {
      const problem = contentTypeProblem(request);
      if (bytes.length === 0) return;
      if (problem !== null) throw problem;
      if (!isUtf8(bytes)) throw invalidRequest(['body'], 'must be UTF-8', 'utf8');
    },
  });
  return async (request, response) => {
    await runParser(parse, request, response, limitBytes);
    return request.body ?? {};
  };
}

/** Returns a reader of bodies as bytes. */
export function bytesReader(limitBytes: number) {
  const parse = express.raw({ limit: limitBytes, type: () => true });
  return async (...[request, response]: Parameters<BodyReader>): Promise<Buffer> => {
    const given = bodyReadBefore(request);
    if (given !== null) return given;
    await runParser(parse, request, response, limitBytes);
    return Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0);
  };
}

async function runParser(
  parse: ReturnType<typeof express.raw>, request: IncomingMessage, response: ServerResponse, limitBytes: number,
): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  parse(request, response, (error?: unknown) => (error === undefined ? resolve() : reject(error)));
  await promise.catch((error: unknown) => {
    throw bodyProblem(error, request, limitBytes);
  });
}

const jsonType = /^application\/(?:[\w.+-]+\+)?json *(?:;|$)/i;
const otherCharset = /;\s*charset\s*=(?!\s*"?utf-?8"?\s*(?:;|$))/i;

function contentTypeProblem(request: IncomingMessage): HttpProblem | null {
  const type = headerOf(request, 'content-type');
  if (type === null || (jsonType.test(type) && !otherCharset.test(type))) return null;
  return invalidRequest(['header', 'content-type'], 'must be application/json in UTF-8', 'content_type');
}

/** Converts an error of Express's parser, by its `type`. Other errors mean that the client disconnected, and stay unchanged. */
function bodyProblem(error: unknown, request: IncomingMessage, limitBytes: number): unknown {
  if (error instanceof HttpProblem || !(error instanceof Error)) return error;
  if ('code' in error && /^(?:Z_|ERR_)/.test(String(error.code))) {
    return invalidRequest(['body'], 'must match the header Content-Encoding', 'content_encoding');
  }
  if (!('type' in error)) return error;
  switch (error.type) {
    case 'entity.too.large':
      return new HttpProblem('payload_too_large', { limitBytes, sizeBytes: 'length' in error ? Number(error.length) : null });
    case 'entity.parse.failed':
      return invalidRequest(['body'], 'must be JSON', 'json_invalid');
    case 'encoding.unsupported':
      return encodingProblem();
    case 'charset.unsupported':
      return contentTypeProblem(request) ?? error;
    default:
      return error;
  }
}
