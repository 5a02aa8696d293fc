import type { IncomingMessage } from 'node:http';
import { SocketAddress } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { LRUCache } from 'lru-cache';
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';
import { Failure, type FailureCode, isFailureOf } from '../../domain/failure.ts';
import { isUserId, keyAccesses, type Principal } from '../../domain/principal.ts';
import type { Auth } from '../../ports/auth.ts';
import { keyDigest } from '../shared/key-digest.ts';
import { defaultRequestsPerMinute, defaultStreamsPerKey, type RouterOptions } from './http-options.ts';
import { bearerOf, nonBlankHeaderOf } from './request-input.ts';

const windowSeconds = 60;
const defaultFailedLoginsPerMinute = 20;

/** How long a new key from an address with too many wrong keys waits before it is checked, in milliseconds. */
const guessDelayMs = 1000;

const recheckMs = 2000;

/** The `Retry-After` for a key with too many open streams, in seconds. */
const streamRetrySeconds = 10;

/** A request with the client's address, as Express sets it. */
type ClientRequest = { readonly ip?: string | undefined };

/**
 * Authenticates requests by their key, and applies the limits for keys and client addresses. After too many wrong keys, an address gets
 * `rate_limited` for each further wrong key, and each new key waits before it is checked. A correct key always works. This delays guessing
 * in sequence and shows it, but does not prevent parallel guessing; random keys do. A request without a key does not count.
 */
export class Authenticator {
  readonly #auth: Auth;
  readonly #failures: RateLimiterMemory;
  readonly #requests: RateLimiterMemory | null;
  readonly #maxStreams: number;
  /** Returns the credential that a request carries; null if there is none. */
  readonly credentialOf: (request: IncomingMessage) => string | null;
  /** Digests of keys that were correct. */
  readonly #knownKeys = new LRUCache<string, true>({ max: 1000 });
  readonly #streams = new Map<string, number>();

  constructor(auth: Auth, options: RouterOptions) {
    const { requestsPerMinute = defaultRequestsPerMinute, streamsPerKey = defaultStreamsPerKey } = options;
    const { failedLoginsPerMinute = defaultFailedLoginsPerMinute, credential } = options;
    this.#auth = auth;
    this.#failures = new RateLimiterMemory({ points: failedLoginsPerMinute, duration: windowSeconds });
    this.#requests = requestsPerMinute === null ? null : new RateLimiterMemory({ points: requestsPerMinute, duration: windowSeconds });
    this.#maxStreams = streamsPerKey ?? Infinity;
    this.credentialOf = credential ?? ((request) => nonBlankHeaderOf(request, 'x-session-api-key') ?? bearerOf(request));
  }

  /** Counts the request. Throws `unauthorized`, `rate_limited` (wrong keys, or requests of the key), or a failure of the port. */
  async authenticate(request: ClientRequest, credential: string | null): Promise<Principal> {
    if (credential === null) return await this.#auth.authenticate(null);
    const digest = keyDigest(credential);
    const isKnown = this.#knownKeys.get(digest) === true;
    const principal = await this.#checkWithFailureLimit(request, 'unauthorized', isKnown, () => this.#auth.authenticate(credential));
    if (!isKnown) this.#knownKeys.set(digest, true);
    return await this.#countRequest(principal);
  }

  /** The same for the digest of a key, from a link or token that was made with the key. Such a digest can't be guessed or forged. */
  async authenticateDigest(digest: string): Promise<Principal> {
    if (this.#auth.authenticateDigest === undefined) throw new Failure('unauthorized', {});
    return await this.#countRequest(await this.#auth.authenticateDigest(digest));
  }

  async #countRequest(principal: Principal): Promise<Principal> {
    const { userId, keyName, access } = principal;
    if (!isUserId(userId)) throw new Error(`the key ${JSON.stringify(keyName)} has a reserved or invalid user id`);
    if (!keyAccesses.includes(access)) {
      throw new Error(`the key ${JSON.stringify(keyName)} has an unknown access: ${JSON.stringify(access)}`);
    }
    if (this.#requests !== null) await consume(this.#requests, keyOf(principal), 'requests_per_minute');
    return principal;
  }

  /**
   * Counts a stream until `closed` fires. Calls `identify` repeatedly. Returns a signal that fires with `unauthorized` soon after
   * `identify` throws it. Throws `rate_limited` if the key has too many streams.
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
        if (isFailureOf(error, 'unauthorized')) refused.abort(error);
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

  /** Logs in with a code. A wrong code counts as a wrong key. Throws the errors of `exchange`, and `rate_limited`. */
  async logIn<T>(request: ClientRequest, exchange: () => Promise<T>): Promise<T> {
    return await this.#checkWithFailureLimit(request, 'login_code_invalid', false, exchange);
  }

  /**
   * Finds the key that made a signature. A wrong signature counts as a wrong key. An address with too many wrong keys is refused, because
   * the search is expensive. Throws the errors of `find`, and `rate_limited`.
   */
  async authenticateSignature<T>(request: ClientRequest, find: () => Promise<T>): Promise<T> {
    const failures = await this.#tooManyFailures(request);
    if (failures !== null) throw rateLimited('failed_logins_per_minute', failures);
    return await this.#checkWithFailureLimit(request, 'unauthorized', true, find);
  }

  async #checkWithFailureLimit<T>(request: ClientRequest, wrong: FailureCode, isKnown: boolean, check: () => Promise<T>): Promise<T> {
    if (!isKnown && (await this.#tooManyFailures(request)) !== null) await wait(guessDelayMs);
    try {
      return await check();
    } catch (error) {
      if (isFailureOf(error, wrong)) await consume(this.#failures, clientAddress(request), 'failed_logins_per_minute');
      throw error;
    }
  }

  /** Returns the count of wrong keys if it has reached the limit, otherwise null. */
  async #tooManyFailures(request: ClientRequest): Promise<RateLimiterRes | null> {
    const failures = await this.#failures.get(clientAddress(request));
    return failures !== null && failures.remainingPoints <= 0 ? failures : null;
  }
}

function keyOf({ userId, keyName }: Principal): string {
  return JSON.stringify([userId, keyName]);
}

async function consume(limiter: RateLimiterMemory, key: string, limit: string): Promise<void> {
  try {
    await limiter.consume(key);
  } catch (error) {
    throw error instanceof RateLimiterRes ? rateLimited(limit, error) : error;
  }
}

function rateLimited(limit: string, { msBeforeNext }: RateLimiterRes): Failure {
  // A timer ends the window, but `msBeforeNext` is from the time of the machine, which may have been set back.
  const retryAfterSeconds = Math.min(windowSeconds, Math.max(1, Math.ceil(msBeforeNext / 1000)));
  return new Failure('rate_limited', { limit, retryAfterSeconds });
}

/** Returns the client that the limits count: an IPv4 address, or the /64 network of an IPv6 address, because one client owns all of it. */
export function clientAddress(request: ClientRequest): string {
  const given = request.ip ?? 'unknown';
  // Some reverse proxies add the port.
  const address = SocketAddress.parse(given)?.address ?? given;
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
