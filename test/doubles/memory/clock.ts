import type { Clock } from '../../../src/ports/clock.ts';

/** A clock that only the test moves. */
export interface ManualClock extends Clock {
  /** Advances the time, and calls each timer that becomes due, in order and at its own time. */
  advance(ms: number): void;
  /** Sets the time, as after a sleep of the machine. No timer becomes due. */
  jump(ms: number): void;
  /** Returns the number of pending timers. */
  readonly pending: number;
}

interface Timer {
  at: number;
  readonly callback: () => void;
}

/** `start` is in milliseconds since the epoch. */
export function createManualClock(start = Date.UTC(2026, 0, 1)): ManualClock {
  let now = start;
  const timers = new Set<Timer>();

  /** Returns the next timer. If several are due at the same time, the one that was set first. */
  function nextUntil(end: number): Timer | undefined {
    return [...timers].filter(({ at }) => at <= end).toSorted((a, b) => a.at - b.at)[0];
  }

  return {
    now: () => now,
    after(ms, callback) {
      const timer: Timer = { at: now + Math.max(0, ms), callback };
      timers.add(timer);
      return () => void timers.delete(timer);
    },
    advance(ms) {
      const end = now + ms;
      for (let timer = nextUntil(end); timer !== undefined; timer = nextUntil(end)) {
        timers.delete(timer);
        now = timer.at;
        timer.callback();
      }
      now = end;
    },
    jump(ms) {
      now += ms;
      for (const timer of timers) timer.at += ms;
    },
    get pending() {
      return timers.size;
    },
  };
}
