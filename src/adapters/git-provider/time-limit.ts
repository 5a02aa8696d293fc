import type { Clock } from '../../ports/clock.ts';
import type { ProviderFailures } from '../shared/provider-failures.ts';
import { startTimeout, withTimeout } from '../shared/timeout.ts';

export type TimeLimit = ReturnType<typeof createTimeLimit>;

/** Limits the time of work for a provider, until it is closed. Work that ends early rejects with the signal's reason. */
export function createTimeLimit(timers: Pick<Clock, 'after'>, timeoutMs: number, { timedOut, failed }: ProviderFailures) {
  const closing = new AbortController();
  return {
    closing: closing.signal,
    run: <T>(signal: AbortSignal | undefined, work: (signal: AbortSignal) => Promise<T>): Promise<T> =>
      withTimeout(startTimeout(timers, timeoutMs, () => timedOut(timeoutMs), [signal, closing.signal]), work),
    close: () => closing.abort(failed({ code: 'closed' })),
  };
}
