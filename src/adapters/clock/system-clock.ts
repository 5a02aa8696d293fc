import type { Clock } from '../../ports/clock.ts';

/** The longest delay of one platform timer, in milliseconds. A longer one would fire at once. */
const maxDelayMs = 2 ** 31 - 1;

/** Uses the machine's clock. Its timers do not keep the process alive. */
export function createSystemClock(): Clock {
  return {
    now: () => Date.now(),
    after(ms, callback) {
      const due = performance.now() + ms;
      const arm = (): NodeJS.Timeout => setTimeout(fire, Math.min(maxDelayMs, Math.max(0, Math.ceil(due - performance.now())))).unref();
      // A timer can fire a little early, and a long wait needs several timers.
      const fire = (): void => {
        if (performance.now() < due) timer = arm();
        else callback();
      };
      let timer = arm();
      return () => clearTimeout(timer);
    },
  };
}
