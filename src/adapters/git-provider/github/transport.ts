import type { Clock } from '../../../ports/clock.ts';
import type { Answer } from './answer.ts';
import { attempt, type AttemptOptions, type Requester } from './attempt.ts';
import { down, failed, rateLimited, tooHeavy, unauthorized } from './failures.ts';
import { isRateLimit, retryAfter, waitOf } from './rate-limit.ts';
import { createGate } from '../rate-limit-gate.ts';
import { createSemaphore } from '../../shared/semaphore.ts';
import { pause } from '../../shared/timeout.ts';

/** A request that changes nothing, so that it may be made again. */
export interface Call {
  /** A method and a URL template, as Octokit takes it; its values are encoded. */
  readonly route: string;
  readonly parameters?: Readonly<Record<string, unknown>>;
  readonly headers?: Readonly<Record<string, string>>;
  /** The statuses that the caller understands, besides success. */
  readonly expects?: readonly number[];
  /** The caller can ask for less at a time, which is better than to try again what took the host too long. */
  readonly divisible?: boolean;
}

export interface Transport {
  /** Failures: all but `repository_not_found`. */
  send(call: Call, signal: AbortSignal): Promise<Answer>;
  /** No request is made for so long. */
  closeFor(ms: number): void;
}

export interface TransportOptions extends AttemptOptions {
  readonly clock: Clock;
  readonly concurrency: number;
}

const maxRetries = 2;
const longestRetryWaitMs = 10_000;
const passingStatuses: ReadonlySet<number> = new Set([502, 503, 504]);
const heavyStatuses: ReadonlySet<number> = new Set([502, 504]);

/** Makes requests with the manners that the host asks for. */
export function createTransport(client: Requester, options: TransportOptions): Transport {
  const { clock } = options;
  const slots = createSemaphore(options.concurrency);
  const gate = createGate(clock, rateLimited);

  async function once(call: Call, signal: AbortSignal): ReturnType<typeof attempt> {
    return await slots.use(signal, async () => {
      gate.pass();
      return await attempt(client, call, options, signal);
    });
  }

  return {
    async send(call, signal) {
      for (let retries = 0; ; retries += 1) {
        const outcome = await once(call, signal);
        if ('status' in outcome && isWelcome(outcome, call)) return outcome;
        if ('status' in outcome && isRateLimit(outcome)) {
          const waitMs = waitOf(outcome.headers, clock);
          gate.closeFor(waitMs);
          throw rateLimited(waitMs);
        }
        const failure = 'status' in outcome ? refusal(outcome, call) : outcome.failure;
        const waitMs = 'status' in outcome ? waitBefore(outcome, call, retries) : passingWait(outcome.passing, retries);
        if (waitMs === null || retries === maxRetries) throw failure;
        await pause(clock, waitMs, signal);
      }
    },
    closeFor: (ms) => gate.closeFor(ms),
  };

  /** How long to wait before the request is made again; null where it is not. */
  function waitBefore({ status, headers }: Answer, call: Call, retries: number): number | null {
    if (!passingStatuses.has(status) || isHeavy(status, call)) return null;
    const told = retryAfter(headers['retry-after'], clock.now());
    if (told === null) return backOff(retries);
    return told > longestRetryWaitMs ? null : Math.max(0, told);
  }
}

function passingWait(passing: boolean, retries: number): number | null {
  return passing ? backOff(retries) : null;
}

function backOff(retries: number): number {
  return 200 * 4 ** retries;
}

function isWelcome({ status }: Answer, { expects = [] }: Call): boolean {
  return (status >= 200 && status < 300) || expects.includes(status);
}

function isHeavy(status: number, { divisible = false }: Call): boolean {
  return divisible && heavyStatuses.has(status);
}

/**
 * A 403 that is no rate limit is a credential that lacks a permission, or that an organisation has not let in: its
 * administrator can mend it, and nobody else, which is why it is not told as a repository that does not exist.
 */
function refusal({ status }: Answer, call: Call): Error {
  const cause = new Error(`status ${status}`);
  if (isHeavy(status, call)) return tooHeavy(cause);
  if (status === 401 || status === 403) return unauthorized(cause);
  if (status === 451) return failed('the repository is blocked for legal reasons', cause);
  if (status >= 500) return down(`it answered with status ${status}`, cause);
  return failed(`it answered with status ${status}, which was not expected`, cause);
}
