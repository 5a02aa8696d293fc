import type { IncomingMessage, ServerResponse } from 'node:http';
import { Router } from 'express';
import helmet from 'helmet';
import type { Skep } from '../../application/skep.ts';
import { Failure } from '../../domain/failure.ts';
import { apiReferenceFiles } from './api-reference.ts';
import { Authenticator } from './authentication.ts';
import { sendStream } from './event-stream.ts';
import { openApiDocument, type OpenApiDocument } from './openapi.ts';
import { noBody, type AnyReply, type Operation } from './operation.ts';
import { settingsOf, type RouterOptions, type RouterSettings } from './options.ts';
import { HttpProblem, problemAnswer, problemOf, type AnyProblem } from './problems.ts';
import { RequestContext, type HttpContext, type HttpErrorHandler, type HttpHandler } from './request-context.ts';
import { jsonBody } from './request-input.ts';
import { conversationOperations } from './routes/conversations.ts';
import { eventOperations } from './routes/events.ts';
import { messageOperations } from './routes/messages.ts';
import { microagentOperations } from './routes/microagents.ts';
import { sandboxSpecOperations } from './routes/sandbox-specs.ts';
import { sandboxOperations } from './routes/sandboxes.ts';
import { readinessReporter, serviceOperations } from './routes/service.ts';

/** Everything that the HTTP interface can do: the routes and the OpenAPI document are made from it. */
const operations: readonly Operation[] = [
  ...microagentOperations,
  ...conversationOperations,
  ...messageOperations,
  ...eventOperations,
  ...sandboxOperations,
  ...sandboxSpecOperations,
  ...serviceOperations,
];

/** A request handler as Express's `app.use` takes it. The package declares it itself, so that it needs none of Express's types. */
export type SkepRouter = (request: IncomingMessage, response: ServerResponse, next: (error?: unknown) => void) => void;

/** How soon a client that is refused because the server ends may try again. */
const shuttingDown = new Failure('shutting_down', { retryAfterSeconds: 5 });

/**
 * The HTTP interface as an Express router, for any mount path: `app.use('/agents', createRouter(skep))`. It answers every request that
 * reaches it, also those for routes and methods that it does not have.
 */
export function createRouter(skep: Skep, options: RouterOptions = {}): SkepRouter {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- Express hands on its own requests and responses, which extend Node's
  return routerOf(skep, settingsOf(options), new AbortController().signal) as unknown as SkepRouter;
}

/** The router of {@link createRouter}. When `ending` fires, new requests are refused with `shutting_down`, and endless streams end. */
export function routerOf(skep: Skep, settings: RouterSettings, ending: AbortSignal): Router {
  let document: OpenApiDocument | null = null;
  const http: HttpContext = {
    skep,
    settings,
    publicPath: settings.publicUrl === null ? '' : new URL(settings.publicUrl).pathname.replace(/\/+$/, ''),
    authenticator: new Authenticator(skep.auth, settings),
    readiness: readinessReporter(skep),
    openApi: () => (document ??= openApiDocument(operations, settings.product)),
    ending,
  };
  const router = Router({ caseSensitive: true, strict: true });
  router.use(securityHeaders, beginRequest(http));
  router.use('/docs', apiReferenceFiles());
  const json = jsonBody(settings.bodyLimitBytes);
  for (const [path, atPath] of operationsByPath()) mount(router, path, atPath, json);
  router.use(refuse(new HttpProblem('not_found', {}), true), answerError);
  return router;
}

/** A path that is written out goes before one with a parameter. */
function operationsByPath(): readonly (readonly [string, readonly Operation[]])[] {
  const byPath = [...Map.groupBy(operations, ({ path }) => path)];
  return [...byPath.filter(([path]) => !path.includes('{')), ...byPath.filter(([path]) => path.includes('{'))];
}

/** Headers against content that browsers guess, load or frame. Whoever terminates TLS decides on `Strict-Transport-Security`. */
const securityHeaders = helmet({
  contentSecurityPolicy: { useDefaults: false, directives: { defaultSrc: ["'none'"], frameAncestors: ["'none'"] } },
  xFrameOptions: { action: 'deny' },
  strictTransportSecurity: false,
  crossOriginOpenerPolicy: false,
  originAgentCluster: false,
  xDownloadOptions: false,
  xDnsPrefetchControl: false,
  xPermittedCrossDomainPolicies: false,
  xXssProtection: false,
});

function beginRequest(http: HttpContext): HttpHandler {
  return (request, response, next) => {
    const context = new RequestContext(http, request, response);
    response.locals.context = context;
    response.setHeader('Cache-Control', 'no-store');
    response.setHeader('X-Request-Id', context.requestId);
    if (http.ending.aborted) throw shuttingDown;
    // Express decodes path parameters while it looks for the route, and can't say which one is malformed. With each `%` escaped it hands
    // them on as they were sent, and the operation decodes them.
    request.url = context.path.replaceAll('%', '%25') + request.url.slice(context.path.length);
    next();
  };
}

/** Mounts the operations of one path; other methods are refused. */
function mount(router: Router, path: string, atPath: readonly Operation[], json: HttpHandler): void {
  const route = router.route(path.replaceAll('{repository_name}', '{*repository_name}').replaceAll(/\{(\w+)\}/g, ':$1'));
  const allow: string[] = [];
  for (const operation of atPath) {
    route[operation.method](admit(operation), operation.body === noBody ? [] : json, perform(operation));
    allow.push(operation.method.toUpperCase(), ...(operation.method === 'get' ? ['HEAD'] : []));
  }
  route.all(refuse(new HttpProblem('method_not_allowed', { allow }), atPath.some(({ needsKey }) => needsKey)));
}

/** Refuses the request; without a needed key, with `unauthorized` and nothing else. */
function refuse(problem: HttpProblem, needsKey: boolean): HttpHandler {
  return async (_request, response) => {
    if (needsKey) await authenticate(response.locals.context);
    throw problem;
  };
}

/** Checks the key, and all of the request but its body. */
function admit(operation: Operation): HttpHandler {
  return async (request, response, next) => {
    const { context } = response.locals;
    context.operation = operation;
    if (operation.needsKey) await authenticate(context);
    const { changes } = operation;
    if (changes !== undefined && context.principal.access === 'read') throw new Failure('forbidden', { action: changes });
    response.locals.perform = operation.prepare(context, pathParametersOf(request.params));
    next();
  };
}

async function authenticate(context: RequestContext): Promise<void> {
  const { authenticator } = context.http;
  const principal = await authenticator.authenticate(context.request);
  context.caller = principal;
  await authenticator.countRequest(principal);
}

/** Express splits what a wildcard matches at its slashes. */
function pathParametersOf(params: Readonly<Record<string, string | string[]>>): Record<string, string> {
  return Object.fromEntries(Object.entries(params).map(([name, value]) => [name, typeof value === 'string' ? value : value.join('/')]));
}

function perform(operation: Operation): HttpHandler {
  return async (request, response) => {
    const { context } = response.locals;
    const body = request.body === undefined ? {} : request.body;
    const reply = await response.locals.perform(operation.body === noBody ? undefined : body);
    await sendReply(context, operation, reply);
    context.logWhenClosed(null);
  };
}

const json = 'application/json; charset=utf-8';

async function sendReply(context: RequestContext, { success }: Operation, reply: AnyReply): Promise<void> {
  const { media = json } = success;
  if ('parts' in reply) {
    writeHead(context, success.status, { 'Content-Type': media, ...reply.headers });
    await sendStream(context, reply.parts);
    return;
  }
  const { value, status = success.status, headers } = reply;
  const body = media !== json && typeof value === 'string' ? value : JSON.stringify(value);
  if (value === undefined) send(context, status, { ...headers }, null);
  else send(context, status, { 'Content-Type': media, ...headers }, body);
}

/** Sends the whole answer, unless the client is gone. Node leaves the body of an answer to HEAD out. */
function send(context: RequestContext, status: number, headers: Readonly<Record<string, string>>, body: string | null): void {
  const { response } = context;
  writeHead(context, status, headers);
  if (body !== null && !response.destroyed) response.setHeader('Content-Length', Buffer.byteLength(body));
  response.end(body);
}

function writeHead({ http, response }: RequestContext, status: number, headers: Readonly<Record<string, string>>): void {
  response.statusCode = status;
  if (http.ending.aborted) response.setHeader('Connection', 'close');
  for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
}

const answerError: HttpErrorHandler = (error: unknown, _request, response, _next) => {
  const { context } = response.locals;
  const problem = problemOf(error) ?? unforeseen(context, error);
  if (problem === error && isOfTheServer(problem.code)) {
    context.skep.logger.warn({ request_id: context.requestId, code: problem.code, error }, 'request failed');
  }
  if (response.headersSent) {
    response.destroy();
  } else {
    const { status, headers, body } = problemAnswer(problem);
    send(context, status, headers, body);
  }
  context.logWhenClosed(problem);
};

/** The problem of an error that nobody foresaw: all it says is a number that the log has too. */
function unforeseen({ request, response, requestId, skep }: RequestContext, error: unknown): AnyProblem {
  const incident = skep.random.id('inc');
  // What breaks because the client is gone is no incident.
  const clientIsGone = response.destroyed || request.errored !== null;
  if (!clientIsGone) skep.logger.error({ request_id: requestId, incident, error }, 'request failed unforeseen');
  const failure = new Failure('internal', { incident }, { cause: error });
  return problemOf(failure) ?? failure;
}

function isOfTheServer(code: string): boolean {
  return code === 'internal' || /^(?:provider|runtime|store)_/.test(code);
}
