import { raceSignal } from '../../ports/abort-signals.ts';

/** Returns a function that makes something when it is first needed, and then returns what was made. If that failed, it tries again. */
export function createLazy<T>(make: () => Promise<T>) {
  let value: Promise<T> | null = null;
  const get = (): Promise<T> => (value ??= make().catch((error: unknown) => {
    value = null;
    throw error;
  }));
  /** Returns null if it was never needed, or could not be made. */
  const made = async (): Promise<T | null> => await value?.catch(() => null) ?? null;
  return Object.assign(get, { made });
}

interface Run<T> {
  readonly promise: Promise<T>;
  readonly controller: AbortController;
  callers: number;
}

export type SingleFlight<T> = ReturnType<typeof createSingleFlight<T>>;

/** Lets concurrent requests with the same key share one run. */
export function createSingleFlight<T>() {
  const runs = new Map<string, Run<T>>();
  const unfinished = new Set<Promise<T>>();

  function start(key: string, work: (signal: AbortSignal) => Promise<T>): Run<T> {
    const controller = new AbortController();
    const promise = work(controller.signal).finally(() => {
      unfinished.delete(promise);
      forget(key, run);
    });
    const run = { promise, controller, callers: 0 };
    unfinished.add(promise);
    runs.set(key, run);
    return run;
  }

  function forget(key: string, run: Run<T>): void {
    if (runs.get(key) === run) runs.delete(key);
  }

  return {
    /** Joins the run of this key, or starts it. A caller whose signal fires leaves. The run is aborted when the last caller leaves. */
    async join(key: string, signal: AbortSignal, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
      signal.throwIfAborted();
      const run = runs.get(key) ?? start(key, work);
      run.callers += 1;
      try {
        return await raceSignal(run.promise, signal);
      } finally {
        run.callers -= 1;
        if (run.callers === 0) {
          forget(key, run);
          run.controller.abort(signal.reason);
        }
      }
    },
    /** Resolves when all current runs have ended. */
    async settled(): Promise<void> {
      await Promise.allSettled(unfinished);
    },
  };
}
