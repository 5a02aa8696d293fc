/** Runs a task when all earlier ones of the same key are over. */
export type InTurn = <T>(key: string, task: () => Promise<T>) => Promise<T>;

/** Tasks of one key run one after another, those of different keys side by side. A failed task does not stop the next. */
export function createQueue(): InTurn {
  const last = new Map<string, Promise<unknown>>();
  return async (key, task) => {
    const result = (last.get(key) ?? Promise.resolve()).then(task);
    const over = result.then(ignore, ignore);
    last.set(key, over);
    try {
      return await result;
    } finally {
      if (last.get(key) === over) last.delete(key);
    }
  };
}

function ignore(): void {}
