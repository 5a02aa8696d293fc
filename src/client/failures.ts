import type { ApiFailures } from './openapi.ts';

/** What goes wrong on this side of the connection. */
interface ClientFailures {
  /** No server answers, or the connection broke off before it did. */
  unreachable: { readonly url: string };
  timed_out: { readonly limit: 'connect' | 'silence'; readonly limit_ms: number };
  /** A connection was lost, and making it anew takes too long or can't help. */
  connection_lost: object;
  /** The answer is none of Skep's. */
  unexpected_answer: object;
  /** The stream does not go on where it broke off. */
  gap: { readonly expected: number; readonly found: number };
  /** The sandbox has not come to the status that was waited for, and never will. It is still there. */
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

/** A request that failed. Its message is the server's own sentence, or one of the client. */
export class SkepError<C extends FailureCode = FailureCode> extends Error {
  override readonly name = 'SkepError';
  /** A newer server may send codes that this version does not know. */
  readonly code: C;
  readonly context: FailureContexts[C];
  /** The HTTP status; null if there was no answer. */
  readonly status: number | null;
  /** In how many milliseconds to try again, if the server said so. */
  readonly retryAfterMs: number | null;

  constructor(code: C, message: string, { context, status, retryAfterMs, ...options }: FailureDetails<C>) {
    super(message, options);
    this.code = code;
    this.context = context;
    this.status = status ?? null;
    this.retryAfterMs = retryAfterMs ?? null;
  }
}

/** Whether the error is a failure of this code, which says what its context has. Without codes: whether it is a failure at all. */
export function isFailure<C extends FailureCode>(error: unknown, ...codes: readonly C[]): error is { [D in C]: SkepError<D> }[C] {
  return error instanceof SkepError && (codes.length === 0 || codes.includes(error.code as C));
}

export function lost(cause?: unknown): SkepError {
  return new SkepError('connection_lost', 'The connection was lost before the end.', { context: {}, cause });
}

/** Whether the same request may succeed a little later. */
export function isTemporary(error: unknown): error is SkepError {
  if (!isFailure(error)) return false;
  if (isFailure(error, 'unreachable', 'timed_out', 'connection_lost') || error.retryAfterMs !== null) return true;
  // A 502 or 504 without a code of Skep's is of a proxy before the server.
  return error.status === 429 || error.status === 503 || (error.code === 'unexpected_answer' && [502, 504].includes(error.status ?? 0));
}

/** Returns the failure that an answer says. Reads its body. */
export async function failureOf(response: Response): Promise<SkepError> {
  return failureIn(response.status, await response.text(), response.headers.get('Retry-After'));
}

/** Returns the failure of an answer with this status, body and `Retry-After`. */
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
    return new SkepError('unexpected_answer', `The server answered with status ${status}. Is it Skep?`, { context: {}, ...answer, cause });
  }
}

interface Problem {
  readonly detail: string | FailureContexts['invalid_request']['problems'];
  readonly code: FailureCode;
}

/** Seconds, or a date. */
function delayOf(retryAfter: string): number {
  return Math.max(0, /^\d+$/.test(retryAfter) ? Number(retryAfter) * 1000 : Date.parse(retryAfter) - Date.now());
}
