/**
 * The parts as a stream that is made as it is read. Firing the signal ends it with the reason, read or not; so does cancelling.
 * `onEnd` is called once, with the failure of the parts where that is what ended it.
 */
export function streamOf(
  parts: (signal: AbortSignal) => AsyncGenerator<Uint8Array>,
  signal: AbortSignal,
  onEnd: (failure: unknown) => Promise<void>,
): ReadableStream<Uint8Array> {
  const ending = new AbortController();
  const generator = parts(ending.signal);
  let over = false;
  const end = async (failure: unknown): Promise<void> => {
    if (over) return;
    over = true;
    signal.removeEventListener('abort', onAbort);
    await onEnd(failure);
  };
  const leave = async (reason: unknown): Promise<void> => {
    ending.abort(reason);
    // What it does at this moment fails by the signal, which is no news.
    await generator.return(undefined).catch(() => undefined);
    await end(null);
  };
  let controller: ReadableStreamDefaultController<Uint8Array> | null = null;
  const onAbort = (): void => {
    controller?.error(signal.reason);
    void leave(signal.reason);
  };
  const stream = new ReadableStream<Uint8Array>(
    {
      start(started) {
        controller = started;
      },
      async pull(pulled) {
        try {
          const chunk = await nextPart(generator);
          if (over || ending.signal.aborted) return;
          if (chunk !== null) return pulled.enqueue(chunk);
          await end(null);
          pulled.close();
        } catch (error) {
          if (ending.signal.aborted) return;
          await end(error);
          throw error;
        }
      },
      cancel: leave,
    },
    { highWaterMark: 0 },
  );
  if (signal.aborted) onAbort();
  else signal.addEventListener('abort', onAbort, { once: true });
  return stream;
}

/** Null at the end. */
async function nextPart(generator: AsyncGenerator<Uint8Array>): Promise<Uint8Array | null> {
  for (;;) {
    const { done, value } = await generator.next();
    if (done === true) return null;
    if (value.length > 0) return value;
  }
}
