import type { ApiFailures } from './openapi.ts';

/** Failures that the client detects itself. */
interface ClientFailures {
  /** No server answers, or the connection broke off before the response. */
  unreachable: { readonly url: string };
  timed_out: { readonly limit: 'connect' | 'silence'; readonly limit_ms: number };
  /** A connection was lost, and reconnecting takes too long or can't help. */
  connection_lost: object;
  /** The response is not from Skep. With the status 502, 503 or 504, it is from a proxy that can't reach the server now. */
  unexpected_answer: object;
  /** The stream does not continue where it broke off. */
  gap: { readonly expected: number; readonly found: number };
  /** The sandbox can never reach the wanted status. It still exists. */
  never_reached: { readonly sandbox_id: string; readonly wanted: string; readonly status: string };
  turn_failed: { readonly stop_reason: string };
}

export type FailureContexts = ApiFailures & ClientFailures;
export type FailureCode = keyof FailureContexts;

interface FailureDetails<C extends FailureCode> extends ErrorOptions {
  readonly context: FailureContexts[C];
  readonly status?: number;
  readonly retryAfterMs?: number | null;
}

/** A failed request. The message is a sentence of the server or of the client. */
export class SkepError<C extends FailureCode = FailureCode> extends Error {
  override readonly name = 'SkepError';
  /** A newer server may send codes that this version does not know. */
  readonly code: C;
  readonly context: FailureContexts[C];
  /** The HTTP status; null if there was no answer. */
  readonly status: number | null;
  /** When to try again, in milliseconds, if the server said so. */
  readonly retryAfterMs: number | null;

  constructor(code: C, message: string, { context, status, retryAfterMs, ...options }: FailureDetails<C>) {
    super(message, options);
    this.code = code;
    this.context = context;
    this.status = status ?? null;
    this.retryAfterMs = retryAfterMs ?? null;
  }
}

/** Returns true if the error has one of these codes, which gives its context a type. Without codes: if it is a failure at all. */
export function isFailure<C extends FailureCode>(error: unknown, ...codes: readonly C[]): error is { [D in C]: SkepError<D> }[C] {
  return error instanceof SkepError && (codes.length === 0 || codes.includes(error.code as C));
}

export function connectionLost(message = 'The connection was lost before the end.', cause?: unknown): SkepError {
  return new SkepError('connection_lost', message, { context: {}, cause });
}

/** The failure of an input that the client refuses itself, with its location as in the server's own refusals. */
export function invalidInput(loc: readonly string[], msg: string): SkepError {
  return new SkepError('invalid_request', `${loc.join('.')}: ${msg}`, { context: { problems: [{ loc, msg, type: 'invalid_value' }] } });
}

/**
 * The failure of a request that no server answered. The message has the code of the cause, for example `ECONNREFUSED`. The cause of a
 * failed upload may also be the uploaded stream itself.
 */
export function unreachable(url: string, error: unknown, isUpload = false): SkepError {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  const code = cause instanceof Error && 'code' in cause ? ` (${String(cause.code)})` : '';
  const message = isUpload && cause instanceof Error && cause.message !== ''
    ? `The upload to ${url} failed: ${cause.message}.`
    : `No Skep server answers at ${url}${code}.`;
  return new SkepError('unreachable', message, { context: { url }, cause: error });
}

/** The statuses of a proxy before a server that is not there. */
const proxyStatuses: ReadonlySet<number | null> = new Set([502, 503, 504]);

/** Returns true if the same request can succeed a little later. */
export function isTemporary(error: unknown): error is SkepError {
  if (!isFailure(error)) return false;
  if (isFailure(error, 'unreachable', 'timed_out', 'connection_lost') || error.retryAfterMs !== null) return true;
  return error.status === 429 || error.status === 503 || (error.code === 'unexpected_answer' && proxyStatuses.has(error.status));
}

/** Returns true for the type of a page. Except for its reference, Skep has none: a login in front of it answers, or another server. */
export function isPage(contentType: string | null | undefined): boolean {
  return contentType?.toLowerCase().startsWith('text/html') === true;
}

/** Reads the body of a response and returns the failure in it. */
export async function failureOf(response: Response): Promise<SkepError> {
  return failureIn(response.status, await response.text(), response.headers.get('Retry-After'));
}

/** Returns the failure of a response with this status, body and `Retry-After`. */
export function failureIn(status: number, body: string, retryAfter: string | null = null): SkepError {
  const answer = { status, retryAfterMs: retryAfter === null ? null : delayOf(retryAfter) };
  try {
    const { detail, code, ...members } = JSON.parse(body) as Problem;
    if (typeof detail !== 'string') {
      const message = detail.map(({ loc, msg }) => `${loc.join('.')}: ${msg}`).join('; ');
      return new SkepError('invalid_request', message, { context: { problems: detail }, ...answer });
    }
    if (typeof code !== 'string') throw new TypeError('problem details of Skep have a code');
    const context = Object.fromEntries(Object.entries(members).filter(([name]) => !['type', 'title', 'status'].includes(name)));
    return new SkepError(code, detail, { context, ...answer });
  } catch (cause) {
    const source = proxyStatuses.has(status)
      ? ", but from a proxy that can't reach the server now. Try again."
      : '. Check the address of the server.';
    const message = `The response with status ${status} is not from Skep${source}`;
    return new SkepError('unexpected_answer', message, { context: {}, ...answer, cause });
  }
}

interface Problem {
  readonly detail: string | FailureContexts['invalid_request']['problems'];
  readonly code: FailureCode;
}

/** Parses `Retry-After`, which is in seconds or a date. Returns milliseconds, or null if it is neither. */
function delayOf(retryAfter: string): number | null {
  const ms = /^\d+$/.test(retryAfter) ? Number(retryAfter) * 1000 : Date.parse(retryAfter) - Date.now();
  return Number.isNaN(ms) ? null : Math.max(0, ms);
}
