import type { IncomingMessage, ServerResponse } from 'node:http';
import { Router } from 'express';
import helmet from 'helmet';
import { type Skep, shuttingDown } from '../../application/skep.ts';
import { Failure } from '../../domain/failure.ts';
import { apiReferenceFiles, apiReferencePaths } from './api-reference.ts';
import { Authenticator } from './authentication.ts';
import { crossOrigin } from './cors.ts';
import { addDashboard, dashboardFolder } from './dashboard.ts';
import { ExecutionWriters } from './execution-writers.ts';
import { openApiDocument, type OpenApiDocument } from './openapi.ts';
import { StreamedBody, type Operation } from './operation.ts';
import type { RouterOptions } from './http-options.ts';
import { createPageTokens } from './page-token.ts';
import { HttpProblem, problemOf, responseTo } from './problems.ts';
import { RequestContext, type HttpContext, type HttpErrorHandler, type HttpHandler } from './request-context.ts';
import { jsonReader } from './request-input.ts';
import { logRequest } from './request-log.ts';
import { sendStream } from './send-stream.ts';
import { changeOperation, publishOperation } from './routes/conversation-changes.ts';
import { conversationOperations } from './routes/conversations.ts';
import { eventOperations, openTicket } from './routes/events.ts';
import { executionOperations } from './routes/executions.ts';
import { fileOperations } from './routes/files.ts';
import { keyOperations } from './routes/keys.ts';
import { messageOperations } from './routes/messages.ts';
import { metricsOperation } from './routes/metrics.ts';
import { microagentOperations } from './routes/microagents.ts';
import { overviewOperations } from './routes/overview.ts';
import { portOperations } from './routes/ports.ts';
import { repositoryOperations } from './routes/repositories.ts';
import { sandboxReportOperations } from './routes/sandbox-logs-and-usage.ts';
import { sandboxSpecOperations } from './routes/sandbox-specs.ts';
import { transcriptOperation } from './routes/transcript.ts';
import { sandboxOperations } from './routes/sandboxes.ts';
import { readinessReporter, serviceOperations } from './routes/health-and-service.ts';

/** All operations, for the routes and the OpenAPI document. The first matching path gets a request, so literal paths come first. */
const operations: readonly Operation[] = [
  ...microagentOperations,
  ...repositoryOperations,
  ...conversationOperations,
  transcriptOperation,
  ...messageOperations,
  changeOperation,
  publishOperation,
  ...eventOperations,
  ...sandboxOperations,
  ...sandboxReportOperations,
  ...portOperations,
  ...executionOperations,
  ...fileOperations,
  ...sandboxSpecOperations,
  ...overviewOperations,
  metricsOperation,
  ...keyOperations,
  ...serviceOperations,
];

/** A request handler for Express's `app.use`. Declared here, so users of the package need no types of Express. */
export type SkepRouter = (request: IncomingMessage, response: ServerResponse, next: (error?: unknown) => void) => void;

/** For `app.use('/agents', createRouter(skep))`. Answers every request. Throws a TypeError if `skep` is a promise. */
export function createRouter(skep: Skep, options: RouterOptions = {}): SkepRouter {
  const given: { readonly auth?: unknown } | null | undefined = skep;
  if (given?.auth === undefined) throw new TypeError('createRouter needs the Skep that createSkep resolves to; did you forget await?');
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- Express hands on its own requests and responses, which extend Node's
  return routerOf(skep, options, skep.closing, null) as unknown as SkepRouter;
}

/** The router of {@link createRouter}. After `ending` fires, it refuses new requests with `shutting_down`, and endless streams end. */
export function routerOf(skep: Skep, options: RouterOptions, ending: AbortSignal, localUrl: string | null): Router {
  let document: OpenApiDocument | null = null;
  const http: HttpContext = {
    skep,
    options,
    authenticator: new Authenticator(skep.auth, options),
    pageTokens: createPageTokens(skep.secret),
    writers: new ExecutionWriters(),
    readiness: readinessReporter(skep),
    readBody: jsonReader(options.bodyLimitBytes),
    localUrl,
    openApi: () => (document ??= openApiDocument(operations, options.product)),
    ending,
  };
  const router = Router({ caseSensitive: true, strict: true });
  router.use(securityHeaders, beginRequest(http), crossOrigin(options.corsOrigins ?? []));
  router.get(apiReferencePaths, apiReferenceFiles());
  router.get('/docs/', (_request, response) => response.redirect(response.locals['context'].link('/docs')));
  for (const mountOther of options.mounts ?? []) mountOther(router, http);
  for (const [path, atPath] of Map.groupBy(operations, ({ path }) => path)) mount(router, path, atPath);
  // After the API, because it looks for a file for each path.
  addDashboard(router, options.dashboard === false ? null : (options.dashboard ?? dashboardFolder()));
  router.use(refusalHandler(new HttpProblem('not_found', {}), true), answerError);
  return router;
}

/** Headers against content sniffing, foreign content and framing. The server that terminates TLS decides on `Strict-Transport-Security`. */
const securityHeaders = helmet({
  contentSecurityPolicy: { useDefaults: false, directives: { defaultSrc: ["'none'"], frameAncestors: ["'none'"] } },
  frameguard: { action: 'deny' },
  crossOriginOpenerPolicy: false,
  dnsPrefetchControl: false,
  hsts: false,
  ieNoOpen: false,
  originAgentCluster: false,
  permittedCrossDomainPolicies: false,
  xssFilter: false,
});

function beginRequest(http: HttpContext): HttpHandler {
  return (request, response, next) => {
    const context = new RequestContext(http, request, response);
    response.locals.context = context;
    response.setHeader('Cache-Control', 'no-store');
    response.setHeader('X-Request-Id', context.requestId);
    response.once('close', () => logRequest(context));
    // A client may wait silently. It is cut off if it leaves its response unread, or does not send a body that is waited for.
    response.on('timeout', (socket) => {
      if (socket.writableLength > 0 || (!request.complete && request.readableLength === 0)) socket.destroy();
    });
    if (http.ending.aborted) throw shuttingDown;
    // Express decodes path parameters during routing and does not report which one is malformed. Each `%` is escaped here, so Express
    // passes them on as sent, and the operation decodes them.
    request.url = context.path.replaceAll('%', '%25') + request.url.slice(context.path.length);
    next();
  };
}

function mount(router: Router, path: string, atPath: readonly Operation[]): void {
  const route = router.route(path.replaceAll('{repository_name}', '{*repository_name}').replaceAll(/\{(\w+)\}/g, ':$1'));
  const allow: string[] = [];
  for (const operation of atPath) {
    route[operation.method](operationHandler(operation));
    allow.push(operation.method.toUpperCase(), ...(operation.method === 'get' ? ['HEAD'] : []));
  }
  route.all(refusalHandler(new HttpProblem('method_not_allowed', { allow }), !atPath.every(({ isPublic }) => isPublic)));
}

/** Throws the problem. If the path needs a key, checks the key first, so a caller without a key gets only `unauthorized`. */
function refusalHandler(problem: HttpProblem, needsKey: boolean): HttpHandler {
  return async (_request, response) => {
    if (needsKey) await authenticate(response.locals.context);
    throw problem;
  };
}

function operationHandler(operation: Operation): HttpHandler {
  return async (_request, response) => {
    const { context } = response.locals;
    context.operation = operation;
    if (!operation.isPublic) await authorize(context, operation);
    const { status, media = 'application/json; charset=utf-8' } = operation.success;
    response.status(status);
    const value = await operation.perform(context);
    // The connection is a WebSocket now.
    if (status === 101) return;
    if (value !== undefined) response.set('Content-Type', value instanceof StreamedBody ? (value.media ?? media) : media);
    if (value instanceof StreamedBody) await sendStream(context, value);
    else if (value === undefined) send(context, null);
    else send(context, typeof value === 'string' ? value : JSON.stringify(value));
  };
}

/** Every method except GET changes something, and a key with `read` access must not do that. */
async function authorize(context: RequestContext, { method, adminOnly = false, summary }: Operation): Promise<void> {
  await authenticate(context);
  const { access } = context.principal;
  if (adminOnly ? access === 'admin' : method === 'get' || access !== 'read') return;
  // The sentence is "This key may not ...".
  throw new Failure('forbidden', { action: summary.charAt(0).toLowerCase() + summary.slice(1), access: adminOnly ? 'admin' : 'full' });
}

async function authenticate(context: RequestContext): Promise<void> {
  const { http, request, operation } = context;
  const ticket = operation?.takesTicket === true ? new URLSearchParams(context.query).get('ticket') : null;
  context.credential = ticket === null ? http.authenticator.credentialOf(request) : openTicket(context, ticket);
  context.caller = await http.authenticator.authenticate(request, context.credential);
}

/** Sends the whole response. Node omits the body in a response to HEAD, and drops it if the client has disconnected. */
function send({ http, response }: RequestContext, body: string | null): void {
  if (http.ending.aborted) response.set('Connection', 'close');
  if (body !== null) response.set('Content-Length', String(Buffer.byteLength(body)));
  response.end(body);
}

const answerError: HttpErrorHandler = (error: unknown, _request, response, _next) => {
  const { context } = response.locals;
  const problem = problemOf(error) ?? context.logUnexpected(error);
  context.problem = problem;
  if (problem === error && /^(?:internal$|provider_|runtime_|store_)/.test(problem.code)) {
    context.skep.logger.warn({ request_id: context.requestId, code: problem.code, error }, 'request failed');
  }
  if (response.headersSent) {
    response.destroy();
  } else {
    const { status, headers, body } = responseTo(problem);
    response.status(status).set(headers);
    send(context, body);
  }
};
