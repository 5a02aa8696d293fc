/** Calls `callback` when the signal fires, or at once if it has fired. Does not call it after the result is disposed of. */
export function onAbort(signal: AbortSignal, callback: () => void): Disposable {
  if (signal.aborted) callback();
  else signal.addEventListener('abort', callback, { once: true });
  return { [Symbol.dispose]: () => signal.removeEventListener('abort', callback) };
}
