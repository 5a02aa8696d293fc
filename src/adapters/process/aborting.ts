/** Waits for the result until the signal fires, whose reason it then rejects with. What is waited for goes on. */
export async function untilAborted<T>(result: Promise<T>, signal: AbortSignal): Promise<T> {
  const aborted = Promise.withResolvers<never>();
  const abort = (): void => aborted.reject(signal.reason);
  if (signal.aborted) abort();
  signal.addEventListener('abort', abort);
  try {
    return await Promise.race([result, aborted.promise]);
  } finally {
    signal.removeEventListener('abort', abort);
    // Whoever stopped waiting does not want to know how it went.
    result.catch(() => {});
  }
}
