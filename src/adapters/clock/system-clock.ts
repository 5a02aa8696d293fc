import type { Clock } from '../../ports/clock.ts';
import { startTimer } from '../shared/timeout.ts';

/** Uses the machine's clock. Its timers do not keep the process alive. */
export function createSystemClock(): Clock {
  return {
    now: () => Date.now(),
    after: (ms, callback) => startTimer(ms, callback, false),
  };
}
