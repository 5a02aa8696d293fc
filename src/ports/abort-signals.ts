/** For work that no caller ends early. */
export const neverAborts: AbortSignal = new AbortController().signal;

/** Calls `callback` when the signal fires, or at once if it has fired. Does not call it after the result is disposed of. */
export function onAbort(signal: AbortSignal, callback: () => void): Disposable {
  if (signal.aborted) callback();
  else signal.addEventListener('abort', callback, { once: true });
  return { [Symbol.dispose]: () => signal.removeEventListener('abort', callback) };
}

/** Waits for the promise. If the signal fires first, rejects with its reason, while the work continues. */
export async function raceSignal<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  const aborted = Promise.withResolvers<never>();
  using _ = onAbort(signal, () => aborted.reject(signal.reason));
  return await Promise.race([aborted.promise, promise]);
}
