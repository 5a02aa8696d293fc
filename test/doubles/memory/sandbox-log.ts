import { raceSignal } from '../../../src/ports/abort-signals.ts';
import type { LogRequest } from '../../../src/ports/sandbox-runtime.ts';

/** The output of a program in a sandbox, of all its runs. */
export class MemoryLog {
  #bytes = Buffer.alloc(0);
  /** Resolves when something is written, or a run ends. */
  #changed = Promise.withResolvers<void>();

  write(output: string | Uint8Array): void {
    this.#bytes = Buffer.concat([this.#bytes, Buffer.from(output as Uint8Array)]);
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  }

  runEnded(): void {
    this.#changed.resolve();
  }

  /** Returns the output. With `follow`, continues until the run is over. */
  read({ tailBytes = Infinity, follow = false }: LogRequest, isOver: () => boolean, signal: AbortSignal): ReadableStream<Uint8Array> {
    const isFollowed = follow && !isOver();
    const end = isFollowed ? Infinity : this.#bytes.length;
    let at = Math.max(0, this.#bytes.length - tailBytes);
    const pull = async (controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> => {
      for (;;) {
        signal.throwIfAborted();
        const more = this.#bytes.subarray(at, Math.min(end, at + 65_536));
        at += more.length;
        if (more.length > 0) return controller.enqueue(new Uint8Array(more));
        if (!isFollowed || isOver()) return controller.close();
        await raceSignal(this.#changed.promise, signal);
      }
    };
    return new ReadableStream<Uint8Array>({ pull }, { highWaterMark: 0 });
  }
}
