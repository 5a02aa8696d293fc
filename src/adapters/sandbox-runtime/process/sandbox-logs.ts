import { watch } from 'node:fs';
import { copyFile, open, stat, truncate } from 'node:fs/promises';
import { Failure } from '../../../domain/failure.ts';
import type { LogRequest } from '../../../ports/sandbox-runtime.ts';
import { KeyedMutex } from '../../shared/keyed-mutex.ts';
import { ignoring } from '../../shared/system-errors.ts';
import { type Layout, sandboxIds } from './data-folder.ts';
import type { Observer } from './observed-sandbox.ts';
import { unavailable, withFailures } from './runtime-failures.ts';
import type { Watch } from './watch.ts';

/** Reads a log that is cut meanwhile. */
interface Reader {
  readonly id: string;
  /** Is it in what was cut off? The log itself comes next. */
  isInOld: boolean;
  /** The offset of the next byte in its file. */
  position: number;
  /** How many bytes it is to read at most. */
  left: number;
  /** Resolves when there may be more to read, or the run may have ended. */
  woken: PromiseWithResolvers<void>;
  /** Ends it: `reason` is what its stream fails with. */
  end: (reason?: unknown) => void;
}

const cutEveryMs = 10_000;
const chunkBytes = 64 * 1024;

/**
 * The logs of sandboxes, which their commands append to. One that has grown past the limit is moved to `<file>.old`, in place of what was
 * there. What is written meanwhile may be lost.
 */
export class SandboxLogs {
  readonly #layout: Layout;
  readonly #observer: Observer;
  readonly #limitBytes: number;
  /** A log is not cut while it is read. */
  readonly #mutex = new KeyedMutex();
  readonly #readers = new Set<Reader>();
  readonly #timer: NodeJS.Timeout;

  constructor(layout: Layout, observer: Observer, limitBytes: number) {
    this.#layout = layout;
    this.#observer = observer;
    this.#limitBytes = limitBytes;
    // What can't be cut now is tried again the next time.
    const cutAll = async (): Promise<void> => {
      for (const id of await sandboxIds(layout)) await this.cut(id);
    };
    this.#timer = setInterval(() => void cutAll().catch(() => {}), cutEveryMs).unref();
  }

  /** Cuts the log of a sandbox if it has grown past the limit. */
  cut(id: string): Promise<void> {
    const { log } = this.#layout.sandbox(id);
    return this.#mutex.inTurn(id, async () => {
      if ((await sizeOf(log)) <= this.#limitBytes) return;
      await copyFile(log, `${log}.old`);
      await truncate(log, 0);
      for (const reader of this.#readers) {
        if (reader.id !== id) continue;
        // What it had to read of an earlier cut is gone.
        if (reader.isInOld) reader.position = 0;
        reader.isInOld = true;
      }
    });
  }

  /** Reads the log of a sandbox; `runs` reports the ends of runs. */
  async read(id: string, { tailBytes, follow = false }: LogRequest, runs: Watch, signal: AbortSignal): Promise<ReadableStream<Uint8Array>> {
    signal.throwIfAborted();
    const { record, live } = await this.#observer.observe(id);
    if (record === null) throw new Failure('sandbox_not_found', { id });
    const { folder, log } = this.#layout.sandbox(id);
    const run = follow ? live?.number : undefined;
    const reader = await this.#mutex.inTurn(id, async () => {
      const [old, size] = [await sizeOf(`${log}.old`), await sizeOf(log)];
      const skipped = Math.max(0, old + size - (tailBytes ?? Infinity));
      const isInOld = skipped < old;
      const left = run === undefined ? old + size - skipped : Infinity;
      const position = isInOld ? skipped : skipped - old;
      const begun: Reader = { id, isInOld, position, left, woken: Promise.withResolvers(), end: () => {} };
      this.#readers.add(begun);
      return begun;
    });
    const held = new DisposableStack();
    held.defer(() => void this.#readers.delete(reader));
    try {
      signal.throwIfAborted();
      if (run !== undefined) {
        const written = held.adopt(watch(folder, () => reader.woken.resolve()), (watcher) => watcher.close());
        written.on('error', () => reader.woken.resolve());
        held.defer(runs.subscribe((changed) => changed === id && reader.woken.resolve()));
      }
      return this.#stream(reader, run, held, signal);
    } catch (error) {
      held.dispose();
      throw error;
    }
  }

  /** Something happened to the sandbox, on request. */
  changed(id: string): void {
    for (const reader of this.#readers) if (reader.id === id) reader.woken.resolve();
  }

  close(): void {
    clearInterval(this.#timer);
    for (const reader of this.#readers) reader.end(unavailable({ code: 'closed' }));
  }

  #stream(reader: Reader, run: number | undefined, held: DisposableStack, signal: AbortSignal): ReadableStream<Uint8Array> {
    const abort = (): void => reader.end(signal.reason);
    signal.addEventListener('abort', abort);
    held.defer(() => signal.removeEventListener('abort', abort));
    // Nobody waits for more any longer.
    held.defer(() => reader.woken.resolve());
    const pull = async (controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> => {
      for (let isOver = run === undefined; ; ) {
        reader.woken = Promise.withResolvers();
        const chunk = await this.#next(reader);
        if (held.disposed) return;
        if (chunk.length > 0) return controller.enqueue(chunk);
        if (isOver) {
          held.dispose();
          return controller.close();
        }
        // What was written before its end is read once more.
        isOver = (await this.#observer.observe(reader.id)).live?.number !== run;
        if (!isOver && !held.disposed) await reader.woken.promise;
      }
    };
    return new ReadableStream<Uint8Array>({
      start(controller) {
        reader.end = (reason) => {
          if (held.disposed) return;
          held.dispose();
          controller.error(reason);
        };
      },
      pull: (controller) => withFailures(() => pull(controller)).catch((error: unknown) => reader.end(error)),
      cancel: () => held.dispose(),
    }, { highWaterMark: 0 });
  }

  /** Returns the next bytes. None if it has come to the end of what is written, or of what it is to read. */
  #next(reader: Reader): Promise<Uint8Array> {
    const { log } = this.#layout.sandbox(reader.id);
    return this.#mutex.inTurn(reader.id, async () => {
      const maxBytes = Math.min(chunkBytes, reader.left);
      let chunk = maxBytes === 0 ? empty : await readAt(reader.isInOld ? `${log}.old` : log, reader.position, maxBytes);
      if (chunk.length === 0 && maxBytes > 0 && reader.isInOld) {
        Object.assign(reader, { isInOld: false, position: 0 });
        chunk = await readAt(log, 0, maxBytes);
      }
      // Another process over the same folder has cut it.
      if (chunk.length === 0 && reader.position > (await sizeOf(log))) reader.position = 0;
      reader.position += chunk.length;
      reader.left -= chunk.length;
      return chunk;
    });
  }
}

const empty = new Uint8Array();

async function sizeOf(file: string): Promise<number> {
  return (await stat(file).catch(ignoring('ENOENT')))?.size ?? 0;
}

/** Returns what a file has at the position. Nothing if there is no file. */
async function readAt(file: string, position: number, maxBytes: number): Promise<Uint8Array> {
  await using handle = await open(file, 'r').catch(ignoring('ENOENT'));
  if (handle === null) return empty;
  const { buffer, bytesRead } = await handle.read({ position, buffer: Buffer.alloc(maxBytes) });
  return buffer.subarray(0, bytesRead);
}
