/**
 * Every way in which Skep refuses or fails, with what is known about it. The list is closed: an adapter that maps
 * failures to another form (HTTP, an exit code) does so with a table that does not compile until it is complete.
 *
 * `retryAfterSeconds` is a whole number of seconds, at least 1.
 */
export interface FailureContexts {
  unauthorized: Readonly<Record<string, never>>;
  forbidden: { readonly action: string };
  repository_not_found: { readonly repository: string };
  /** The credential is good, but may not read this repository. */
  repository_forbidden: { readonly provider: string; readonly repository: string };
  /** There is no commit, and so not the branch that was asked for. */
  repository_empty: { readonly repository: string; readonly branch: string };
  branch_not_found: { readonly repository: string; readonly branch: string };
  sandbox_not_found: { readonly id: string };
  conversation_not_found: { readonly id: string };
  permission_not_found: { readonly id: string };
  /** A path inside a sandbox. */
  file_not_found: { readonly path: string };
  sandbox_not_running: { readonly id: string; readonly status: string };
  sandbox_not_paused: { readonly id: string; readonly status: string };
  sandbox_busy: { readonly id: string; readonly status: string };
  /** It has no agent, its start failed, or too much is queued. */
  conversation_not_ready: { readonly id: string; readonly reason: string };
  idempotency_conflict: { readonly key: string };
  invalid_request: { readonly problems: readonly RequestProblem[] };
  sandbox_limit_reached: { readonly limit: string; readonly max: number; readonly retryAfterSeconds: number };
  rate_limited: { readonly limit: string; readonly retryAfterSeconds: number };
  internal: { readonly incident: string };
  provider_unauthorized: { readonly provider: string };
  provider_failed: { readonly provider: string; readonly reason: string };
  provider_rate_limited: { readonly provider: string; readonly retryAfterSeconds: number };
  provider_timeout: { readonly provider: string; readonly limitMs: number };
  runtime_unavailable: { readonly runtime: string; readonly reason: string; readonly retryAfterSeconds: number };
  runtime_timeout: { readonly runtime: string; readonly limitMs: number };
  store_unavailable: { readonly reason: string; readonly retryAfterSeconds: number };
  shutting_down: { readonly retryAfterSeconds: number };
}

export type FailureCode = keyof FailureContexts;

/** One thing wrong with what was asked for. */
export interface RequestProblem {
  /** The argument's name in the use case or port, such as `sandboxSpecId`. */
  readonly argument: string;
  /** What is wrong, for programs, such as `unknown_sandbox_spec`. */
  readonly code: string;
  readonly message: string;
}

const marker = Symbol.for('skep.failure');

/** A failure of the closed list. Its message is written for the caller: it holds no secret, path or upstream body. */
export class Failure<C extends FailureCode = FailureCode> extends Error {
  readonly [marker] = true;
  readonly code: C;
  readonly context: FailureContexts[C];

  constructor(code: C, context: FailureContexts[C], options?: { cause?: unknown }) {
    super(describe(code, context), options);
    this.name = 'Failure';
    this.code = code;
    this.context = context;
  }
}

/** A failure whose context is typed by its code: `if (failure.code === 'sandbox_busy') failure.context.status`. */
export type AnyFailure = { [C in FailureCode]: Failure<C> }[FailureCode];

/** Recognises a failure by its marker, so that two copies of the package understand each other's. */
export function isFailure(error: unknown): error is AnyFailure {
  return typeof error === 'object' && error !== null && marker in error;
}

/** Is it a failure with this code? */
export function isFailureOf<C extends FailureCode>(error: unknown, code: C): error is Failure<C> {
  return isFailure(error) && error.code === code;
}

type Descriptions = { readonly [C in FailureCode]: (context: FailureContexts[C]) => string };

const descriptions: Descriptions = {
  unauthorized: () => 'The API key is missing, unknown, expired or revoked. Send a valid one.',
  forbidden: ({ action }) => `This API key may not ${action}. Use a key with full access.`,
  repository_not_found: ({ repository }) =>
    `The repository ${JSON.stringify(repository)} does not exist, or the deployment's credential can't see it.`,
  repository_forbidden: ({ provider, repository }) =>
    `The git provider ${provider} does not let the deployment's credential read the repository ${JSON.stringify(repository)}. Its administrator has to allow it.`,
  repository_empty: ({ repository, branch }) =>
    `The repository ${JSON.stringify(repository)} is empty: it has no commit, and so no branch ${JSON.stringify(branch)}. Push one, or select no branch.`,
  branch_not_found: ({ repository, branch }) =>
    `The repository ${JSON.stringify(repository)} has no branch ${JSON.stringify(branch)}. Select one that it has, or none for its default branch.`,
  sandbox_not_found: ({ id }) => `There is no sandbox ${JSON.stringify(id)}.`,
  conversation_not_found: ({ id }) => `There is no conversation ${JSON.stringify(id)}.`,
  permission_not_found: ({ id }) => `The conversation does not wait for the permission ${JSON.stringify(id)}; its events tell which.`,
  file_not_found: ({ path }) => `There is no ${JSON.stringify(path)} in the sandbox.`,
  sandbox_not_running: ({ id, status }) => `The sandbox ${id} is ${status}, and this needs a RUNNING one.`,
  sandbox_not_paused: ({ id, status }) => `The sandbox ${id} is ${status}; only a PAUSED one can be resumed.`,
  sandbox_busy: ({ id, status }) => `The sandbox ${id} is ${status}; wait until that is over, then try again.`,
  conversation_not_ready: ({ id, reason }) => `The conversation ${id} takes no message: ${reason}.`,
  idempotency_conflict: ({ key }) =>
    `The idempotency key ${JSON.stringify(key)} was used with another request; use a new key for a new request.`,
  invalid_request: ({ problems }) => problems.map(({ argument, message }) => `${argument}: ${message}`).join('; '),
  sandbox_limit_reached: ({ limit, max }) =>
    `The limit ${limit} (${max}) is reached; pause or delete a sandbox, or try again later.`,
  rate_limited: ({ limit }) => `Too many requests: the limit is ${limit}. Try again later.`,
  internal: ({ incident }) => `Something went wrong inside; the log tells more under ${incident}.`,
  provider_unauthorized: ({ provider }) =>
    `The git provider ${provider} refused the deployment's credential. Its administrator has to renew it.`,
  provider_failed: ({ provider, reason }) => `The git provider ${provider} failed: ${reason}.`,
  provider_rate_limited: ({ provider }) => `The git provider ${provider} limits the rate of requests. Try again later.`,
  provider_timeout: ({ provider, limitMs }) => `The git provider ${provider} did not answer within ${limitMs} ms.`,
  runtime_unavailable: ({ runtime, reason }) => `The sandbox runtime ${runtime} is not available: ${reason}.`,
  runtime_timeout: ({ runtime, limitMs }) => `The sandbox runtime ${runtime} did not answer within ${limitMs} ms.`,
  store_unavailable: ({ reason }) => `The store is not available: ${reason}.`,
  shutting_down: () => 'The server is shutting down and takes no new work. Try again later.',
};

function describe<C extends FailureCode>(code: C, context: FailureContexts[C]): string {
  return descriptions[code](context);
}
