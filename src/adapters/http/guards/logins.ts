import { hash } from 'node:crypto';
import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';
import { Failure, isFailureOf } from '../../../domain/failure.ts';
import type { Principal } from '../../../domain/principal.ts';
import type { Auth } from '../../../ports/auth.ts';
import type { Incoming } from '../exchange.ts';
import { headerOf } from '../request/headers.ts';
import { clientOf } from './address.ts';

const windowSeconds = 60;
const maxProven = 1000;

/**
 * Tells who makes a request by its key, and how often a client address may try wrong ones. An address that tried too
 * many gets no further tries for a while. Keys that were right before still work from there, so that one bad client
 * behind a proxy does not shut the others out. A request without a key is no try.
 */
export class Logins {
  readonly #auth: Auth;
  readonly #failures: RateLimiterMemory;
  readonly #perMinute: number;
  /** Digests of keys that were right, the oldest first. */
  readonly #proven = new Set<string>();
  #quietFrom = 0;

  constructor(auth: Auth, perMinute: number) {
    this.#auth = auth;
    this.#perMinute = perMinute;
    this.#failures = new RateLimiterMemory({ points: perMinute, duration: windowSeconds });
  }

  /** Failures: `unauthorized`, `rate_limited`, those of the port. */
  async authenticate(request: Incoming): Promise<Principal> {
    const key = headerOf(request.headers, 'x-session-api-key');
    if (key === null) return await this.#auth.authenticate(null);
    const digest = hash('sha256', key);
    if (performance.now() < this.#quietFrom) await this.#refuseBlocked(request, digest);
    try {
      const principal = await this.#auth.authenticate(key);
      this.#prove(digest);
      return principal;
    } catch (error) {
      if (!isFailureOf(error, 'unauthorized')) throw error;
      this.#proven.delete(digest);
      await this.#count(request);
      throw error;
    }
  }

  async #refuseBlocked(request: Incoming, digest: string): Promise<void> {
    if (this.#proven.has(digest)) return;
    const failures = await this.#failures.get(clientOf(request));
    if (failures !== null && failures.consumedPoints >= this.#perMinute) throw tooMany(failures.msBeforeNext);
  }

  async #count(request: Incoming): Promise<void> {
    this.#quietFrom = performance.now() + windowSeconds * 1000;
    try {
      await this.#failures.consume(clientOf(request));
    } catch (error) {
      throw error instanceof RateLimiterRes ? tooMany(error.msBeforeNext) : error;
    }
  }

  #prove(digest: string): void {
    if (this.#proven.has(digest)) return;
    this.#proven.add(digest);
    const [oldest] = this.#proven;
    if (this.#proven.size > maxProven && oldest !== undefined) this.#proven.delete(oldest);
  }
}

function tooMany(msBeforeNext: number): Failure {
  return new Failure('rate_limited', { limit: 'failed_logins_per_minute', retryAfterSeconds: Math.max(1, Math.ceil(msBeforeNext / 1000)) });
}
