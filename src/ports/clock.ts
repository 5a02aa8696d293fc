/** The time. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;

  /** Calls back once after at least so many milliseconds. Returns the function that cancels it. */
  after(ms: number, callback: () => void): () => void;
}
