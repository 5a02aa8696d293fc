import { AsyncLocalStorage } from 'node:async_hooks';
import { isFailureOf } from '../../domain/failure.ts';
import type { Clock } from '../../ports/clock.ts';
import { fetchBounded } from '../shared/bounded-fetch.ts';
import { defaultRateLimitMs, longestRateLimitMs, type ProviderFailures } from '../shared/provider-failures.ts';
import { createSemaphore } from '../shared/semaphore.ts';
import { sleep } from '../shared/timeout.ts';
import type { GitHostOptions } from './hosted-provider.ts';

/** A request that may be repeated: it only reads, or the caller handles an earlier success. */
export interface HttpRequest {
  readonly url: URL;
  /** Default: `GET`. */
  readonly method?: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  /** The host's name of the limit that counts this request, if it has several. */
  readonly resource?: string;
  /**
   * Returns the URL that a redirect is followed to, or throws. It gets the same headers, so it must be of the same host (`isOfOrigin`).
   * Without it, redirects are not followed.
   */
  readonly redirectTarget?: (location: string, from: URL) => URL;
  /** Statuses that the caller can handle. They are returned without a repetition, although that may help. */
  readonly acceptedStatuses?: readonly number[];
  /** How large the response may be, in bytes, if that is less than the client's own limit. */
  readonly maxResponseBytes?: number;
}

export interface HttpResponse {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Buffer;
  readonly text: string;
}

/** `maxRequests` and `maxBytes` limit all requests of one call of the provider together. */
interface HttpClientOptions
  extends Pick<Required<GitHostOptions>, 'clock' | 'concurrency' | 'maxResponseBytes' | 'maxRequests' | 'maxBytes'> {
  readonly failures: ProviderFailures;
  /** Reads a response's rate limit. Null if nothing has to wait. */
  readonly rateLimitOf: (response: HttpResponse) => RateLimit | null;
}

interface Spent {
  requests: number;
  bytes: number;
}

const budget = new AsyncLocalStorage<Spent>();

/** Runs work, and counts its requests, retries and redirects together. Beyond the client's limits each fails with `provider_failed`. */
export function withBudget<T>(work: () => Promise<T>): Promise<T> {
  return budget.run({ requests: 0, bytes: 0 }, work);
}

const maxRetries = 2;
const maxRedirects = 3;
const longestRetryWaitMs = 10_000;
const temporaryStatuses: ReadonlySet<number> = new Set([502, 503, 504]);
const redirectStatuses: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

export type HttpClient = ReturnType<typeof createHttpClient>;

/** Sends requests to one host with one credential, with limited concurrency, rate limits, retries and redirects. */
export function createHttpClient(options: HttpClientOptions) {
  const { clock, failures, rateLimitOf, maxResponseBytes, maxRequests, maxBytes } = options;
  const semaphore = createSemaphore(options.concurrency);
  const { pauseFor, leftOf } = createPauses(clock);

  async function sendOnce(request: HttpRequest, signal: AbortSignal, spent: Spent): Promise<HttpResponse> {
    const { url, method = 'GET', headers, body, resource = null, maxResponseBytes: maxOwnBytes = Number.POSITIVE_INFINITY } = request;
    const closedMs = Math.max(leftOf(null), leftOf(resource));
    if (closedMs > 0) throw failures.rateLimited(closedMs);
    if (spent.requests === maxRequests) throw failures.tooLarge(`${maxRequests} requests`);
    spent.requests += 1;
    const init = { method, headers, body: body ?? null, signal };
    const fetched = await fetchBounded(url.href, init, Math.min(maxResponseBytes, maxOwnBytes), failures);
    spent.bytes += fetched.body.length;
    if (spent.bytes > maxBytes) throw failures.tooLarge(`${maxBytes} bytes`);
    const response = { ...fetched, text: fetched.body.toString('utf8') };
    const limit = rateLimitOf(response);
    if (limit !== null) pauseFor(limit);
    if (limit?.refused === true) throw failures.rateLimited(limit.waitMs);
    return response;
  }

  async function sendWithRetries(request: HttpRequest, signal: AbortSignal): Promise<HttpResponse> {
    // Read here, because inside the semaphore it would be the budget of another caller.
    const spent = budget.getStore() ?? { requests: 0, bytes: 0 };
    for (let retries = 0; ; retries += 1) {
      const result = await semaphore.use(signal, () => sendOnce(request, signal, spent)).catch(rethrowUnlessConnectionLost);
      const waitMs = retries < maxRetries ? retryWait(result, request, retries, clock) : null;
      if (waitMs !== null) await sleep(clock, waitMs, signal);
      else if (result instanceof Error) throw result;
      else return result;
    }
  }

  return {
    /**
     * Returns the response, whatever its status is. Repeats the request, also one that is no GET, after the statuses 502, 503 and 504 and
     * after a lost connection. Throws `provider_rate_limited`, `provider_failed`, and the signal's reason. No error contains the request or
     * its credential.
     */
    async send(request: HttpRequest, signal: AbortSignal): Promise<HttpResponse> {
      let { url } = request;
      for (let redirects = 0; redirects <= maxRedirects; redirects += 1) {
        const response = await sendWithRetries({ ...request, url }, signal);
        if (request.redirectTarget === undefined || !redirectStatuses.has(response.status)) return response;
        url = request.redirectTarget(response.headers.get('location') ?? '', url);
      }
      throw failures.failed('it redirects in circles');
    },
    pauseFor,
  };
}

/** The pauses after rate limits. */
function createPauses(clock: Clock) {
  /** When each pause ends and how long it is, by the resource whose limit is reached. The pause of null is for all requests. */
  const pauses = new Map<string | null, { readonly until: number; readonly ms: number }>();

  function leftOf(resource: string | null): number {
    const { until, ms } = pauses.get(resource) ?? { until: 0, ms: 0 };
    const leftMs = until - clock.now();
    // More than the whole pause can only be left if the clock was set back. Then the pause would last for the size of that jump.
    return leftMs > ms ? 0 : leftMs;
  }

  /** Refuses all requests that the limit counts, until it is over. */
  function pauseFor({ waitMs, resource }: RateLimit): void {
    if (waitMs > leftOf(resource)) pauses.set(resource, { until: clock.now() + waitMs, ms: waitMs });
  }

  return { leftOf, pauseFor };
}

/** Returns the error if the connection was lost, because a retry on another connection may succeed. */
function rethrowUnlessConnectionLost(error: unknown): Error {
  if (isFailureOf(error, 'provider_failed') && error.context.reason.code === 'connection_lost') return error;
  throw error;
}

/** Returns the wait before the retry, in milliseconds. Null if there is no retry. */
function retryWait(result: HttpResponse | Error, request: HttpRequest, retries: number, clock: Clock): number | null {
  const backOffMs = 200 * 4 ** retries;
  if (result instanceof Error) return backOffMs;
  if (!temporaryStatuses.has(result.status) || request.acceptedStatuses?.includes(result.status) === true) return null;
  const waitMs = retryAfter(result.headers, clock) ?? backOffMs;
  return waitMs > longestRetryWaitMs ? null : Math.max(0, waitMs);
}

/** Returns true if the URL has this origin and contains no credential. */
export function isOfOrigin(url: URL, origin: string): boolean {
  return url.origin === origin && url.username === '' && url.password === '';
}

interface RateLimit {
  readonly refused: boolean;
  readonly waitMs: number;
  /** The resource whose requests have to wait. Null: all requests. */
  readonly resource: string | null;
}

/**
 * Reads the headers with the prefix, and `Retry-After`. Without both, a refused client waits a minute. Ignores the reset time while
 * requests are left, because it may be that of another limit.
 */
export function rateLimitIn(headers: Headers, prefix: 'x-ratelimit' | 'ratelimit', refused: boolean, clock: Clock): RateLimit {
  const reset = headers.get(`${prefix}-reset`) ?? '';
  const isKnown = isExhausted(headers, prefix) && /^\d+$/u.test(reset);
  const untilReset = isKnown ? Number(reset) * 1000 - hostTime(headers, clock) : null;
  const waitMs = refused ? Math.max(retryAfter(headers, clock) ?? untilReset ?? defaultRateLimitMs, 1000) : Math.max(untilReset ?? 0, 0);
  // A limit that is not exhausted is not what refuses the request. GitHub's secondary limits are of no resource.
  const resource = isExhausted(headers, prefix) ? headers.get(`${prefix}-resource`) : null;
  return { refused, waitMs: Math.min(waitMs, longestRateLimitMs), resource };
}

export function isExhausted(headers: Headers, prefix: string): boolean {
  return headers.get(`${prefix}-remaining`) === '0';
}

/** Returns the value of the header `Retry-After`, seconds or a date, in milliseconds. Null if it is missing or invalid. */
function retryAfter(headers: Headers, clock: Clock): number | null {
  const value = headers.get('retry-after') ?? '';
  if (/^\d+$/u.test(value)) return Number(value) * 1000;
  const date = Date.parse(value);
  return Number.isNaN(date) ? null : date - hostTime(headers, clock);
}

/** Returns the time of the host's clock, because the clock of this machine may be wrong. */
function hostTime(headers: Headers, clock: Clock): number {
  const date = Date.parse(headers.get('date') ?? '');
  return Number.isNaN(date) ? clock.now() : date;
}
