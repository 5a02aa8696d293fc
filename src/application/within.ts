import type { Clock } from '../ports/clock.ts';

/** Waits for the promise, but not longer than that: null then, while the work goes on. */
export async function within<T>(clock: Clock, ms: number, promise: Promise<T>): Promise<T | null> {
  const late = Promise.withResolvers<null>();
  const cancel = clock.after(ms, () => late.resolve(null));
  try {
    return await Promise.race([promise, late.promise]);
  } finally {
    cancel();
  }
}
