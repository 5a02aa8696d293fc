/** The time. */
export interface Clock {
  /** Returns whole milliseconds since the epoch. They may jump if the machine's time is set; timers must not depend on them. */
  now(): number;

  /**
   * Calls back once, after at least `ms` milliseconds, never before it has returned, and in the order of the times. Any number up to
   * `Number.MAX_SAFE_INTEGER` is allowed. Returns the function that cancels it, which is idempotent and has no effect afterwards. A
   * callback must not throw. Whether a timer keeps the process alive is up to the adapter; the system's clock does not.
   */
  after(ms: number, callback: () => void): () => void;
}
