/** The present run of the work for a key. */
export class KeyedRun<T = unknown> {
  /** True if the work must run once more. */
  again = false;
  promise: Promise<T> | null = null;
  #wake = new AbortController();
  #interrupt = new AbortController();

  /** Fires when the run must check again instead of waiting. */
  get woken(): AbortSignal {
    return this.#wake.signal;
  }

  /** Fires when the run must stop its current work. */
  get interrupted(): AbortSignal {
    return this.#interrupt.signal;
  }

  /** Resets both signals before the next check. */
  resetSignals(): void {
    if (this.#wake.signal.aborted) this.#wake = new AbortController();
    if (this.#interrupt.signal.aborted) this.#interrupt = new AbortController();
  }

  wake(): void {
    this.#wake.abort();
  }

  interrupt(): void {
    this.#interrupt.abort();
    this.#wake.abort();
  }
}

/**
 * Runs the work for a key at most once at a time in this process. Calls during a run share its result. The run then repeats the work
 * before it ends, so that it sees everything that was written before those calls. This only saves work. The store decides what must
 * happen only once.
 */
export class KeyedWorker<T> {
  readonly #entries = new Map<string, KeyedRun<T>>();
  readonly #work: (key: string, run: KeyedRun, earlier: T | null) => Promise<T>;

  /** `earlier` is the result of the previous pass in the same run. */
  constructor(work: (key: string, run: KeyedRun, earlier: T | null) => Promise<T>) {
    this.#work = work;
  }

  /** Runs the work for the key, or joins its run. */
  run(key: string): Promise<T> {
    const running = this.#entries.get(key);
    if (running?.promise != null) {
      running.again = true;
      return running.promise;
    }
    const entry = new KeyedRun<T>();
    this.#entries.set(key, entry);
    entry.promise = this.#repeat(key, entry);
    return entry.promise;
  }

  /** Makes the key's run check again at once. Does nothing if there is no run. */
  wake(key: string): void {
    this.#entries.get(key)?.wake();
  }

  /** Like {@link run}, but makes a present run stop its current work and check again. */
  interrupt(key: string): Promise<T> {
    this.#entries.get(key)?.interrupt();
    return this.run(key);
  }

  /** Interrupts every run. Resolves when all have ended. */
  async drain(): Promise<void> {
    const entries = [...this.#entries.values()];
    for (const entry of entries) entry.interrupt();
    await Promise.allSettled(entries.flatMap(({ promise }) => promise ?? []));
  }

  async #repeat(key: string, entry: KeyedRun<T>): Promise<T> {
    try {
      let result: T | null = null;
      do {
        entry.again = false;
        result = await this.#work(key, entry, result);
      } while (entry.again);
      return result;
    } finally {
      this.#entries.delete(key);
    }
  }
}
