/** Answers with the first signal that asks the process to end. A second one ends it at once. */
export function untilSignal(): Promise<NodeJS.Signals> {
  const { promise, resolve } = Promise.withResolvers<NodeJS.Signals>();
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => resolve(signal));
  return promise;
}

/** Fires with the first signal that asks the process to end. */
export function signalled(): AbortSignal {
  const controller = new AbortController();
  void untilSignal().then(() => controller.abort());
  return controller.signal;
}
