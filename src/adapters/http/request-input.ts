import { isUtf8 } from 'node:buffer';
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import express from 'express';
import { z } from 'zod';
import { HttpProblem, type ValidationProblem } from './problems.ts';
import type { HttpHandler } from './request-context.ts';

type InputPart = 'path' | 'query' | 'header' | 'body';

/** However much is wrong with a request, the answer names so many problems and quotes so many characters of a name. */
const maxProblems = 20;
const maxQuoted = 100;

/** The problem of a request with one thing wrong. */
export function invalidRequest(loc: readonly [InputPart, ...string[]], msg: string, type: string): HttpProblem<'invalid_request'> {
  return new HttpProblem('invalid_request', { problems: [{ loc, msg, type }] });
}

/** The input as the schema describes it. Throws `invalid_request` with everything that is wrong, after what was found before. */
export function parsed<S extends z.ZodType>(schema: S, part: InputPart, input: unknown, found?: ValidationProblem): z.output<S> {
  const result = schema.safeParse(input);
  if (result.success && found === undefined) return result.data;
  const problems = result.success ? [] : problemsOf(part, result.error);
  throw new HttpProblem('invalid_request', { problems: found === undefined ? problems : [found, ...problems] });
}

function problemsOf(part: InputPart, error: z.ZodError): ValidationProblem[] {
  const problems: ValidationProblem[] = [];
  for (const issue of error.issues) {
    if (problems.length >= maxProblems) break;
    // The names of headers have no case of their own.
    const nameOf = (key: PropertyKey) => quoted(part === 'header' ? String(key).toLowerCase() : String(key));
    const loc = [part, ...issue.path.map((key) => (typeof key === 'number' ? key : nameOf(key)))];
    if (issue.code === 'unrecognized_keys') {
      for (const key of issue.keys.slice(0, maxProblems - problems.length)) {
        problems.push({ loc: [...loc, quoted(key)], msg: 'is not a field of this request', type: issue.code });
      }
    } else {
      problems.push({ loc, msg: issue.message, type: issue.code });
    }
  }
  return problems;
}

function quoted(key: string): string {
  return key.length > maxQuoted ? `${key.slice(0, maxQuoted)}...` : key;
}

/** Reads path parameters, still percent-encoded, by the schema. Throws `invalid_request`. */
export function readPath<S extends z.ZodObject>(schema: S, encoded: Readonly<Record<string, string>>): z.output<S> {
  const problems: ValidationProblem[] = [];
  const given: Record<string, string> = {};
  for (const name of Object.keys(schema.shape)) {
    const value = decoded(encoded[name] ?? '');
    if (value === null) problems.push(badEncoding('path', name));
    else given[name] = value;
  }
  if (problems.length > 0) throw new HttpProblem('invalid_request', { problems });
  return parsed(schema, 'path', given);
}

/** Makes a reader of raw queries (what follows the `?`) by the schema. It ignores other parameters. Throws `invalid_request`. */
export function queryReader<S extends z.ZodObject>(schema: S): (raw: string) => z.output<S> {
  const lists = new Map(Object.entries(schema.shape).map(([name, field]) => [name, isList(field)]));
  return (raw) => {
    const given: Record<string, string | string[]> = {};
    for (const pair of raw === '' ? [] : raw.split('&')) {
      const equals = pair.indexOf('=');
      const name = decoded(equals === -1 ? pair : pair.slice(0, equals), '+');
      if (name === null || !lists.has(name)) continue;
      const value = equals === -1 ? '' : decoded(pair.slice(equals + 1), '+');
      const earlier = given[name];
      if (value === null) return parsed(schema, 'query', given, badEncoding('query', name));
      if (Array.isArray(earlier)) earlier.push(value);
      else if (lists.get(name) === true) given[name] = [value];
      else if (earlier === undefined) given[name] = value;
      else return parsed(schema, 'query', given, { loc: ['query', name], msg: 'must be given once only', type: 'repeated' });
    }
    return parsed(schema, 'query', given);
  };
}

function isList(field: z.core.$ZodType): boolean {
  let inner = field;
  while (inner instanceof z.ZodOptional || inner instanceof z.ZodDefault || inner instanceof z.ZodNullable) inner = inner.unwrap();
  return inner instanceof z.ZodArray;
}

function badEncoding(part: InputPart, name: string): ValidationProblem {
  return { loc: [part, name], msg: 'must be percent-encoded UTF-8', type: 'percent_encoding' };
}

/** The text that was percent-encoded; in a query `+` stands for a space. Null if the encoding is broken. */
function decoded(text: string, space?: '+'): string | null {
  try {
    return decodeURIComponent(space === undefined ? text : text.replaceAll(space, ' '));
  } catch {
    return null;
  }
}

/** Reads the headers that the schema names. Throws `invalid_request`. */
export function readHeaders<S extends z.ZodObject>(schema: S, headers: IncomingHttpHeaders): z.output<S> {
  const names = Object.keys(schema.shape);
  return parsed(schema, 'header', Object.fromEntries(names.map((name) => [name, headers[name.toLowerCase()]])));
}

/** The one value of a header; null if it is absent. */
export function headerOf({ headers }: IncomingMessage, name: string): string | null {
  const value = headers[name];
  return (Array.isArray(value) ? value[0] : value) ?? null;
}

/**
 * Parses JSON bodies into `request.body`, which stays undefined without a body. A body that the host application has parsed already
 * stays as it is. Problems: `invalid_request`, `payload_too_large`.
 */
export function jsonBody(limitBytes: number): HttpHandler {
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
  return (request, response, next) => {
    parse(request, response, (error?: unknown) => next(error === undefined ? undefined : bodyProblem(error, request, limitBytes)));
  };
}

const jsonType = /^application\/(?:[\w.+-]+\+)?json *(?:;|$)/i;
const charset = /;\s*charset\s*=\s*"?([^";\s]+)/i;

function contentTypeProblem(request: IncomingMessage): HttpProblem | null {
  const type = headerOf(request, 'content-type');
  if (type === null) return null;
  if (!jsonType.test(type)) return invalidRequest(['header', 'content-type'], 'must be application/json', 'content_type');
  const named = charset.exec(type)?.[1]?.toLowerCase() ?? 'utf-8';
  if (named === 'utf-8' || named === 'utf8') return null;
  return invalidRequest(['header', 'content-type'], 'must name no charset but utf-8', 'content_type');
}

/** What Express's parser found wrong, by the `type` that it gives its errors. Others mean that the client went away. */
function bodyProblem(error: unknown, request: IncomingMessage, limitBytes: number): unknown {
  if (error instanceof HttpProblem || !(error instanceof Error) || !('type' in error)) return error;
  switch (error.type) {
    case 'entity.too.large':
      return new HttpProblem('payload_too_large', { limitBytes });
    case 'entity.parse.failed':
      return invalidRequest(['body'], 'must be JSON', 'json_invalid');
    case 'encoding.unsupported':
      return invalidRequest(['header', 'content-encoding'], 'must be left out: bodies are taken as they are', 'content_encoding');
    case 'charset.unsupported':
      return contentTypeProblem(request) ?? error;
    default:
      return error;
  }
}
