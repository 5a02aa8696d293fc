import type { Clock } from '../../ports/clock.ts';
import { waitAtMost } from '../timers.ts';
import type { MemoryShare } from './agent-memory-limit.ts';

/** How long after the agent's exit its session may take to read the next chunk. */
const readWithinMs = 5000;

/**
 * `flowing`: the session gets each chunk that it reads.
 * `held`: the next chunk waits, because the record has no turn for it yet.
 * `ended`: there is nothing more, or it can't be read.
 */
type State = 'flowing' | 'held' | 'ended';

/** The standard output of an agent, as its session reads it. Nothing is read ahead: if the session does not read, the agent has to wait. */
export class AgentOutput {
  readonly stream: ReadableStream<Uint8Array>;
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly #memory: MemoryShare;
  #state: State;
  /** Resolves when the output is not held any more. Replaced when it is held again. */
  #released = Promise.withResolvers<void>();
  /** Resolves when the session has handled all chunks that it got. */
  #handled = Promise.withResolvers<void>();
  /** Resolves when the output has ended or is abandoned. */
  readonly #over = Promise.withResolvers<void>();
  #isAbandoned = false;
  /** The number of bytes that the session got, also those of earlier processes. */
  #offset: number;
  #unhandledBytes = 0;

  /** `began` is the offset at which an earlier process began a turn. Then the output is held at first. */
  constructor(stdout: ReadableStream<Uint8Array>, memory: MemoryShare, began: number | null) {
    this.#reader = stdout.getReader();
    this.#memory = memory;
    this.#state = began === null ? 'flowing' : 'held';
    this.#offset = began ?? 0;
    this.stream = new ReadableStream<Uint8Array>(
      { pull: (controller) => this.#read(controller), cancel: (reason) => this.#cancel(reason) },
      { highWaterMark: 0 },
    );
  }

  get hasEnded(): boolean {
    return this.#state === 'ended';
  }

  /** True if nobody reads it any more. Independent of the state: abandoned output can still end. */
  get isAbandoned(): boolean {
    return this.#isAbandoned;
  }

  /** The number of bytes that were handled. A turn that begins now begins here. */
  get offset(): number {
    return this.#offset - this.#unhandledBytes;
  }

  /** Sets how many bytes at the end are not handled, such as an incomplete line. */
  setUnhandled(bytes: number): void {
    this.#unhandledBytes = bytes;
    this.#memory.setOutput('line', bytes);
  }

  /** Holds back all further output. Resolves when the earlier output is handled. */
  async hold(): Promise<void> {
    if (this.#state === 'flowing' && !this.#isAbandoned) {
      this.#state = 'held';
      this.#released = Promise.withResolvers();
    }
    await Promise.race([this.#handled.promise, this.#over.promise]);
  }

  release(): void {
    if (this.#state !== 'held') return;
    this.#state = 'flowing';
    this.#released.resolve();
  }

  /** Called if Skep ends or leaves the agent, or its session ends. The output is never held again. */
  abandon(): void {
    this.#isAbandoned = true;
    this.#memory.close();
    this.release();
    this.#over.resolve();
  }

  /** Called after the agent's exit. A child process may keep the output open, so the session would wait for its end for ever. */
  async endAfterExit(clock: Clock): Promise<void> {
    // Waits while the output is held back, so that nothing is lost.
    do await waitAtMost(clock, readWithinMs, this.#over.promise);
    while (this.#state === 'held' || this.#memory.isHeldBack);
    await this.#reader.cancel().catch(() => {});
  }

  async #read(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
    // A new read means that the previous chunk is handled.
    this.#memory.setOutput('chunk', 0);
    this.#handled.resolve();
    try {
      const { value } = await this.#reader.read();
      do {
        if (this.#state === 'held') await this.#released.promise;
        if (value !== undefined) await this.#memory.waitForRoom(value.length);
        // The output may have been held while this waited for room.
      } while (this.#state === 'held');
      if (value !== undefined) {
        this.#memory.setOutput('chunk', value.length);
        this.#handled = Promise.withResolvers();
        // Throws if the session has left: what it does not get is not counted, so the next process reads it.
        controller.enqueue(value);
        this.#offset += value.length;
        return;
      }
      this.#end();
      controller.close();
    } catch (error) {
      this.#end();
      throw error;
    }
  }

  async #cancel(reason: unknown): Promise<void> {
    this.abandon();
    await this.#reader.cancel(reason);
  }

  #end(): void {
    this.#state = 'ended';
    this.#memory.close();
    this.#over.resolve();
  }
}
