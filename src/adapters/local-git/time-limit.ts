/** Rejects with the signal's reason when it fires before the promise settles. */
export function raceSignal<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(signal.reason);
    const settle = (end: () => void): void => {
      signal.removeEventListener('abort', onAbort);
      end();
    };
    promise.then(
      (value) => settle(() => resolve(value)),
      (error: unknown) => settle(() => reject(error)),
    );
    if (signal.aborted) onAbort();
    else signal.addEventListener('abort', onAbort, { once: true });
  });
}

/** A signal that fires when a time is over, or when one of other signals does. */
export interface TimeLimit {
  readonly signal: AbortSignal;
  /** To be called when the work has ended. */
  end(): void;
}

/** `failure` makes the reason that the signal fires with after `ms`. */
export function startTimeLimit(
  ms: number,
  failure: () => Error,
  signals: readonly (AbortSignal | undefined)[],
): TimeLimit {
  const controller = new AbortController();
  const timer = setTimeout(() => controller.abort(failure()), ms);
  // Listeners that are taken off again: the signal of a whole deployment outlives many limits.
  const links = signals.filter((signal) => signal !== undefined).map((signal) => follow(controller, signal));
  return {
    signal: controller.signal,
    end() {
      clearTimeout(timer);
      for (const unlink of links) unlink();
    },
  };
}

function follow(controller: AbortController, signal: AbortSignal): () => void {
  const onAbort = (): void => controller.abort(signal.reason);
  if (signal.aborted) onAbort();
  else signal.addEventListener('abort', onAbort, { once: true });
  return () => signal.removeEventListener('abort', onAbort);
}
