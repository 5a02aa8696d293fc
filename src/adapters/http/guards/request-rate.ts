import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';
import { Failure } from '../../../domain/failure.ts';
import type { Principal } from '../../../domain/principal.ts';

/** Limits the requests that a key makes; does nothing without a limit. Failure: `rate_limited`. */
export function requestRate(perMinute: number | null): ((principal: Principal) => Promise<void>) | null {
  if (perMinute === null) return null;
  const limiter = new RateLimiterMemory({ points: perMinute, duration: 60 });
  return async ({ userId, keyName }) => {
    try {
      await limiter.consume(JSON.stringify([userId, keyName]));
    } catch (error) {
      if (!(error instanceof RateLimiterRes)) throw error;
      const retryAfterSeconds = Math.max(1, Math.ceil(error.msBeforeNext / 1000));
      throw new Failure('rate_limited', { limit: 'requests_per_minute', retryAfterSeconds });
    }
  };
}
