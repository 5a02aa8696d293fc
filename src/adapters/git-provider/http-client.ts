import { isFailure } from '../../domain/failure.ts';
import type { Clock } from '../../ports/clock.ts';
import type { providerFailures } from '../shared/provider-failures.ts';
import { createSemaphore } from '../shared/semaphore.ts';
import { pause } from '../shared/timeout.ts';
import { networkErrorOf, type NetworkError } from './network-error.ts';
import { retryAfter, type RateLimit } from './rate-limit.ts';

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

export interface HttpClient {
  /**
   * Returns the response, whatever its status is. Throws `provider_rate_limited`, `provider_failed` if there is no
   * response or one that is too large, and the signal's reason. No error holds anything of the request: it has the credential in it.
   */
  send(request: HttpRequest, signal: AbortSignal): Promise<HttpResponse>;
  /** Refuses all requests for the next `ms` milliseconds. */
  closeFor(ms: number): void;
}

export interface HttpClientOptions {
  readonly clock: Clock;
  readonly concurrency: number;
  readonly maxAnswerBytes: number;
  readonly failures: ReturnType<typeof providerFailures>;
  /** Reads a response's rate limit. Null if nothing has to wait. */
  readonly rateLimitOf: (response: HttpResponse) => RateLimit | null;
  /** Default: Node's. */
  readonly fetch?: (url: URL, init: RequestInit) => Promise<Response>;
}

const maxRetries = 2;
const maxRedirects = 3;
const longestRetryWaitMs = 10_000;
const temporaryStatuses: ReadonlySet<number> = new Set([502, 503, 504]);
const redirectStatuses: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

/** Sends requests to one host with one credential: some at a time, within its rate limits, with retries and redirects. */
export function createHttpClient(options: HttpClientOptions): HttpClient {
  const { clock, failures } = options;
  const semaphore = createSemaphore(options.concurrency);
  let closedUntil = 0;

  function closeFor(ms: number): void {
    // Zero is not noted: if the clock is set back, it would become a wait.
    if (ms > 0) closedUntil = Math.max(closedUntil, clock.now() + ms);
  }

  function throwIfClosed(): void {
    const waitMs = closedUntil - clock.now();
    if (waitMs > 0) throw failures.rateLimited(waitMs);
  }

  async function sendOnce(request: HttpRequest, signal: AbortSignal): Promise<HttpResponse | NetworkError> {
    return await semaphore.use(signal, async () => {
      throwIfClosed();
      const result = await exchange(request, options, signal);
      const limit = 'status' in result ? options.rateLimitOf(result) : null;
      if (limit !== null) closeFor(limit.waitMs);
      if (limit?.refused === true) throw failures.rateLimited(limit.waitMs);
      return result;
    });
  }

  async function sendWithRetries(request: HttpRequest, signal: AbortSignal): Promise<HttpResponse> {
    for (let retries = 0; ; retries += 1) {
      const result = await sendOnce(request, signal);
      const waitMs = retries < maxRetries ? retryWait(result, request, retries) : null;
      if (waitMs !== null) await pause(clock, waitMs, signal);
      else if ('status' in result) return result;
      else throw result.failure;
    }
  }

  /** How long to wait before the retry, in ms. Null if there is none. */
  function retryWait(result: HttpResponse | NetworkError, { withoutRetry }: HttpRequest, retries: number): number | null {
    const backOffMs = 200 * 4 ** retries;
    if (!('status' in result)) return result.retryable ? backOffMs : null;
    if (!temporaryStatuses.has(result.status) || withoutRetry?.has(result.status) === true) return null;
    const waitMs = retryAfter(result.headers, clock) ?? backOffMs;
    return waitMs > longestRetryWaitMs ? null : Math.max(0, waitMs);
  }

  return {
    closeFor,
    async send(request, signal) {
      let { url } = request;
      for (let redirects = 0; redirects <= maxRedirects; redirects += 1) {
        const response = await sendWithRetries({ ...request, url }, signal);
        if (request.redirectTarget === undefined || !redirectStatuses.has(response.status)) return response;
        url = request.redirectTarget(response.headers.get('location') ?? '', url);
      }
      throw failures.failed('it redirects in circles');
    },
  };
}

async function exchange(request: HttpRequest, options: HttpClientOptions, signal: AbortSignal): Promise<HttpResponse | NetworkError> {
  const { failures, maxAnswerBytes, fetch: fetchIt = fetch } = options;
  const { url, method = 'GET', headers, body = null } = request;
  try {
    const response = await fetchIt(url, { method, headers, body, redirect: 'manual', signal });
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
