import { neverAborts, raceSignal } from '../../ports/abort-signals.ts';

/** Runs the tasks of one key one after another, and tasks of different keys at the same time. A failed task does not stop the next. */
export class KeyedMutex {
  /** The last task of each key, as a promise that never rejects. */
  readonly #last = new Map<string, Promise<unknown>>();

  /** Runs the task after all earlier ones of the same key. Rejects with the signal's reason if it fires before the task starts. */
  async runExclusive<T>(key: string, task: () => Promise<T>, signal: AbortSignal = neverAborts): Promise<T> {
    const earlier = this.#last.get(key) ?? Promise.resolve();
    const result = raceSignal(earlier, signal).then(task);
    // Without a value: each would hold the results of all earlier tasks.
    const over = Promise.allSettled([earlier, result]).then(() => undefined);
    this.#last.set(key, over);
    try {
      return await result;
    } finally {
      if (this.#last.get(key) === over) this.#last.delete(key);
    }
  }

  async settled(): Promise<void> {
    await Promise.all(this.#last.values());
  }
}
