export interface Clock {
  /** Returns whole milliseconds since the epoch. They may jump if the machine's time is set; timers must not depend on them. */
  now(): number;

  /**
   * Calls back once, after at least `ms` milliseconds, never before this method has returned, and in the order of the due times. Any number
   * up to `Number.MAX_SAFE_INTEGER` is allowed. Returns the function that cancels the timer; it is idempotent, and has no effect after the
   * callback. A callback must not throw. The adapter decides whether a timer keeps the process alive; the system clock does not.
   */
  after(ms: number, callback: () => void): () => void;
}
