import type { Clock } from '../../ports/clock.ts';

/** What a response says about the next request of this credential. */
export interface RateLimit {
  /** Was this request refused because of the limit? */
  readonly refused: boolean;
  /** How long the next request has to wait, in ms. */
  readonly waitMs: number;
}

/** The names of a host's headers begin with it. */
type HeaderPrefix = 'x-ratelimit' | 'ratelimit';

// What is waited if the host names no time: the period of most of GitLab's limits, and what GitHub asks for.
const defaultWaitMs = 60_000;
// Whatever is longer is a mistake, and would lock the deployment out.
const longestWaitMs = 24 * 3_600_000;

/** How long a response that refuses because of a rate limit asks to wait, in ms. */
export function refusedFor(headers: Headers, untilResetMs: number | null, clock: Clock): number {
  return Math.min(Math.max(retryAfter(headers, clock) ?? untilResetMs ?? defaultWaitMs, 1000), longestWaitMs);
}

/** How long all requests are used up, in ms: 0 if they are not. */
export function exhaustedFor(headers: Headers, prefix: HeaderPrefix, clock: Clock): number {
  const waitMs = isExhausted(headers, prefix) ? untilReset(headers, prefix, clock) : null;
  return Math.min(Math.max(waitMs ?? 0, 0), longestWaitMs);
}

export function isExhausted(headers: Headers, prefix: HeaderPrefix): boolean {
  return headers.get(`${prefix}-remaining`) === '0';
}

/** The time until the limit starts anew, in ms. Null if the host does not name it. */
export function untilReset(headers: Headers, prefix: HeaderPrefix, clock: Clock): number | null {
  const reset = headers.get(`${prefix}-reset`) ?? '';
  return /^\d+$/u.test(reset) ? Number(reset) * 1000 - hostTime(headers, clock) : null;
}

/** The header `Retry-After`, seconds or a date, in ms. Null if there is none that makes sense. */
export function retryAfter(headers: Headers, clock: Clock): number | null {
  const value = headers.get('retry-after') ?? '';
  if (/^\d+$/u.test(value)) return Number(value) * 1000;
  const date = Date.parse(value);
  return Number.isNaN(date) ? null : date - hostTime(headers, clock);
}

/** The host's own clock, so that it does not matter if this machine's is wrong. */
function hostTime(headers: Headers, clock: Clock): number {
  const date = Date.parse(headers.get('date') ?? '');
  return Number.isNaN(date) ? clock.now() : date;
}
