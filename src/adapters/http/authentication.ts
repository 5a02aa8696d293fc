import { hash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';
import { Failure, type FailureCode, isFailureOf } from '../../domain/failure.ts';
import { isUserId, type Principal } from '../../domain/principal.ts';
import type { Auth } from '../../ports/auth.ts';
import { createLruMap } from '../shared/lru-map.ts';
import { defaultRequestsPerMinute, defaultStreamsPerKey, type RouterOptions } from './http-options.ts';
import { bearerOf, headerOf } from './request-input.ts';

const windowSeconds = 60;
const defaultFailedLoginsPerMinute = 20;
const maxKnownKeys = 1000;

/** How long a key waits for its check if nobody used it before, and its client address tried too many wrong ones. */
const guessDelayMs = 1000;

const recheckMs = 2000;

/** In how many seconds a key that has too many streams should try again. */
const streamRetrySeconds = 10;

/** A request whose client's address Express knows. */
type ClientRequest = IncomingMessage & { readonly ip?: string | undefined };

/**
 * Finds who makes a request by its key, and applies the limits of keys and of client addresses. An address that tried too many wrong
 * keys gets `rate_limited` for further ones, and each key that is new waits there before it is checked. A right key always works. This
 * makes wrong keys visible and one guess after the other slow, but many can be checked at once: against guessing, keys are random.
 * A request without a key does not count.
 */
export class Authenticator {
  readonly #auth: Auth;
  readonly #failures: RateLimiterMemory;
  readonly #requests: RateLimiterMemory | null;
  readonly #maxStreams: number;
  /** Returns the credential that a request carries; null if there is none. */
  readonly credentialOf: (request: IncomingMessage) => string | null;
  /** Digests of keys that were right. */
  readonly #knownKeys = createLruMap<true>(maxKnownKeys, maxKnownKeys, () => 1);
  readonly #streams = new Map<string, number>();

  constructor(auth: Auth, options: RouterOptions) {
    const { requestsPerMinute = defaultRequestsPerMinute, streamsPerKey = defaultStreamsPerKey } = options;
    const { failedLoginsPerMinute = defaultFailedLoginsPerMinute, credential } = options;
    this.#auth = auth;
    this.#failures = new RateLimiterMemory({ points: failedLoginsPerMinute, duration: windowSeconds });
    this.#requests = requestsPerMinute === null ? null : new RateLimiterMemory({ points: requestsPerMinute, duration: windowSeconds });
    this.#maxStreams = streamsPerKey ?? Infinity;
    this.credentialOf = credential ?? ((request) => headerOf(request, 'x-session-api-key') ?? bearerOf(request));
  }

  /** Counts the request. Throws `unauthorized`, `rate_limited` (wrong keys, requests of the key), and the failures of the port. */
  async authenticate(request: Pick<ClientRequest, 'ip'>, credential: string | null): Promise<Principal> {
    if (credential === null) return await this.#auth.authenticate(null);
    const digest = hash('sha256', credential);
    const isKnown = this.#knownKeys.get(digest) !== null;
    const principal = await this.#guess(request, 'unauthorized', isKnown, () => this.#auth.authenticate(credential));
    this.#knownKeys.set(digest, true);
    if (!isUserId(principal.userId)) throw new Error(`the key ${JSON.stringify(principal.keyName)} is of a user that no caller may be`);
    if (this.#requests !== null) await consume(this.#requests, keyOf(principal), 'requests_per_minute');
    return principal;
  }

  /**
   * Counts a stream until `closed` fires. Returns a signal that fires soon after `identify`, which is asked again and again, throws
   * `unauthorized`. Throws `rate_limited`.
   */
  openStream(principal: Principal, identify: () => Promise<unknown>, closed: AbortSignal): AbortSignal {
    closed.throwIfAborted();
    const key = keyOf(principal);
    const count = this.#streams.get(key) ?? 0;
    if (count >= this.#maxStreams) {
      throw new Failure('rate_limited', { limit: 'streams_per_key', retryAfterSeconds: streamRetrySeconds });
    }
    this.#streams.set(key, count + 1);
    const refused = new AbortController();
    const check = async (): Promise<void> => {
      try {
        await identify();
      } catch (error) {
        if (isFailureOf(error, 'unauthorized')) refused.abort();
      }
    };
    const checks = setInterval(() => void check(), recheckMs);
    closed.addEventListener('abort', () => {
      clearInterval(checks);
      const left = (this.#streams.get(key) ?? 1) - 1;
      if (left > 0) this.#streams.set(key, left);
      else this.#streams.delete(key);
    });
    return refused.signal;
  }

  /** Logs in by a code. A wrong one counts as a wrong key. Throws what `exchange` throws, and `rate_limited`. */
  async logIn<T>(request: Pick<ClientRequest, 'ip'>, exchange: () => Promise<T>): Promise<T> {
    return await this.#guess(request, 'login_code_invalid', false, exchange);
  }

  async #guess<T>(request: Pick<ClientRequest, 'ip'>, wrong: FailureCode, isKnown: boolean, check: () => Promise<T>): Promise<T> {
    if (!isKnown && (await this.#hasFailedOften(request))) await wait(guessDelayMs);
    try {
      return await check();
    } catch (error) {
      if (isFailureOf(error, wrong)) await consume(this.#failures, clientAddress(request), 'failed_logins_per_minute');
      throw error;
    }
  }

  async #hasFailedOften(request: Pick<ClientRequest, 'ip'>): Promise<boolean> {
    const failures = await this.#failures.get(clientAddress(request));
    return failures !== null && failures.remainingPoints <= 0;
  }
}

function keyOf({ userId, keyName }: Principal): string {
  return JSON.stringify([userId, keyName]);
}

async function consume(limiter: RateLimiterMemory, key: string, limit: string): Promise<void> {
  try {
    await limiter.consume(key);
  } catch (error) {
    if (!(error instanceof RateLimiterRes)) throw error;
    throw new Failure('rate_limited', { limit, retryAfterSeconds: Math.max(1, Math.ceil(error.msBeforeNext / 1000)) });
  }
}

/** The client that limits count: an IPv4 address, or the /64 network of an IPv6 address, which one client owns as a whole. */
export function clientAddress(request: Pick<ClientRequest, 'ip'>): string {
  const address = request.ip ?? 'unknown';
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
  if (mapped !== undefined) return mapped;
  return address.includes(':') ? `${networkOf(address)}::/64` : address;
}

function networkOf(address: string): string {
  const [head = '', tail] = (address.split('%')[0] ?? '').split('::');
  const front = head === '' ? [] : head.split(':');
  const back = tail === undefined || tail === '' ? [] : tail.split(':');
  const gap = tail === undefined ? 0 : Math.max(0, 8 - front.length - back.length);
  return [...front, ...Array.from({ length: gap }, () => '0'), ...back].slice(0, 4).join(':');
}
