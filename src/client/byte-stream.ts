import { lost } from './failures.ts';
import type { Watch } from './waiting.ts';

/** Returns the same bytes. Each part must arrive in time after it is requested. */
export function watched(body: ReadableStream<Uint8Array>, watch: Watch, silenceMs: number): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  watch.rest();
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        watch.expect('silence', silenceMs);
        const { done, value } = await reader.read();
        watch.rest();
        if (!done) return controller.enqueue(value);
        watch.stop();
        controller.close();
      } catch (error) {
        watch.stop();
        const reason = watch.reasonOf(error);
        controller.error(reason === error ? lost(error) : reason);
      }
    },
    async cancel(reason) {
      watch.stop();
      await reader.cancel(reason);
    },
  }, { highWaterMark: 0 });
}

/** Yields the parts of a body. Some browsers can't iterate over a stream. */
export async function* partsOf({ body }: Response): AsyncGenerator<Uint8Array, void> {
  const reader = body?.getReader();
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
