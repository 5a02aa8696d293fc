import { isFailure } from '../../domain/failure.ts';
import type { Clock } from '../../ports/clock.ts';
import { createSemaphore, type Semaphore } from '../shared/semaphore.ts';
import { pause } from '../shared/timeout.ts';
import { type NetworkError, networkErrorOf, type ProviderFailures } from './network-error.ts';

/** A request that only reads, so that it may be made again. */
export interface HttpRequest {
  readonly url: URL;
  /** Default: `GET`. */
  readonly method?: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Returns the URL that a redirect is followed to, or throws. Without it, redirects are not followed. */
  readonly redirectTarget?: (location: string, from: URL) => URL;
  /** Statuses that are returned at once, although a retry may help. */
  readonly withoutRetry?: ReadonlySet<number>;
}

export interface HttpResponse {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

export interface HttpClientOptions {
  readonly clock: Clock;
  readonly concurrency: number;
  readonly maxAnswerBytes: number;
  readonly failures: ProviderFailures;
  /** Reads a response's rate limit. Null if nothing has to wait. */
  readonly rateLimitOf: (response: HttpResponse) => RateLimit | null;
  /** Default: Node's. */
  readonly fetch?: (url: string, init: RequestInit) => Promise<Response>;
}

const maxRetries = 2;
const maxRedirects = 3;
const longestRetryWaitMs = 10_000;
const temporaryStatuses: ReadonlySet<number> = new Set([502, 503, 504]);
const redirectStatuses: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

/** Sends requests to one host with one credential: some at a time, within its rate limits, with retries and redirects. */
export class HttpClient {
  readonly #options: HttpClientOptions;
  readonly #semaphore: Semaphore;
  #closedUntil = 0;

  constructor(options: HttpClientOptions) {
    this.#options = options;
    this.#semaphore = createSemaphore(options.concurrency);
  }

  /**
   * Returns the response, whatever its status is. Throws `provider_rate_limited`, `provider_failed` if there is no
   * response or one that is too large, and the signal's reason. No error holds anything of the request: it has the credential in it.
   */
  async send(request: HttpRequest, signal: AbortSignal): Promise<HttpResponse> {
    let { url } = request;
    for (let redirects = 0; redirects <= maxRedirects; redirects += 1) {
      const response = await this.#sendWithRetries({ ...request, url }, signal);
      if (request.redirectTarget === undefined || !redirectStatuses.has(response.status)) return response;
      url = request.redirectTarget(response.headers.get('location') ?? '', url);
    }
    throw this.#options.failures.failed('it redirects in circles');
  }

  /** Refuses all requests for the next `ms` milliseconds. */
  closeFor(ms: number): void {
    // Zero is not noted: if the clock is set back, it would become a wait.
    if (ms > 0) this.#closedUntil = Math.max(this.#closedUntil, this.#options.clock.now() + ms);
  }

  async #sendWithRetries(request: HttpRequest, signal: AbortSignal): Promise<HttpResponse> {
    const { clock } = this.#options;
    for (let retries = 0; ; retries += 1) {
      const result = await this.#semaphore.use(signal, () => this.#sendOnce(request, signal));
      const waitMs = retries < maxRetries ? retryWait(result, request, retries, clock) : null;
      if (waitMs !== null) await pause(clock, waitMs, signal);
      else if ('status' in result) return result;
      else throw result.failure;
    }
  }

  async #sendOnce(request: HttpRequest, signal: AbortSignal): Promise<HttpResponse | NetworkError> {
    const { clock, failures, rateLimitOf } = this.#options;
    const closedMs = this.#closedUntil - clock.now();
    if (closedMs > 0) throw failures.rateLimited(closedMs);
    const result = await exchange(request, this.#options, signal);
    const limit = 'status' in result ? rateLimitOf(result) : null;
    if (limit !== null) this.closeFor(limit.waitMs);
    if (limit?.refused === true) throw failures.rateLimited(limit.waitMs);
    return result;
  }
}

/** How long to wait before the retry, in ms. Null if there is none. */
function retryWait(result: HttpResponse | NetworkError, request: HttpRequest, retries: number, clock: Clock): number | null {
  const backOffMs = 200 * 4 ** retries;
  if (!('status' in result)) return result.retryable ? backOffMs : null;
  if (!temporaryStatuses.has(result.status) || request.withoutRetry?.has(result.status) === true) return null;
  const waitMs = retryAfter(result.headers, clock) ?? backOffMs;
  return waitMs > longestRetryWaitMs ? null : Math.max(0, waitMs);
}

async function exchange(request: HttpRequest, options: HttpClientOptions, signal: AbortSignal): Promise<HttpResponse | NetworkError> {
  const { failures, maxAnswerBytes, fetch: fetchIt = fetch } = options;
  const { url, method = 'GET', headers, body = null } = request;
  try {
    const response = await fetchIt(url.href, { method, headers, body, redirect: 'manual', signal });
    const bytes = await readBody(response.body, maxAnswerBytes);
    if (bytes === null) throw failures.tooLarge(`${maxAnswerBytes} bytes in an answer`);
    return { status: response.status, headers: response.headers, text: bytes.toString('utf8') };
  } catch (error) {
    signal.throwIfAborted();
    if (isFailure(error)) throw error;
    return networkErrorOf(error, failures);
  }
}

/** Returns null if the body is larger than `maxBytes`; the rest of it is not read. */
async function readBody(body: ReadableStream<Uint8Array> | null, maxBytes: number): Promise<Buffer | null> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body ?? []) {
    bytes += chunk.byteLength;
    if (bytes > maxBytes) return null;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** Is the URL one of this origin, without a credential in it? */
export function isOfOrigin(url: URL, origin: string): boolean {
  return url.origin === origin && url.username === '' && url.password === '';
}

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

/** The time until the limit starts again, in ms. Null if the host does not name it. */
export function untilReset(headers: Headers, prefix: HeaderPrefix, clock: Clock): number | null {
  const reset = headers.get(`${prefix}-reset`) ?? '';
  return /^\d+$/u.test(reset) ? Number(reset) * 1000 - hostTime(headers, clock) : null;
}

/** The header `Retry-After`, seconds or a date, in ms. Null if there is none that makes sense. */
function retryAfter(headers: Headers, clock: Clock): number | null {
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
