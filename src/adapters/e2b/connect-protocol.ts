import { pipeline } from 'node:stream/promises';
import { z } from 'zod';
import type { Skep } from '../../application/skep.ts';
import type { Principal } from '../../domain/principal.ts';
import { type AnyProblem, detailOf, problemOf, httpStatusOf } from '../http/problems.ts';
import type { RequestContext } from '../http/request-context.ts';

/**
 * The part of the Connect protocol that E2B's clients use: JSON over HTTP/1.1. A request or a response is one message or a stream of
 * messages. Source: https://connectrpc.com/docs/protocol
 */

/** The error codes in use, with the HTTP status of each. */
const statuses = {
  invalid_argument: 400, unauthenticated: 401, permission_denied: 403, not_found: 404, already_exists: 409, failed_precondition: 400,
  out_of_range: 400, resource_exhausted: 429, unimplemented: 501, unavailable: 503, deadline_exceeded: 504, internal: 500,
} as const;

type ConnectCode = keyof typeof statuses;

/** An error with a code of the protocol. */
export class ConnectError extends Error {
  readonly code: ConnectCode;

  constructor(code: ConnectCode, message: string) {
    super(message);
    this.name = 'ConnectError';
    this.code = code;
  }

  /** The status of a response with one message. */
  get status(): number {
    return statuses[this.code];
  }

  get body(): { readonly code: ConnectCode; readonly message: string } {
    return { code: this.code, message: this.message };
  }
}

const codesByStatus: Readonly<Record<number, ConnectCode>> = {
  400: 'invalid_argument', 401: 'unauthenticated', 403: 'permission_denied', 404: 'not_found', 409: 'failed_precondition',
  410: 'out_of_range', 413: 'invalid_argument', 422: 'invalid_argument', 429: 'resource_exhausted',
};

/**
 * Returns the message if the sandbox is gone or does not run, otherwise null. E2B's clients recognize it by "was not found". Programs look
 * for "was killed or reached its end of life".
 */
export function goneMessage(problem: AnyProblem): string | null {
  const { code } = problem;
  if (code === 'sandbox_not_running') return `The running sandbox was not found. ${detailOf(problem)}`;
  if (code !== 'sandbox_not_found') return null;
  return `The running sandbox was not found: the sandbox was killed or reached its end of life. ${detailOf(problem)}`;
}

/** Returns the message about the problem. Only Skep's own clients know the headers that the usual message names. */
export function messageOf(problem: AnyProblem): string {
  if (problem.code !== 'unauthorized') return detailOf(problem);
  return 'The key or the token is missing, unknown, expired or revoked. Create a key: skep keys create NAME --format e2b';
}

/**
 * Converts the error to the protocol's form. Only a sandbox that is gone or stopped is `unavailable`: E2B's clients take this code to mean
 * that.
 */
export function connectErrorOf(error: unknown, context: RequestContext): ConnectError {
  if (error instanceof ConnectError) return error;
  const problem = problemOf(error) ?? context.logUnexpected(error);
  const gone = goneMessage(problem);
  if (gone !== null) return new ConnectError('unavailable', gone);
  return new ConnectError(codeOf(problem), messageOf(problem));
}

function codeOf(problem: AnyProblem): ConnectCode {
  if (problem.code === 'wrong_file_type') return 'invalid_argument';
  const hasNoRoom = problem.code === 'runtime_unavailable' && problem.context.reason.code === 'process_limit_reached';
  return hasNoRoom ? 'resource_exhausted' : codesByStatus[httpStatusOf(problem.code)] ?? 'internal';
}

/** The largest message of a request, in bytes. Input for a process comes in such a message. */
export const maxMessageBytes = 4 * 2 ** 20;

const headerBytes = 5;
const endOfStream = 0b10;

export interface ServiceCall {
  readonly skep: Skep;
  readonly caller: Principal;
  readonly sandboxId: string;
  readonly templateId: string;
  /** Returns the absolute path of one that may be relative to the working directory of the sandbox. */
  readonly resolve: (path: string) => string;
  /** The time limit that the client sets, in milliseconds; null for none. */
  readonly timeoutMs: number | null;
  /** Fires if the client leaves or its key stops working, and for endless streams also when the server ends. */
  readonly ends: AbortSignal;
}

/** A method of a service. It gets the raw body of the request; a method of the kind `input` gets it as it arrives. */
export type Method =
  | { readonly kind: 'call'; readonly handle: (call: ServiceCall, body: Buffer) => Promise<object> }
  | { readonly kind: 'stream'; readonly handle: (call: ServiceCall, body: Buffer) => AsyncIterable<object> }
  | { readonly kind: 'input'; readonly handle: (call: ServiceCall, body: AsyncIterable<Uint8Array>) => Promise<object> };

export type Service = Readonly<Record<string, Method>>;

type Handle<S extends z.ZodType, Result> = (call: ServiceCall, message: z.output<S>) => Result;

/** Declares a method that returns one message. */
export function callOf<S extends z.ZodType>(schema: S, handle: Handle<S, Promise<object>>): Method {
  return { kind: 'call', handle: (call, body) => handle(call, readMessage(schema, body)) };
}

/** Declares a method that returns a stream of messages. */
export function streamOf<S extends z.ZodType>(schema: S, handle: Handle<S, AsyncIterable<object>>): Method {
  return { kind: 'stream', handle: (call, body) => handle(call, readMessage(schema, decodeFrame(body))) };
}

/** Declares a method that takes a stream of messages and returns one message. */
export function inputOf<S extends z.ZodType>(
  schema: S, handle: (call: ServiceCall, messages: AsyncGenerator<z.output<S>, void>) => Promise<object>,
): Method {
  return { kind: 'input', handle: (call, body) => handle(call, readMessages(schema, body)) };
}

/** Throws `invalid_argument` if the body does not match the schema. */
function readMessage<S extends z.ZodType>(schema: S, body: Buffer): z.output<S> {
  const result = schema.safeParse(parseBody(body));
  if (result.success) return result.data;
  throw new ConnectError('invalid_argument', z.prettifyError(result.error));
}

function decodeFrame(body: Buffer): Buffer {
  const length = body.length < headerBytes ? -1 : body.readUInt32BE(1);
  if (body[0] === 0 && body.length === headerBytes + length) return body.subarray(headerBytes);
  throw new ConnectError('invalid_argument', 'The body must be one message, not compressed.');
}

/** Yields the messages of a body as they arrive. Throws `invalid_argument` if one is too large, or does not match the schema. */
async function* readMessages<S extends z.ZodType>(schema: S, body: AsyncIterable<Uint8Array>): AsyncGenerator<z.output<S>, void> {
  let rest = Buffer.alloc(0);
  for await (const chunk of body) {
    rest = Buffer.concat([rest, chunk]);
    while (rest.length >= headerBytes) {
      const end = headerBytes + rest.readUInt32BE(1);
      if (end > maxMessageBytes) throw new ConnectError('invalid_argument', `A message may have ${maxMessageBytes} bytes.`);
      if (rest.length < end) break;
      yield readMessage(schema, decodeFrame(rest.subarray(0, end)));
      rest = rest.subarray(end);
    }
  }
  if (rest.length > 0) throw new ConnectError('invalid_argument', 'The last message is incomplete.');
}

export function parseBody(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString());
  } catch {
    throw new ConnectError('invalid_argument', 'The body must be JSON.');
  }
}

function encodeFrame(message: object, flags = 0): Buffer {
  const content = Buffer.from(JSON.stringify(message));
  const header = Buffer.alloc(headerBytes);
  header.writeUInt8(flags);
  header.writeUInt32BE(content.length, 1);
  return Buffer.concat([header, content]);
}

/** The messages of a response that is a stream. */
export type Messages = AsyncIterable<object> | Iterable<object>;

/** What a quiet stream sends. */
export interface Keepalive {
  readonly message: object;
  readonly everyMs: number;
}

/** Sends the messages as fast as the client reads. The last message says how the stream ended. */
export async function sendMessages(context: RequestContext, messages: Messages, keepalive: Keepalive): Promise<void> {
  const { response } = context;
  response.writeHead(200, { 'Content-Type': 'application/connect+json', 'X-Accel-Buffering': 'no' });
  response.flushHeaders();
  const timer = setInterval(() => {
    if (response.writableLength === 0) response.write(encodeFrame(keepalive.message));
  }, keepalive.everyMs);
  async function* frames(): AsyncGenerator<Buffer, void> {
    let ended = {};
    try {
      for await (const message of messages) yield encodeFrame(message);
    } catch (error) {
      ended = { error: connectErrorOf(error, context).body };
    }
    yield encodeFrame(ended, endOfStream);
  }
  await pipeline(frames, response).catch(() => 'the client has disconnected').finally(() => clearInterval(timer));
}
