/** A run of work on one key. */
export interface Run {
  /** Fires when whoever waits in this run should look again. */
  readonly woken: AbortSignal;
  /** Fires when what this run does is no longer wanted. */
  readonly interrupted: AbortSignal;
  /** Makes ready for the next look: what fired so far has been seen. */
  rearm(): void;
}

class Entry<T> implements Run {
  again = false;
  promise: Promise<T> | null = null;
  #wake = new AbortController();
  #interrupt = new AbortController();

  get woken(): AbortSignal {
    return this.#wake.signal;
  }

  get interrupted(): AbortSignal {
    return this.#interrupt.signal;
  }

  rearm(): void {
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
 * Runs at most one piece of work a key at a time within this process. Those who ask meanwhile share its result, and the
 * work is done once more before it ends, so that nothing written before the question is missed. It only saves work:
 * what must happen once is decided in the store.
 */
export class KeyedWorker<T> {
  readonly #entries = new Map<string, Entry<T>>();
  readonly #work: (key: string, run: Run, earlier: T | null) => Promise<T>;

  /** `earlier` is the result of the pass before in the same run. */
  constructor(work: (key: string, run: Run, earlier: T | null) => Promise<T>) {
    this.#work = work;
  }

  /** Runs the work for the key, or joins the run that is under way. */
  run(key: string): Promise<T> {
    const running = this.#entries.get(key);
    if (running?.promise != null) {
      running.again = true;
      return running.promise;
    }
    const entry = new Entry<T>();
    this.#entries.set(key, entry);
    entry.promise = this.#repeat(key, entry);
    return entry.promise;
  }

  /** Makes the run of the key, if there is one, look again at once rather than wait on. */
  wake(key: string): void {
    this.#entries.get(key)?.wake();
  }

  /** Makes the run of the key, if there is one, leave off what it does, and look again. */
  interrupt(key: string): void {
    this.#entries.get(key)?.interrupt();
  }

  /** Interrupts every run, and answers when all have ended. */
  async drain(): Promise<void> {
    const entries = [...this.#entries.values()];
    for (const entry of entries) entry.interrupt();
    await Promise.allSettled(entries.flatMap(({ promise }) => promise ?? []));
  }

  async #repeat(key: string, entry: Entry<T>): Promise<T> {
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
