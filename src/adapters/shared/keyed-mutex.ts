/** Tasks of one key run one after another, those of different keys at the same time. A failed task does not stop the next. */
export class KeyedMutex {
  /** By key, the last task, as a promise that never rejects. */
  readonly #last = new Map<string, Promise<unknown>>();

  /** Runs the task when all earlier ones of the same key are over. */
  async inTurn<T>(key: string, task: () => Promise<T>): Promise<T> {
    const result = (this.#last.get(key) ?? Promise.resolve()).then(task);
    const over = Promise.allSettled([result]);
    this.#last.set(key, over);
    try {
      return await result;
    } finally {
      if (this.#last.get(key) === over) this.#last.delete(key);
    }
  }

  /** Returns when every present task is over. */
  async settled(): Promise<void> {
    await Promise.all(this.#last.values());
  }
}
