import { STATUS_CODES } from 'node:http';
import { Failure, isFailure, type AnyFailure, type FailureContexts } from '../../domain/failure.ts';
import { sentenceOf, sentenceOfFailure } from '../shared/failure-sentences.ts';
import { snakeCase } from '../shared/snake-case.ts';
import { presentReason, type ValidationProblem } from './common-schemas.ts';

/** The problems of HTTP itself. Use cases do not have them. */
interface HttpContexts {
  not_found: Readonly<Record<string, never>>;
  method_not_allowed: { readonly allow: readonly string[] };
  /** The size is null if the request does not name it. */
  payload_too_large: { readonly limitBytes: number; readonly sizeBytes: number | null };
  upgrade_required: Readonly<Record<string, never>>;
  origin_forbidden: Readonly<Record<string, never>>;
  precondition_failed: { readonly etag: string | null };
  range_not_satisfiable: { readonly size: number };
  invalid_request: { readonly problems: readonly ValidationProblem[] };
}

type Contexts = Omit<FailureContexts, keyof HttpContexts> & HttpContexts;

export type ProblemCode = keyof Contexts;

/** A problem that this adapter finds, not a use case. */
export class HttpProblem<C extends keyof HttpContexts = keyof HttpContexts> extends Error {
  readonly code: C;
  readonly context: HttpContexts[C];

  constructor(code: C, context: HttpContexts[C]) {
    super(details[code](context));
    this.name = 'HttpProblem';
    this.code = code;
    this.context = context;
  }
}

const details: { readonly [C in keyof HttpContexts]: (context: HttpContexts[C]) => string } = {
  not_found: () => 'There is no such route. The OpenAPI document openapi.json lists all routes.',
  method_not_allowed: ({ allow }) => `The route does not accept this method. It accepts ${allow.join(', ')}.`,
  payload_too_large: ({ limitBytes, sizeBytes }) =>
    `The body of the request is too large. The limit is ${limitBytes} bytes${sizeBytes === null ? '' : `, and it has ${sizeBytes}`}.`,
  upgrade_required: () => 'This route is a WebSocket. Connect with a WebSocket client.',
  origin_forbidden: () => 'Pages of this origin may not open a WebSocket here. Add the origin to SKEP_CORS_ORIGINS to allow it.',
  precondition_failed: () => 'The file at the path does not match the condition in If-Match or If-None-Match. Read it again.',
  range_not_satisfiable: ({ size }) => `The file has only ${size} bytes. Request a range that begins before its end.`,
  invalid_request: ({ problems }) => problems.map(({ loc, msg }) => `${loc.join('.')}: ${msg}`).join('; '),
};

export type AnyProblem =
  | { [C in keyof HttpContexts]: HttpProblem<C> }[keyof HttpContexts]
  | Exclude<AnyFailure, Failure<'invalid_request'>>;

/** The resource that the context's `id` and `status` describe. */
type Resource = 'conversation' | 'execution' | 'key' | 'permission' | 'sandbox';
type HasResource = { readonly id: unknown } | { readonly status: unknown };
type Row<Context> = readonly [
  status: number, example: Context, ...(Context extends HasResource ? [resource: Resource] : [resource?: never])
];
type Rows = { readonly [C in ProblemCode]: Row<Contexts[C]> };

const [sandboxId, conversationId] = ['sb-3f9k2m7x', 'conv-8d2n5q1c'];
const [provider, runtime, repository] = ['github', 'docker', 'acme/shop'];
const wrongLimit = { loc: ['query', 'limit'], msg: 'must be a whole number', type: 'invalid_type' };

const rows: Rows = {
  unauthorized: [401, {}],
  forbidden: [403, { action: 'start a sandbox', access: 'full' }],
  origin_forbidden: [403, {}],
  login_code_invalid: [403, {}],
  not_found: [404, {}],
  repository_not_found: [404, { repository }],
  key_not_found: [404, { id: 'key-6t4m1z8w' }, 'key'],
  branch_not_found: [404, { repository, branch: 'next' }],
  sandbox_not_found: [404, { id: sandboxId }, 'sandbox'],
  conversation_not_found: [404, { id: conversationId }, 'conversation'],
  permission_not_found: [404, { id: 'perm-5h2j8v4s' }, 'permission'],
  file_not_found: [404, { path: '/workspace/notes.md' }],
  port_not_exposed: [404, { id: sandboxId, port: 5173, exposed: [8000] }, 'sandbox'],
  execution_not_found: [404, { id: 'exec-4k2m9x7q' }, 'execution'],
  method_not_allowed: [405, { allow: ['GET', 'HEAD'] }],
  wrong_file_type: [409, { path: '/workspace', fileType: 'directory' }],
  repository_empty: [409, { repository, branch: 'main' }],
  sandbox_not_running: [409, { id: sandboxId, status: 'ERROR' }, 'sandbox'],
  sandbox_not_paused: [409, { id: sandboxId, status: 'ERROR' }, 'sandbox'],
  sandbox_busy: [409, { id: sandboxId, status: 'STARTING' }, 'sandbox'],
  sandbox_in_quarantine: [409, { id: sandboxId }, 'sandbox'],
  proxy_off: [409, {}],
  freeze_unsupported: [409, { runtime }],
  conversation_not_ready: [409, { id: conversationId, reason: { code: 'start_failed', cause: null } }, 'conversation'],
  conversation_changes_unavailable: [409, { id: conversationId, reason: { code: 'start_commit_missing' } }, 'conversation'],
  conversation_publish_refused: [409, { id: conversationId, branch: 'main', reason: { code: 'default_branch' } }, 'conversation'],
  listing_unsupported: [409, { provider, listing: 'branches' }],
  pull_requests_unsupported: [409, { provider: 'local' }],
  pull_request_refused: [409, { provider, repository, branch: 'skep/conv-8d2n5q1c', reason: { code: 'pull_request_forbidden' } }],
  key_name_taken: [409, { name: 'ci' }],
  keys_unsupported: [409, {}],
  idempotency_conflict: [409, { key: 'order-4711' }],
  input_closed: [409, { id: 'exec-4k2m9x7q' }, 'execution'],
  output_dropped: [410, { oldest: 67_108_864 }],
  precondition_failed: [412, { etag: '"a-1j9k2m3n"' }],
  payload_too_large: [413, { limitBytes: 262_144, sizeBytes: 400_000 }],
  range_not_satisfiable: [416, { size: 4096 }],
  invalid_request: [422, { problems: [wrongLimit] }],
  sandbox_limit_reached: [429, { limit: 'running_per_owner', max: 5, retryAfterSeconds: 10 }],
  conversation_limit_reached: [429, { limit: 'conversations_per_owner', max: 100, retryAfterSeconds: 60 }],
  upgrade_required: [426, {}],
  execution_limit_reached: [429, { limit: 'executions_per_sandbox', max: 100, retryAfterSeconds: 10 }],
  rate_limited: [429, { limit: 'requests_per_minute', retryAfterSeconds: 12 }],
  internal: [500, { incident: 'inc-7k3p9w2d' }],
  port_closed: [502, { id: sandboxId, port: 8000 }, 'sandbox'],
  port_response_invalid: [502, { id: sandboxId, port: 8000, problem: 'Missing expected CR after header value' }, 'sandbox'],
  repository_forbidden: [502, { provider, repository }],
  provider_unauthorized: [502, { provider }],
  provider_failed: [502, { provider, reason: { code: 'server_error', status: 500 } }],
  provider_rate_limited: [503, { provider, retryAfterSeconds: 1800 }],
  runtime_unavailable: [503, { runtime, reason: { code: 'unreachable' }, retryAfterSeconds: 5 }],
  store_unavailable: [503, { reason: { code: 'locked' }, retryAfterSeconds: 1 }],
  shutting_down: [503, { retryAfterSeconds: 5 }],
  provider_timeout: [504, { provider, limitMs: 10_000 }],
  runtime_timeout: [504, { runtime, limitMs: 30_000 }],
};

export const problemCodes: readonly string[] = Object.keys(rows);

export function httpStatusOf(code: ProblemCode): number {
  return rows[code][0];
}

/** The place of a use case's argument in the request. An argument that is not listed is the body field with its name. */
const argumentLocations: Readonly<Record<string, string[]>> = {
  repositoryName: ['path', 'repository_name'],
  ownerId: ['body', 'user_id'],
  timeoutMs: ['body', 'timeout_seconds'],
  expiresInMs: ['body', 'expires_in_seconds'],
  after: ['query', 'page_id'],
  id: ['path', 'id'],
  path: ['query', 'path'],
  filePath: ['query', 'file_path'],
  directory: ['query', 'path'],
  archive: ['body'],
};

/**
 * Converts the error to a problem with a status. Returns null for an unexpected error, or one with a code that only a newer copy of the
 * package knows.
 */
export function problemOf(error: unknown): AnyProblem | null {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the constructor ties the context to the code
  if (error instanceof HttpProblem) return error as AnyProblem;
  if (!isFailure(error) || !Object.hasOwn(rows, error.code)) return null;
  if (error.code !== 'invalid_request') return error;
  return new HttpProblem('invalid_request', {
    problems: error.context.problems.map(({ argument, reason }) => ({
      loc: argumentLocations[argument] ?? ['body', snakeCase(argument)], msg: sentenceOf(reason), type: reason.code,
    })),
  });
}

/** Returns the response to a problem: problem details (RFC 9457), or the list of mistakes in the request. */
export function responseTo(problem: AnyProblem, detail = detailOf(problem)) {
  const status = httpStatusOf(problem.code);
  if (problem.code === 'invalid_request') {
    const body = JSON.stringify({ detail: problem.context.problems });
    return { status, body, headers: { 'Content-Type': 'application/json; charset=utf-8' } };
  }
  const retryAfter = 'retryAfterSeconds' in problem.context ? wholeSeconds(problem.context.retryAfterSeconds) : null;
  const body = {
    type: 'about:blank',
    title: STATUS_CODES[status] ?? 'Failure',
    status,
    detail,
    code: problem.code,
    ...membersOf(problem),
    ...('reason' in problem.context && { reason: presentReason(problem.context.reason) }),
    ...(retryAfter !== null && { retry_after_seconds: retryAfter }),
  };
  return { status, body: JSON.stringify(body), headers: headersOf(problem, retryAfter) };
}

/** Returns whole seconds, at least 1. An adapter of somebody else may give any number, and every 429 and 503 has a `Retry-After`. */
function wholeSeconds(wait: number): number {
  return Number.isFinite(wait) ? Math.max(1, Math.ceil(wait)) : 1;
}

export function detailOf(problem: AnyProblem): string {
  return problem instanceof HttpProblem ? problem.message : sentenceOfFailure(problem);
}

/** Context members that the problem details show in another way. */
const shownElsewhere: ReadonlySet<string> = new Set(['action', 'isUnlimited', 'problem', 'reason', 'retryAfterSeconds']);

/**
 * Returns the context as members. `id` and `status` get the resource's name as prefix, because RFC 9457 reserves `status` for the HTTP
 * status.
 */
function membersOf({ code, context }: AnyProblem): Readonly<Record<string, unknown>> {
  const members = Object.entries(context).filter(([name]) => !shownElsewhere.has(name));
  const [, , resource] = rows[code];
  const nameOf = (name: string): string => (name === 'id' || name === 'status' ? `${resource}_${name}` : snakeCase(name));
  return Object.fromEntries(members.map(([name, value]) => [nameOf(name), value]));
}

export function exampleBody(code: ProblemCode): unknown {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- an example's context is of its code
  const context = rows[code][1] as never;
  const problem = problemOf(isHttpCode(code) ? new HttpProblem(code, context) : new Failure(code, context));
  return problem === null ? null : JSON.parse(responseTo(problem).body);
}

function isHttpCode(code: ProblemCode): code is keyof HttpContexts {
  return code in details;
}

function headersOf(problem: AnyProblem, retryAfter: number | null): Record<string, string> {
  const headers: Record<string, string> = { 'Content-Type': 'application/problem+json; charset=utf-8' };
  if (retryAfter !== null) headers['Retry-After'] = String(retryAfter);
  if (problem.code === 'unauthorized') headers['WWW-Authenticate'] = 'ApiKey, Bearer';
  if (problem.code === 'upgrade_required') headers['Upgrade'] = 'websocket';
  if (problem.code === 'method_not_allowed') headers['Allow'] = problem.context.allow.join(', ');
  if (problem.code === 'payload_too_large' || problem.code === 'shutting_down') headers['Connection'] = 'close';
  return headers;
}
