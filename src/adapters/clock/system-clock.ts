import type { Clock } from '../../ports/clock.ts';

/** The longest that one timer of the platform can wait; a longer one would fire at once. */
const longest = 2 ** 31 - 1;

/** The machine's clock. Its timers don't keep the process alive. */
export function createSystemClock(): Clock {
  return {
    now: () => Date.now(),
    after(ms, callback) {
      const due = performance.now() + ms;
      const arm = (): NodeJS.Timeout => setTimeout(fire, Math.min(longest, Math.max(0, Math.ceil(due - performance.now())))).unref();
      // A timer may fire a little early, and a long wait is made of several.
      const fire = (): void => {
        if (performance.now() < due) timer = arm();
        else callback();
      };
      let timer = arm();
      return () => clearTimeout(timer);
    },
  };
}
