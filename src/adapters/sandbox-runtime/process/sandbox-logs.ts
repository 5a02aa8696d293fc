import { watch } from 'node:fs';
import { copyFile, open, stat, truncate } from 'node:fs/promises';
import { Failure } from '../../../domain/failure.ts';
import { raceSignal } from '../../../ports/abort-signals.ts';
import type { LogRequest } from '../../../ports/sandbox-runtime.ts';
import { KeyedMutex } from '../../shared/keyed-mutex.ts';
import { Listeners } from '../../shared/listeners.ts';
import { ignoring } from '../../shared/system-errors.ts';
import { streamOf } from '../../shared/node-streams.ts';
import { sandboxIds } from './data-folder.ts';
import type { Observer } from './observed-sandbox.ts';
import { unavailable, withFailures } from './runtime-failures.ts';
import type { SandboxWatch } from './sandbox-watch.ts';

const cutEveryMs = 1000;
const chunkBytes = 64 * 1024;

/**
 * The logs of sandboxes, to which their commands append. A log that exceeds the limit is moved to `<file>.old`, which it replaces. Output
 * of that moment may be lost. Offsets count from the start of the log when this object was created, so a cut does not change them.
 */
export class SandboxLogs {
  readonly #observer: Observer;
  readonly #limitBytes: number;
  /** Keeps a log from being cut while it is read. */
  readonly #mutex = new KeyedMutex();
  /** The total number of bytes that were moved away, by sandbox. */
  readonly #movedBytes = new Map<string, number>();
  readonly #changes = new Listeners<string>();
  readonly #closing = new AbortController();
  readonly #timer: NodeJS.Timeout;

  constructor(observer: Observer, limitBytes: number) {
    this.#observer = observer;
    this.#limitBytes = limitBytes;
    // If a cut fails, the next round tries again.
    const cutAll = async (): Promise<void> => {
      for (const id of await sandboxIds(observer.layout)) await this.cut(id);
    };
    this.#timer = setInterval(() => void cutAll().catch(() => {}), cutEveryMs).unref();
  }

  /** Moves the log of a sandbox away if it exceeds the limit. */
  cut(id: string): Promise<void> {
    const { log } = this.#observer.layout.sandbox(id);
    return this.#mutex.runExclusive(id, async () => {
      if ((await sizeOf(log)) <= this.#limitBytes) return;
      await copyFile(log, `${log}.old`);
      await truncate(log, 0);
      this.#movedBytes.set(id, (this.#movedBytes.get(id) ?? 0) + (await sizeOf(`${log}.old`)));
    });
  }

  /** Reads the log of a sandbox. `runs` reports the ends of runs. */
  async read(
    id: string, { tailBytes = Infinity, follow = false }: LogRequest, runs: SandboxWatch, signal: AbortSignal,
  ): Promise<ReadableStream<Uint8Array>> {
    signal.throwIfAborted();
    const { record, live } = await this.#observer.observe(id);
    if (record === null) throw new Failure('sandbox_not_found', { id });
    const { oldest, end } = await this.#mutex.runExclusive(id, () => this.#extent(id));
    signal.throwIfAborted();
    const from = Math.max(oldest, end - tailBytes);
    return streamOf(AbortSignal.any([signal, this.#closing.signal]), (ended) =>
      follow && live !== null ? this.#follow(id, from, live.number, runs, ended) : this.#readUpTo(id, from, end, ended));
  }

  /** Wakes the readers of the log after a step of the sandbox. */
  changed(id: string): void {
    this.#changes.notify(id);
  }

  close(): void {
    clearInterval(this.#timer);
    this.#closing.abort(unavailable({ code: 'closed' }));
  }

  async *#follow(id: string, from: number, run: number, runs: SandboxWatch, signal: AbortSignal): AsyncGenerator<Uint8Array, void> {
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
      at = yield* this.#readUpTo(id, at, Infinity, signal);
      if (isOver) return;
      // After the end of the run, reads once more for its last output.
      isOver = await withFailures(async () => (await this.#observer.observe(id)).live?.number !== run);
      if (!isOver) await raceSignal(woken.promise, signal);
    }
  }

  /** Yields the log between two offsets. Returns the offset that it has reached. */
  async *#readUpTo(id: string, from: number, end: number, signal: AbortSignal): AsyncGenerator<Uint8Array, number> {
    for (let at = from; ; ) {
      const next = await withFailures(() => this.#mutex.runExclusive(id, () => this.#next(id, at, end)));
      signal.throwIfAborted();
      at = next.end;
      if (next.chunk.length === 0) return at;
      yield next.chunk;
    }
  }

  /** Returns the bytes at the offset, or the oldest later ones if those are gone, and the offset after them. Can be empty. */
  async #next(id: string, at: number, limit: number): Promise<{ readonly chunk: Uint8Array; readonly end: number }> {
    const { log } = this.#observer.layout.sandbox(id);
    const { oldest, moved, end } = await this.#extent(id);
    // If the offset is beyond the end, another process with the same folder has cut the log.
    const from = at > end ? moved : Math.max(at, oldest);
    const [file, start, stop] = from < moved ? [`${log}.old`, oldest, moved] : [log, moved, end];
    const maxBytes = Math.min(chunkBytes, stop - from, limit - from);
    const chunk = maxBytes > 0 ? await readAt(file, from - start, maxBytes) : empty;
    return { chunk, end: from + chunk.length };
  }

  /** Returns the offsets of the kept output. `moved` is the start of the log file itself. */
  async #extent(id: string): Promise<{ readonly oldest: number; readonly moved: number; readonly end: number }> {
    const { log } = this.#observer.layout.sandbox(id);
    const moved = this.#movedBytes.get(id) ?? 0;
    return { oldest: moved - (await sizeOf(`${log}.old`)), moved, end: moved + (await sizeOf(log)) };
  }
}

const empty = new Uint8Array();

async function sizeOf(file: string): Promise<number> {
  return (await stat(file).catch(ignoring('ENOENT')))?.size ?? 0;
}

/** Returns the bytes of a file at the position. Empty if the file does not exist. */
async function readAt(file: string, position: number, maxBytes: number): Promise<Uint8Array> {
  await using handle = await open(file, 'r').catch(ignoring('ENOENT'));
  if (handle === null) return empty;
  const { buffer, bytesRead } = await handle.read({ position, buffer: Buffer.alloc(maxBytes) });
  return buffer.subarray(0, bytesRead);
}
