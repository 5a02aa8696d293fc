import { watch } from 'node:fs';
import { copyFile, open, stat, truncate } from 'node:fs/promises';
import { Failure } from '../../../domain/failure.ts';
import type { LogRequest } from '../../../ports/sandbox-runtime.ts';
import { KeyedMutex } from '../../shared/keyed-mutex.ts';
import { Listeners } from '../../shared/listeners.ts';
import { ignoring } from '../../shared/system-errors.ts';
import { raceSignal } from '../../shared/timeout.ts';
import { streamOf } from '../kept-bytes.ts';
import { sandboxIds } from './data-folder.ts';
import type { Observer } from './observed-sandbox.ts';
import { unavailable, withFailures } from './runtime-failures.ts';
import type { Watch } from './watch.ts';

const cutEveryMs = 10_000;
const chunkBytes = 64 * 1024;

/**
 * The logs of sandboxes, which their commands append to. One that has grown past the limit is moved to `<file>.old`, in place of what was
 * there. What is written meanwhile may be lost. Readers count bytes from where the log began when this was made, so a cut moves none.
 */
export class SandboxLogs {
  readonly #observer: Observer;
  readonly #limitBytes: number;
  /** A log is not cut while it is read. */
  readonly #mutex = new KeyedMutex();
  /** By sandbox, how many bytes were moved away in all. */
  readonly #moved = new Map<string, number>();
  readonly #changes = new Listeners<string>();
  readonly #closing = new AbortController();
  readonly #timer: NodeJS.Timeout;

  constructor(observer: Observer, limitBytes: number) {
    this.#observer = observer;
    this.#limitBytes = limitBytes;
    // What can't be cut now is tried again the next time.
    const cutAll = async (): Promise<void> => {
      for (const id of await sandboxIds(observer.layout)) await this.cut(id);
    };
    this.#timer = setInterval(() => void cutAll().catch(() => {}), cutEveryMs).unref();
  }

  /** Cuts the log of a sandbox if it has grown past the limit. */
  cut(id: string): Promise<void> {
    const { log } = this.#observer.layout.sandbox(id);
    return this.#mutex.inTurn(id, async () => {
      if ((await sizeOf(log)) <= this.#limitBytes) return;
      await copyFile(log, `${log}.old`);
      await truncate(log, 0);
      this.#moved.set(id, (this.#moved.get(id) ?? 0) + (await sizeOf(`${log}.old`)));
    });
  }

  /** Reads the log of a sandbox; `runs` reports the ends of runs. */
  async read(
    id: string, { tailBytes = Infinity, follow = false }: LogRequest, runs: Watch, signal: AbortSignal,
  ): Promise<ReadableStream<Uint8Array>> {
    signal.throwIfAborted();
    const { record, live } = await this.#observer.observe(id);
    if (record === null) throw new Failure('sandbox_not_found', { id });
    const { oldest, end } = await this.#mutex.inTurn(id, () => this.#extent(id));
    signal.throwIfAborted();
    const from = Math.max(oldest, end - tailBytes);
    return streamOf(AbortSignal.any([signal, this.#closing.signal]), (ended) =>
      follow && live !== null ? this.#follow(id, from, live.number, runs, ended) : this.#upTo(id, from, end, ended));
  }

  /** Something happened to the sandbox, on request. */
  changed(id: string): void {
    this.#changes.tell(id);
  }

  close(): void {
    clearInterval(this.#timer);
    this.#closing.abort(unavailable({ code: 'closed' }));
  }

  async *#follow(id: string, from: number, run: number, runs: Watch, signal: AbortSignal): AsyncGenerator<Uint8Array, void> {
    let woken = Promise.withResolvers<void>();
    const wake = (): void => woken.resolve();
    const wakeIfSame = (changed: string): void => void (changed === id && wake());
    const { folder } = this.#observer.layout.sandbox(id);
    using held = new DisposableStack();
    await withFailures(async () => held.adopt(watch(folder, { persistent: false }, wake), (watcher) => watcher.close()).on('error', wake));
    held.defer(runs.subscribe(wakeIfSame));
    held.defer(this.#changes.add(wakeIfSame));
    let at = from;
    for (let isOver = false; ; ) {
      woken = Promise.withResolvers();
      at = yield* this.#upTo(id, at, Infinity, signal);
      if (isOver) return;
      // What was written before its end is read once more.
      isOver = await withFailures(async () => (await this.#observer.observe(id)).live?.number !== run);
      if (!isOver) await raceSignal(woken.promise, signal);
    }
  }

  /** Yields what is written from an offset on, up to another. Returns the offset that it has reached. */
  async *#upTo(id: string, from: number, end: number, signal: AbortSignal): AsyncGenerator<Uint8Array, number> {
    for (let at = from; ; ) {
      const next = await withFailures(() => this.#mutex.inTurn(id, () => this.#next(id, at, end)));
      signal.throwIfAborted();
      at = next.end;
      if (next.chunk.length === 0) return at;
      yield next.chunk;
    }
  }

  /** Returns the bytes at the offset, or the next ones that are left, and the offset after them. No bytes if there are none yet. */
  async #next(id: string, at: number, limit: number): Promise<{ readonly chunk: Uint8Array; readonly end: number }> {
    const { log } = this.#observer.layout.sandbox(id);
    const { oldest, moved, end } = await this.#extent(id);
    // Another process over the same folder has cut it.
    const from = at > end ? moved : Math.max(at, oldest);
    const [file, start, stop] = from < moved ? [`${log}.old`, oldest, moved] : [log, moved, end];
    const maxBytes = Math.min(chunkBytes, stop - from, limit - from);
    const chunk = maxBytes > 0 ? await readAt(file, from - start, maxBytes) : empty;
    return { chunk, end: from + chunk.length };
  }

  /** Returns the offsets of what is there: `moved` is where the log itself begins. */
  async #extent(id: string): Promise<{ readonly oldest: number; readonly moved: number; readonly end: number }> {
    const { log } = this.#observer.layout.sandbox(id);
    const moved = this.#moved.get(id) ?? 0;
    return { oldest: moved - (await sizeOf(`${log}.old`)), moved, end: moved + (await sizeOf(log)) };
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
