import type { Clock } from '../../../ports/clock.ts';
import { createGate } from '../rate-limit-gate.ts';
import { createSemaphore } from '../../shared/semaphore.ts';
import { pause } from '../../shared/timeout.ts';
import type { Answer } from './answer.ts';
import { attempt } from './attempt.ts';
import type { Credential } from './credential.ts';
import { failed, rateLimited } from './failures.ts';
import type { HostUrl } from './host-url.ts';
import { exhaustedFor, retryAfter, waitOf } from './rate-limit.ts';
import { redirectTarget } from './redirect.ts';
import type { Trouble } from './trouble.ts';

/** Makes requests with the manners that the host asks for. */
export interface Transport {
  /**
   * Asks for a URL of the API, and answers with whatever the host did. Fails with `provider_rate_limited`, with
   * `provider_failed` where there is no answer, and with the signal's reason.
   */
  get(url: URL, signal: AbortSignal): Promise<Answer>;
}

export interface TransportOptions {
  readonly host: HostUrl;
  readonly credential: Credential;
  readonly clock: Clock;
  readonly concurrency: number;
  readonly maxAnswerBytes: number;
}

const maxRetries = 2;
const maxRedirects = 3;
const longestRetryWaitMs = 10_000;
const passingStatuses: ReadonlySet<number> = new Set([502, 503, 504]);

export function createTransport(options: TransportOptions): Transport {
  const { host, credential, clock, concurrency, maxAnswerBytes } = options;
  const slots = createSemaphore(concurrency);
  const gate = createGate(clock, rateLimited);

  async function once(url: URL, signal: AbortSignal): Promise<Answer | Trouble> {
    return await slots.use(signal, async () => {
      const headers = await credential.headers();
      gate.pass();
      const outcome = await attempt(url, { headers, maxAnswerBytes }, signal);
      if ('status' in outcome) heed(outcome);
      return outcome;
    });
  }

  function heed({ status, headers }: Answer): void {
    if (status !== 429) return gate.closeFor(exhaustedFor(headers, clock));
    const waitMs = waitOf(headers, clock);
    gate.closeFor(waitMs);
    throw rateLimited(waitMs);
  }

  /** Tries again where that is of use: all requests only read. */
  async function persist(url: URL, signal: AbortSignal): Promise<Answer> {
    for (let retries = 0; ; retries += 1) {
      const outcome = await once(url, signal);
      const waitMs = retries < maxRetries ? waitBefore(outcome, retries) : null;
      if (waitMs !== null) await pause(clock, waitMs, signal);
      else if ('status' in outcome) return outcome;
      else throw outcome.failure;
    }
  }

  /** How long to wait before the request is made again; null where it is not. */
  function waitBefore(outcome: Answer | Trouble, retries: number): number | null {
    const backOff = 200 * 4 ** retries;
    if (!('status' in outcome)) return outcome.passing ? backOff : null;
    if (!passingStatuses.has(outcome.status)) return null;
    const told = retryAfter(outcome.headers, clock);
    if (told === null) return backOff;
    return told > longestRetryWaitMs ? null : Math.max(0, told);
  }

  return {
    async get(url, signal) {
      let at = url;
      for (let redirects = 0; redirects <= maxRedirects; redirects += 1) {
        const answer = await persist(at, signal);
        const target = redirectTarget(answer, at, host);
        if (target === null) return answer;
        at = target;
      }
      throw failed('it redirects in circles');
    },
  };
}
