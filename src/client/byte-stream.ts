import { connectionLost } from './failures.ts';
import type { Watchdog } from './waiting.ts';

/** Returns the same bytes. Each part must arrive in time after it is requested. */
export function withSilenceLimit(body: ReadableStream<Uint8Array>, watch: Watchdog, silenceMs: number): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        watch.restart('silence', silenceMs);
        const { done, value } = await watch.race(reader.read());
        if (done) controller.close();
        else controller.enqueue(value);
      } catch (error) {
        controller.error(watch.signal.aborted ? error : connectionLost(undefined, error));
        reader.cancel(error).catch(() => 'it has failed itself');
      } finally {
        watch.stop();
      }
    },
    async cancel(reason) {
      watch.stop();
      await reader.cancel(reason);
    },
  }, { highWaterMark: 0 });
}

/** Yields the parts of a stream. Some browsers can't iterate over one. */
export async function* partsOf<T>(stream: ReadableStream<T> | null): AsyncGenerator<T, void> {
  const reader = stream?.getReader();
  try {
    for (;;) {
      const part = await reader?.read();
      if (part === undefined || part.done) return;
      yield part.value;
    }
  } finally {
    await reader?.cancel();
  }
}
