import type { FileType } from './file-entry.ts';
import type { KeyAccess } from './principal.ts';
import type { Reason } from './reason.ts';

/** A new code does not compile until every table that maps failures has an entry for it. `retryAfterSeconds` is at least 1. */
export interface FailureContexts {
  unauthorized: Readonly<Record<string, never>>;
  /** `access` is what the key needs for the action. Null: no key may do it. `isUnlimited`: nor may it be limited to repositories. */
  forbidden: { readonly action: string; readonly access: Exclude<KeyAccess, 'read'> | null; readonly isUnlimited?: true };
  /** A valid key with this name exists. */
  key_name_taken: { readonly name: string };
  key_not_found: { readonly id: string };
  /** The deployment has an `auth` adapter without keys. */
  keys_unsupported: Readonly<Record<string, never>>;
  /** The code was used, has expired or never existed. */
  login_code_invalid: Readonly<Record<string, never>>;
  repository_not_found: { readonly repository: string };
  /** The credential is good, but may not read this repository. */
  repository_forbidden: { readonly provider: string; readonly repository: string };
  repository_empty: { readonly repository: string; readonly branch: string };
  branch_not_found: { readonly repository: string; readonly branch: string };
  sandbox_not_found: { readonly id: string };
  conversation_not_found: { readonly id: string };
  permission_not_found: { readonly id: string };
  /** The spec of the sandbox does not name the port; `exposed` lists the ports that it names. */
  port_not_exposed: { readonly id: string; readonly port: number; readonly exposed: readonly number[] };
  proxy_off: Readonly<Record<string, never>>;
  /** Nothing listens on the port inside the sandbox, or the connection to it broke before an answer. */
  port_closed: { readonly id: string; readonly port: number };
  /** The program at the port sent no valid HTTP response; `problem` is the text of Node's parser. */
  port_response_invalid: { readonly id: string; readonly port: number; readonly problem: string };
  /** A path inside a sandbox, or of a repository. */
  file_not_found: { readonly path: string };
  /** The entry at the path inside a sandbox, or above it, does not have the required type. */
  wrong_file_type: { readonly path: string; readonly fileType: FileType };
  execution_not_found: { readonly id: string };
  /** The output before the offset `oldest` is not kept any more. */
  output_dropped: { readonly oldest: number };
  input_closed: { readonly id: string };
  sandbox_not_running: { readonly id: string; readonly status: string };
  sandbox_not_paused: { readonly id: string; readonly status: string };
  sandbox_busy: { readonly id: string; readonly status: string };
  sandbox_in_quarantine: { readonly id: string };
  freeze_unsupported: { readonly runtime: string };
  /** The conversation has no agent, its start failed, or too much is queued. */
  conversation_not_ready: { readonly id: string; readonly reason: Reason };
  conversation_changes_unavailable: { readonly id: string; readonly reason: Reason };
  conversation_publish_refused: { readonly id: string; readonly branch: string; readonly reason: Reason };
  /** No git provider can list this. */
  listing_unsupported: { readonly provider: string; readonly listing: 'repositories' | 'branches' };
  /** The git provider can't open pull requests. */
  pull_requests_unsupported: { readonly provider: string };
  pull_request_refused: { readonly provider: string; readonly repository: string; readonly branch: string; readonly reason: Reason };
  idempotency_conflict: { readonly key: string };
  invalid_request: { readonly problems: readonly RequestProblem[] };
  sandbox_limit_reached: { readonly limit: string; readonly max: number; readonly retryAfterSeconds: number };
  conversation_limit_reached: { readonly limit: string; readonly max: number; readonly retryAfterSeconds: number };
  execution_limit_reached: { readonly limit: string; readonly max: number; readonly retryAfterSeconds: number };
  rate_limited: { readonly limit: string; readonly retryAfterSeconds: number };
  internal: { readonly incident: string };
  /** `ssoUrl`: the credential is good, but its owner has to authorise it for an organisation, at this URL. Null if the host names none. */
  provider_unauthorized: { readonly provider: string; readonly ssoUrl?: string | null };
  provider_failed: { readonly provider: string; readonly reason: Reason };
  provider_rate_limited: { readonly provider: string; readonly retryAfterSeconds: number };
  provider_timeout: { readonly provider: string; readonly limitMs: number };
  runtime_unavailable: { readonly runtime: string; readonly reason: Reason; readonly retryAfterSeconds: number };
  runtime_timeout: { readonly runtime: string; readonly limitMs: number };
  store_unavailable: { readonly reason: Reason; readonly retryAfterSeconds: number };
  shutting_down: { readonly retryAfterSeconds: number };
}

export type FailureCode = keyof FailureContexts;

export type FailureData = { [C in FailureCode]: { readonly failure: C; readonly context: FailureContexts[C] } }[FailureCode];

export interface RequestProblem {
  /** The argument's name in the use case or port, such as `sandboxSpecId`. */
  readonly argument: string;
  readonly reason: Reason;
}

/** What a publication had pushed before it failed. Publishing again does only the rest. */
export interface PushedBranch {
  readonly branch: string;
  readonly commit: string;
}

type FailureContext<C extends FailureCode> = FailureContexts[C] & { readonly pushed?: PushedBranch };

const marker = Symbol.for('skep.failure');

/**
 * Its data contains no secret and no path of the host; of another server's response at most an `ExternalMessage`. Entry adapters turn it
 * into a message for people.
 */
export class Failure<C extends FailureCode = FailureCode> extends Error {
  readonly [marker] = true;
  readonly code: C;
  readonly context: FailureContext<C>;

  constructor(code: C, context: FailureContext<C>, options?: { cause?: unknown }) {
    super(`${code} ${JSON.stringify(context)}`, options);
    this.name = 'Failure';
    this.code = code;
    this.context = context;
  }
}

/** A failure whose context is typed by its code: `if (failure.code === 'sandbox_busy') failure.context.status`. */
export type AnyFailure = { [C in FailureCode]: Failure<C> }[FailureCode];

/** Returns the failure of a publication that had pushed its branch. */
export function afterPush<C extends FailureCode>(failure: Failure<C>, pushed: PushedBranch): Failure<C> {
  return new Failure(failure.code, { ...failure.context, pushed }, { cause: failure });
}

/** Returns true for a failure. The marker identifies it, so two copies of the package recognise each other's failures. */
export function isFailure(error: unknown): error is AnyFailure {
  return typeof error === 'object' && error !== null && marker in error;
}

export function isFailureOf<C extends FailureCode>(error: unknown, ...codes: readonly C[]): error is { [K in C]: Failure<K> }[C] {
  return isFailure(error) && codes.some((code) => code === error.code);
}

/** Returns true if a record could be read, but has invalid content. A retry fails again. */
export function isDamagedRecord(error: unknown): boolean {
  return isFailureOf(error, 'store_unavailable') && error.context.reason.code === 'damaged';
}

/** An error with a reason that a caller may see. */
export class Refusal extends Error {
  readonly reason: Reason;

  constructor(reason: Reason, options?: ErrorOptions) {
    super(JSON.stringify(reason), options);
    this.reason = reason;
  }
}

/** Returns the reason of an error that a caller may see; null if only the log may show it. */
export function reasonOfError(error: unknown): Reason | null {
  if (error instanceof Refusal) return error.reason;
  return isFailure(error) ? reasonOfFailure(error) : null;
}

/** Returns the fields of an error in the log. A failure is expected, so its stack is left out. */
export function logFieldsOf(error: unknown): Readonly<Record<string, unknown>> {
  return isFailure(error) ? { code: error.code, context: error.context } : { error };
}

export function reasonOfFailure({ code, context }: AnyFailure): Reason {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- code and context of one failure belong together
  return { code: 'failure', failure: code, context } as Reason;
}
