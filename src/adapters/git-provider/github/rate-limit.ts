import type { Clock } from '../../../ports/clock.ts';
import type { Answer } from './answer.ts';

// What GitHub asks for where it names no time.
const defaultWaitMs = 60_000;
// Its limits are hourly: whatever is longer is a mistake, and would lock the deployment out.
const longestWaitMs = 24 * 3_600_000;

/** Does the answer say that the rate of requests is limited? */
export function isRateLimit({ status, headers, message }: Answer): boolean {
  if (status === 429) return true;
  if (status !== 403) return false;
  return headers['x-ratelimit-remaining'] === '0' || 'retry-after' in headers || /rate limit|abuse/iu.test(message);
}

/** How long the host asks to wait, in milliseconds. */
export function waitOf(headers: Answer['headers'], clock: Clock): number {
  const now = parseDate(headers['date']) ?? clock.now();
  const wait = retryAfter(headers['retry-after'], now) ?? untilReset(headers, now) ?? defaultWaitMs;
  return Math.min(Math.max(wait, 1000), longestWaitMs);
}

/** By the host's own clock, so that it does not matter how wrong this machine's is. */
function untilReset(headers: Answer['headers'], now: number): number | null {
  const reset = headers['x-ratelimit-reset'];
  if (headers['x-ratelimit-remaining'] !== '0' || reset === undefined || !/^\d+$/u.test(reset)) return null;
  return Number(reset) * 1000 - now;
}

/** The header's value in milliseconds; null where there is none that makes sense. */
export function retryAfter(value: string | undefined, now: number): number | null {
  if (value === undefined) return null;
  if (/^\d+$/u.test(value)) return Number(value) * 1000;
  const date = parseDate(value);
  return date === null ? null : date - now;
}

function parseDate(value: string | undefined): number | null {
  const time = Date.parse(value ?? '');
  return Number.isNaN(time) ? null : time;
}
