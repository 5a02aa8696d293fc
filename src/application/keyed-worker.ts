export class Run<T = unknown> {
  /** True if the work is to be done once more. */
  again = false;
  promise: Promise<T> | null = null;
  #wake = new AbortController();
  #interrupt = new AbortController();

  /** Fires when the run should look again instead of waiting. */
  get woken(): AbortSignal {
    return this.#wake.signal;
  }

  /** Fires when what the run does is not wanted any more. */
  get interrupted(): AbortSignal {
    return this.#interrupt.signal;
  }

  /** Resets the two signals before the next look. */
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
 * Runs at most one piece of work for a key at a time in this process. Callers that come meanwhile share its result; the work is
 * done once more before it ends, so that it sees everything written before they called. This only saves work: what must happen
 * once is decided in the store.
 */
export class KeyedWorker<T> {
  readonly #entries = new Map<string, Run<T>>();
  readonly #work: (key: string, run: Run, earlier: T | null) => Promise<T>;

  /** `earlier` is the result of the previous pass in the same run. */
  constructor(work: (key: string, run: Run, earlier: T | null) => Promise<T>) {
    this.#work = work;
  }

  /** Runs the work for the key, or joins its run. */
  run(key: string): Promise<T> {
    const running = this.#entries.get(key);
    if (running?.promise != null) {
      running.again = true;
      return running.promise;
    }
    const entry = new Run<T>();
    this.#entries.set(key, entry);
    entry.promise = this.#repeat(key, entry);
    return entry.promise;
  }

  /** Makes the key's run, if there is one, look again at once. */
  wake(key: string): void {
    this.#entries.get(key)?.wake();
  }

  /** Makes the key's run, if there is one, stop what it does and look again. */
  interrupt(key: string): void {
    this.#entries.get(key)?.interrupt();
  }

  /** Interrupts every run. Resolves when all have ended. */
  async drain(): Promise<void> {
    const entries = [...this.#entries.values()];
    for (const entry of entries) entry.interrupt();
    await Promise.allSettled(entries.flatMap(({ promise }) => promise ?? []));
  }

  async #repeat(key: string, entry: Run<T>): Promise<T> {
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
