import type { Clock } from '../../../ports/clock.ts';

// What is waited where the host names no time: the period of most of its limits.
const defaultWaitMs = 60_000;
// Whatever is longer is a mistake, and would lock the deployment out.
const longestWaitMs = 24 * 3_600_000;

/** How long an answer that refuses for the rate of requests asks to wait, in milliseconds. */
export function waitOf(headers: Headers, clock: Clock): number {
  const wait = retryAfter(headers, clock) ?? untilReset(headers, clock) ?? defaultWaitMs;
  return Math.min(Math.max(wait, 1000), longestWaitMs);
}

/** How long the next request would be refused, as an answer that was still given says; 0 where it would not. */
export function exhaustedFor(headers: Headers, clock: Clock): number {
  if (headers.get('ratelimit-remaining') !== '0') return 0;
  return Math.min(Math.max(untilReset(headers, clock) ?? 0, 0), longestWaitMs);
}

/** The header `Retry-After` in milliseconds; null where there is none that makes sense. */
export function retryAfter(headers: Headers, clock: Clock): number | null {
  const value = headers.get('retry-after');
  if (value === null) return null;
  if (/^\d+$/u.test(value)) return Number(value) * 1000;
  const date = Date.parse(value);
  return Number.isNaN(date) ? null : date - hostTime(headers, clock);
}

function untilReset(headers: Headers, clock: Clock): number | null {
  const reset = headers.get('ratelimit-reset') ?? '';
  return /^\d+$/u.test(reset) ? Number(reset) * 1000 - hostTime(headers, clock) : null;
}

/** By the host's own clock, so that it does not matter how wrong this machine's is. */
function hostTime(headers: Headers, clock: Clock): number {
  const date = Date.parse(headers.get('date') ?? '');
  return Number.isNaN(date) ? clock.now() : date;
}
