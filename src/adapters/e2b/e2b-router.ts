import type { IncomingMessage } from 'node:http';
import { posix } from 'node:path';
import { Router } from 'express';
import { z } from 'zod';
import { Failure } from '../../domain/failure.ts';
import type { SandboxStatus } from '../../domain/sandbox.ts';
import { type AnyProblem, problemOf, httpStatusOf } from '../http/problems.ts';
import type { HttpHandler, RequestContext } from '../http/request-context.ts';
import { bytesReader, headerOf, keepBody, readQuery, takeBody } from '../http/request-input.ts';
import { realTimers, startTimeout, type Timeout } from '../shared/timeout.ts';
import {
  ConnectError, connectErrorOf, goneMessage, type Keepalive, maxMessageBytes, messageOf, type Messages, type Method, parseBody,
  sendMessages, type Service, type ServiceCall,
} from './connect-protocol.ts';
import { controlRoutes, type ControlRoute, unsupported } from './control-api.ts';
import { download, upload } from './file-transfer.ts';
import { createFilesystemService } from './filesystem-service.ts';
import { processService } from './process-service.ts';
import { digestFromToken } from './sandbox-token.ts';
import { findSigner, type SignedFile } from './signed-file-url.ts';

const readBytes = bytesReader(maxMessageBytes);

/** The path of this API. `E2B_API_URL` and `E2B_SANDBOX_URL` are the address of Skep's API plus this path. */
const mountPath = '/e2b';

/**
 * Adds the API for E2B's clients. Pass it to `createRouter` in `mounts`. Signed file URLs are at `/files` of the API's address, because the
 * clients expect them there.
 */
export function e2b(router: Router): void {
  const e2bRouter = Router({ caseSensitive: true });
  for (const route of controlRoutes) e2bRouter[route.method]([...route.paths], controlHandler(route));
  e2bRouter.get('/health', sandboxHandler(async (context) => {
    const { sandboxId: id, status } = await accessOf(context, 'look');
    if (status !== 'RUNNING') throw new Failure('sandbox_not_running', { id, status });
    context.response.status(204).end();
  }));
  e2bRouter.post('/process.Process/:method', serviceHandler(processService));
  e2bRouter.post('/filesystem.Filesystem/:method', serviceHandler(createFilesystemService()));
  const files = {
    get: sandboxHandler(async (context) => {
      const { call, path } = await fileAccess(context, 'read');
      await download(call, context, path);
    }),
    post: sandboxHandler(async (context) => {
      const { call, path } = await fileAccess(context, 'write');
      context.response.json(await upload(call, context, path));
    }),
  };
  e2bRouter.route('/files').get(files.get).post(files.post);
  e2bRouter.use(restHandler(async ({ request, path }) => {
    throw unsupported(`${request.method} ${path}`);
  }));
  router.use(mountPath, e2bRouter);
  router.route('/files').get(files.get).post(files.post);
}

function controlHandler({ method, handle }: ControlRoute): HttpHandler {
  return restHandler(async (context) => {
    const { http, request, response } = context;
    context.credential = headerOf(request, 'x-api-key');
    context.caller = await http.authenticator.authenticate(request, context.credential);
    if (method !== 'get' && context.caller.access === 'read') {
      throw new Failure('forbidden', { action: 'change a sandbox', access: 'full' });
    }
    const bytes = await readBytes(request, response);
    const id = String(request.params['id'] ?? '');
    const body = await handle({ context, id, body: bytes.length > 0 ? parseBody(bytes) : {} });
    if (body === undefined) response.status(204).end();
    else response.json(body);
  });
}

type Handle = (context: RequestContext) => Promise<void>;

/** Runs the handler. Sends an error in the form of E2B's API if it fails. */
function restHandler(handle: Handle, errorOf = restErrorOf): HttpHandler {
  return async (_request, response) => {
    const { context } = response.locals;
    try {
      await handle(context);
    } catch (error) {
      const { status, message } = error instanceof ConnectError ? error : errorOf(problemOf(error) ?? context.logUnexpected(error));
      if (response.headersSent) response.destroy();
      else response.status(status).json({ code: status, message });
    }
  };
}

/** Handles a request to a sandbox itself. If the sandbox is gone or stopped, the status is 502, as from E2B's own proxy. */
const sandboxHandler = (handle: Handle): HttpHandler => restHandler(handle, (problem) => {
  const message = goneMessage(problem);
  return message === null ? restErrorOf(problem) : { status: 502, message };
});

function restErrorOf(problem: AnyProblem) {
  const status = httpStatusOf(problem.code);
  const isInvalid = status === 422 || problem.code === 'wrong_file_type';
  return { status: isInvalid ? 400 : status, message: messageOf(problem) };
}

/** A look resumes no sandbox. A stream has no end of its own. Streams and transfers count against the limit of the key's streams. */
type Form = 'look' | 'call' | 'stream' | 'transfer';

interface Access extends ServiceCall {
  readonly status: SandboxStatus;
}

/** Checks the sandbox id and the token in the headers. Returns the access that they grant. Throws `unauthorized`. */
async function accessOf(context: RequestContext, form: Form, userOfQuery = ''): Promise<Access> {
  const { request, skep } = context;
  const id = headerOf(request, 'e2b-sandbox-id') ?? '';
  const token = headerOf(request, 'x-access-token') ?? '';
  if (id === '' && token !== '') {
    const advice = "E2B's package for JavaScript needs version 2.14 or newer.";
    throw new ConnectError('invalid_argument', `The request does not name its sandbox (E2b-Sandbox-Id). ${advice}`);
  }
  const digest = digestFromToken(skep, id, token);
  if (digest === null) throw new Failure('unauthorized', {});
  const authorization = headerOf(request, 'authorization');
  const user = authorization === null ? '' : Buffer.from(authorization.replace(/^Basic /i, ''), 'base64').toString().replace(/:.*$/s, '');
  return await accessTo(context, id, digest, userOfQuery || user, form);
}

/** E2B's name for the user of a template. Here it means the user of the sandbox. */
const defaultUser = 'user';

/**
 * Returns the access of the key's owner to the sandbox. It ends with the key. Resumes a sandbox that was started with `autoResume`. The
 * token or signature must be checked before. Throws `unauthorized`, `sandbox_not_found`, `rate_limited`, and the errors of `wakeSandbox`.
 */
async function accessTo(context: RequestContext, id: string, digest: string, user: string, form: Form): Promise<Access> {
  const { skep: { auth, sandboxes }, http, request } = context;
  context.sandboxId = id;
  const caller = await http.authenticator.authenticateDigest(digest);
  context.caller = caller;
  const sandbox = await sandboxes.get(caller, id);
  const { status, spec } = sandbox;
  if (user !== '' && user !== defaultUser && user !== spec.isolation.user) {
    const known = spec.isolation.user === null ? 'the user of its image' : JSON.stringify(spec.isolation.user);
    const advice = 'Leave the user out, or set isolation.user in the sandbox spec.';
    throw new ConnectError('invalid_argument', `In this sandbox everything runs as ${known}. ${advice}`);
  }
  const timeout = headerOf(request, 'connect-timeout-ms') ?? '';
  const identify = async (): Promise<unknown> => await auth.authenticateDigest?.(digest);
  const ends = form === 'stream' ? context.openStream(identify) : form === 'transfer' ? context.openTransfer(identify) : context.closed;
  if (form !== 'look' && spec.rest.timeoutPause?.wakesOnAccess === true && status !== 'RUNNING') {
    keepBody(request);
    await sandboxes.wake(sandbox, { mayResume: true });
  }
  return {
    skep: context.skep, caller, sandboxId: id, templateId: spec.id, resolve: (path) => posix.resolve(spec.workingDir, path),
    timeoutMs: /^[1-9]\d{0,9}$/.test(timeout) ? Number(timeout) : null, ends, status,
  };
}

const defaultKeepaliveSeconds = 90;

/** Returns the interval of keepalive messages that the client asks for, in milliseconds. */
function keepaliveMs(request: IncomingMessage): number {
  const asked = headerOf(request, 'keepalive-ping-interval') ?? '';
  return 1000 * (/^[1-9]\d{0,3}$/.test(asked) ? Number(asked) : defaultKeepaliveSeconds);
}

/** Reads the body of a service call after its token is checked. */
async function readCall(context: RequestContext, form: Form): Promise<[Access, Buffer]> {
  const access = await accessOf(context, form);
  return [access, await readBytes(context.request, context.response)];
}

/** Starts the time limit that the client sets for a stream. Some clients rely on the server to end the stream then. */
function startTimeLimit({ timeoutMs, ends }: Access): Timeout {
  const failure = (): Error => new ConnectError('deadline_exceeded', `The time limit of ${timeoutMs} ms is over.`);
  const timers = timeoutMs === null ? { after: () => () => {} } : realTimers;
  return startTimeout(timers, timeoutMs ?? 0, failure, [ends]);
}

type MethodOf<K extends Method['kind']> = Extract<Method, { readonly kind: K }>;

/** Reads the request. Returns the messages of the response. */
async function beginStream(context: RequestContext, method: MethodOf<'stream'>): Promise<AsyncIterable<object>> {
  const [access, body] = await readCall(context, 'stream');
  return (async function* messages() {
    using limit = startTimeLimit(access);
    yield* method.handle({ ...access, ends: limit.signal }, body);
  })();
}

/** Handles the messages of the request as they arrive. Returns the only message of the response. */
async function handleInput(context: RequestContext, method: MethodOf<'input'>): Promise<Iterable<object>> {
  const access = await accessOf(context, 'stream');
  using limit = startTimeLimit(access);
  return [await method.handle({ ...access, ends: limit.signal }, takeBody(context))];
}

function serviceHandler(service: Service): HttpHandler {
  const keepalive = service === processService ? { event: { keepalive: {} } } : { keepalive: {} };
  return async (request, response) => {
    const { context } = response.locals;
    const name = String(request.params['method']);
    const method = Object.hasOwn(service, name) ? service[name] : undefined;
    if (method === undefined || method.kind === 'call') await handleCall(context, name, method);
    else await handleStream(context, method, { message: keepalive, everyMs: keepaliveMs(request) });
  };
}

async function handleCall(context: RequestContext, name: string, method: MethodOf<'call'> | undefined): Promise<void> {
  const { response } = context;
  try {
    if (method === undefined) throw new ConnectError('unimplemented', `Skep has no method ${name} for E2B's clients.`);
    response.json(await method.handle(...(await readCall(context, 'call'))));
  } catch (error) {
    const { status, body } = connectErrorOf(error, context);
    response.status(status).json(body);
  }
}

async function handleStream(context: RequestContext, method: MethodOf<'stream' | 'input'>, keepalive: Keepalive): Promise<void> {
  const begun: Promise<Messages> = method.kind === 'input' ? handleInput(context, method) : beginStream(context, method);
  // Read before the response begins: some clients send no more of their body then. The end of the stream reports an error.
  const messages = await begun.catch(failing);
  await sendMessages(context, messages, keepalive);
}

/** Returns the messages of a response that has none and fails. */
// oxlint-disable-next-line require-yield -- it throws before a first message
async function* failing(error: unknown): AsyncGenerator<object, void> {
  throw error;
}

const fileQuery = z.object({
  path: z.string().default(''), username: z.string().default(''), signature: z.string().default(''),
  signature_expiration: z.string().nullable().default(null),
});

/** Returns the access to a file, by the signature in the URL or else by the headers. */
async function fileAccess(context: RequestContext, operation: SignedFile['operation']): Promise<{ call: ServiceCall; path: string }> {
  const { path, username: user, signature, signature_expiration: expiration } = readQuery(fileQuery, context.query);
  if (signature === '') {
    return { call: await accessOf(context, 'transfer', user), path };
  }
  const { sandbox, digest } = await findSigner(context, { path, operation, user, signature, expiration });
  return { call: await accessTo(context, sandbox.id, digest, user, 'transfer'), path };
}
