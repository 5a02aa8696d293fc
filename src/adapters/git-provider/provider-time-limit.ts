import type { Clock } from '../../ports/clock.ts';
import type { ProviderFailures } from '../shared/provider-failures.ts';
import { startTimeout, withTimeout } from '../shared/timeout.ts';

export type TimeLimit = ReturnType<typeof createTimeLimit>;

/** Limits the time of a provider's work. `close` ends all work. Work that ends early rejects with the signal's reason. */
export function createTimeLimit(timers: Pick<Clock, 'after'>, timeoutMs: number, { timedOut, failed }: ProviderFailures) {
  const controller = new AbortController();
  const closing: AbortSignal = controller.signal;
  return {
    closing,
    run: <T>(signal: AbortSignal | undefined, work: (signal: AbortSignal) => Promise<T>): Promise<T> =>
      withTimeout(startTimeout(timers, timeoutMs, () => timedOut(timeoutMs), [signal, closing]), work),
    close: () => controller.abort(failed({ code: 'closed' })),
  };
}
