import type { Clock } from '../../ports/clock.ts';

/** The longest that one timer of the platform can wait; a longer one would fire at once. */
const longest = 2 ** 31 - 1;

/** The machine's clock. Its timers don't keep the process alive. */
export function createSystemClock(): Clock {
  return {
    now: () => Date.now(),
    after(ms, callback) {
      const due = performance.now() + ms;
      let timer = arm();

      // A timer may fire a little early, and a long wait is made of several.
      function arm(): NodeJS.Timeout {
        const left = Math.min(longest, Math.max(0, Math.ceil(due - performance.now())));
        return setTimeout(fire, left).unref();
      }

      function fire(): void {
        if (performance.now() < due) timer = arm();
        else callback();
      }

      return () => clearTimeout(timer);
    },
  };
}
