import { hash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';
import { Failure, isFailureOf } from '../../domain/failure.ts';
import type { Principal } from '../../domain/principal.ts';
import type { Auth } from '../../ports/auth.ts';
import { headerOf } from './request-input.ts';

const windowSeconds = 60;
const maxKnownKeys = 1000;

/** A request whose client's address Express knows. */
type ClientRequest = IncomingMessage & { readonly ip?: string | undefined };

export interface AuthenticationLimits {
  /** Wrong keys that one client address may try. */
  readonly failedLoginsPerMinute: number;
  /** Requests that one key may make; null is no limit. */
  readonly requestsPerMinute: number | null;
}

/**
 * Finds who makes a request by its key, and limits how often a client address may try wrong keys. An address over the limit gets no
 * further tries for a while. Keys that were right before still work from there, so that one bad client behind a proxy does not shut
 * the others out. A request without a key is no try.
 */
export class Authenticator {
  readonly #auth: Auth;
  readonly #failures: RateLimiterMemory;
  readonly #failuresPerMinute: number;
  readonly #requests: RateLimiterMemory | null;
  /** Digests of keys that were right, the oldest first. */
  readonly #knownKeys = new Set<string>();

  constructor(auth: Auth, { failedLoginsPerMinute, requestsPerMinute }: AuthenticationLimits) {
    this.#auth = auth;
    this.#failuresPerMinute = failedLoginsPerMinute;
    this.#failures = new RateLimiterMemory({ points: failedLoginsPerMinute, duration: windowSeconds });
    this.#requests = requestsPerMinute === null ? null : new RateLimiterMemory({ points: requestsPerMinute, duration: windowSeconds });
  }

  /** Throws `unauthorized`, `rate_limited` (wrong keys), and the failures of the port. */
  async authenticate(request: ClientRequest): Promise<Principal> {
    const key = headerOf(request, 'x-session-api-key');
    if (key === null) return await this.#auth.authenticate(null);
    const digest = hash('sha256', key);
    if (!this.#knownKeys.has(digest)) await this.#refuseBlocked(request);
    try {
      const principal = await this.#auth.authenticate(key);
      this.#remember(digest);
      return principal;
    } catch (error) {
      if (!isFailureOf(error, 'unauthorized')) throw error;
      this.#knownKeys.delete(digest);
      await consume(this.#failures, clientAddress(request), 'failed_logins_per_minute');
      throw error;
    }
  }

  /** Counts a request of the key. Throws `rate_limited`. */
  async countRequest({ userId, keyName }: Principal): Promise<void> {
    if (this.#requests !== null) await consume(this.#requests, JSON.stringify([userId, keyName]), 'requests_per_minute');
  }

  async #refuseBlocked(request: ClientRequest): Promise<void> {
    const failures = await this.#failures.get(clientAddress(request));
    if (failures !== null && failures.consumedPoints >= this.#failuresPerMinute) throw rateLimited('failed_logins_per_minute', failures);
  }

  #remember(digest: string): void {
    if (this.#knownKeys.has(digest)) return;
    this.#knownKeys.add(digest);
    const [oldest] = this.#knownKeys;
    if (this.#knownKeys.size > maxKnownKeys && oldest !== undefined) this.#knownKeys.delete(oldest);
  }
}

async function consume(limiter: RateLimiterMemory, key: string, limit: string): Promise<void> {
  try {
    await limiter.consume(key);
  } catch (error) {
    throw error instanceof RateLimiterRes ? rateLimited(limit, error) : error;
  }
}

function rateLimited(limit: string, { msBeforeNext }: RateLimiterRes): Failure {
  return new Failure('rate_limited', { limit, retryAfterSeconds: Math.max(1, Math.ceil(msBeforeNext / 1000)) });
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
