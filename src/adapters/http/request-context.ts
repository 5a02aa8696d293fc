import { randomUUID } from 'node:crypto';
import type { ErrorRequestHandler, Request, RequestHandler, Response } from 'express';
import type { Skep } from '../../application/skep.ts';
import { Failure } from '../../domain/failure.ts';
import type { Principal } from '../../domain/principal.ts';
import type { Authenticator } from './authentication.ts';
import type { OpenApiDocument } from './openapi.ts';
import type { createPageTokens } from './page-token.ts';
import type { Operation } from './operation.ts';
import type { RouterOptions } from './http-options.ts';
import type { ExecutionWriters } from './execution-writers.ts';
import type { AnyProblem } from './problems.ts';
import { headerOf, type BodyReader } from './request-input.ts';
import type { ReadinessReporter } from './routes/health-and-service.ts';

export interface HttpContext {
  readonly skep: Skep;
  readonly options: RouterOptions;
  readonly authenticator: Authenticator;
  readonly pageTokens: ReturnType<typeof createPageTokens>;
  readonly writers: ExecutionWriters;
  readonly readiness: ReadinessReporter;
  /** The address of a local deployment that the OpenAPI document also names. Null in the application of somebody else. */
  readonly localUrl: string | null;
  /** Created at the first call. */
  readonly openApi: () => OpenApiDocument;
  readonly readBody: BodyReader;
  /** Fires with `shutting_down` when the server shuts down: it accepts no new work, and endless streams end. */
  readonly ending: AbortSignal;
}

/** The values in `response.locals` that the handlers of a request share. */
interface Locals extends Record<string, unknown> {
  context: RequestContext;
}

/** Path parameters. Express splits the value of a wildcard at its slashes. */
type Parameters = Record<string, string | string[]>;

export type HttpHandler = RequestHandler<Parameters, unknown, unknown, unknown, Locals>;
export type HttpErrorHandler = ErrorRequestHandler<Parameters, unknown, unknown, unknown, Locals>;

const safeRequestId = /^[A-Za-z0-9._-]{1,64}$/;

export class RequestContext {
  readonly http: HttpContext;
  readonly request: Request<Parameters, unknown, unknown, unknown>;
  readonly response: Response<unknown>;
  readonly requestId: string;
  /** The path as the client sent it, without the mount path. */
  readonly path: string;
  /** The query as the client sent it, without the question mark. */
  readonly query: string;
  /** The mount path of the router: `/agents`; empty at the root. */
  readonly mount: string;
  /** The operation of the route; null if there is none. */
  operation: Operation | null = null;
  caller: Principal | null = null;
  credential: string | null = null;
  problem: AnyProblem | null = null;
  /** The sandbox of a request whose path does not name it, for the log. Only an id that Skep has made or checked. */
  sandboxId: string | null = null;
  #closed: AbortSignal | null = null;
  readonly startedAt = performance.now();

  constructor(http: HttpContext, request: Request<Parameters, unknown, unknown, unknown>, response: Response<unknown>) {
    this.http = http;
    this.request = request;
    this.response = response;
    this.mount = request.baseUrl;
    const given = headerOf(request, 'x-request-id');
    this.requestId = given !== null && safeRequestId.test(given) ? given : randomUUID();
    const question = request.url.indexOf('?');
    this.path = question === -1 ? request.url : request.url.slice(0, question);
    this.query = question === -1 ? '' : request.url.slice(question + 1);
  }

  /** Fires when the response is complete or the client disconnects. Created at the first use, which few requests need. */
  get closed(): AbortSignal {
    return (this.#closed ??= closeOf(this.response));
  }

  get skep(): Skep {
    return this.http.skep;
  }

  get principal(): Principal {
    if (this.caller === null) throw new Error('the operation is public, so it has no principal');
    return this.caller;
  }

  /** False if the key of the caller may only read, so it must neither write to a command nor make it wait. */
  get mayWrite(): boolean {
    return this.principal.access !== 'read';
  }

  // Handlers destructure a context, so its functions are arrow functions, which keep `this`.

  /** Returns a path of this API as clients must write it. */
  readonly link = (path: string): string => {
    const { publicUrl } = this.http.options;
    const publicPath = publicUrl === undefined ? '' : new URL(publicUrl).pathname.replace(/\/+$/, '');
    return `${publicPath}${this.mount}${path}`;
  };

  /** Returns a signal that fires if the client leaves, its key stops working, or the server ends. Throws `rate_limited`. */
  readonly openStream = (identify?: () => Promise<unknown>): AbortSignal =>
    AbortSignal.any([this.openTransfer(identify), this.http.ending]);

  /** The same for a stream that ends by itself: a server that ends waits for it. */
  readonly openTransfer = (identify = (): Promise<unknown> => this.skep.auth.authenticate(this.credential)): AbortSignal =>
    AbortSignal.any([this.closed, this.http.authenticator.openStream(this.principal, identify, this.closed)]);

  /** Logs an unexpected error. Returns the failure for the client, which contains only the number of the log entry. */
  readonly logUnexpected = (error: unknown): Failure<'internal'> => {
    const { request, requestId, skep } = this;
    const incident = skep.random.id('inc');
    // An error caused by a client's disconnect is not logged. A failed stream has destroyed its response, but not yet closed it.
    const clientIsGone = this.closed.aborted || request.errored !== null;
    if (!clientIsGone) skep.logger.error({ request_id: requestId, incident, error }, 'a request failed with an unexpected error');
    return new Failure('internal', { incident }, { cause: error });
  };
}

function closeOf(response: Response<unknown>): AbortSignal {
  const closed = new AbortController();
  if (response.destroyed) closed.abort();
  else response.once('close', () => closed.abort());
  return closed.signal;
}
