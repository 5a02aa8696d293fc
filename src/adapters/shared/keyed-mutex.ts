/** Tasks of one key run one after another, those of different keys at the same time. A failed task does not stop the next. */
export interface KeyedMutex {
  /** Runs the task when all earlier ones of the same key are over. */
  readonly inTurn: <T>(key: string, task: () => Promise<T>) => Promise<T>;
  /** Returns when every present task is over. */
  readonly settled: () => Promise<void>;
}

export function createKeyedMutex(): KeyedMutex {
  const last = new Map<string, Promise<unknown>>();
  return {
    async inTurn(key, task) {
      const result = (last.get(key) ?? Promise.resolve()).then(task);
      const over = result.then(ignore, ignore);
      last.set(key, over);
      try {
        return await result;
      } finally {
        if (last.get(key) === over) last.delete(key);
      }
    },
    async settled() {
      await Promise.all(last.values());
    },
  };
}

function ignore(): void {}
