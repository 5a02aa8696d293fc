import type { EventDraft } from '../../../domain/event.ts';
import { canonicalJson } from '../../../domain/fingerprint.ts';
import type { Clock } from '../../../ports/clock.ts';
import type { EventStore } from '../../../ports/event-store.ts';
import type { MemoryShare } from '../../agents/agent-memory-limit.ts';
import { retryThroughStoreOutage } from '../../timers.ts';

export interface EventWriterDeps {
  readonly eventStore: EventStore;
  readonly clock: Clock;
  /** The sequence number of the newest event before the first that is written. */
  readonly from: number;
  /** Fires when the turn must end. */
  readonly signal: AbortSignal;
  readonly memory: MemoryShare;
}

/** How many events may wait to be written. The agent is held back until there are fewer. */
const maxWaiting = 200;
/** Waiting parts of a message are joined up to this many characters. */
const maxJoined = 16_384;

/** Writes one batch at a time. Repeats a batch while the store is unavailable. After another failure, nothing more is written. */
export class EventWriter {
  readonly #deps: EventWriterDeps;
  /** The sequence number of the last written event. Before the first write, `from`. */
  #last: number;
  #waiting: EventDraft[] = [];
  #writing: Promise<void> | null = null;
  #failure: { readonly error: unknown } | null = null;
  #held = 0;

  constructor(deps: EventWriterDeps) {
    this.#deps = deps;
    this.#last = deps.from;
  }

  add(event: EventDraft): void {
    if (this.#failure !== null) return;
    this.#hold(JSON.stringify(event.data).length);
    const last = this.#waiting.at(-1);
    const joined = last === undefined ? null : joinChunks(last, event);
    if (joined === null) this.#waiting.push(event);
    else this.#waiting[this.#waiting.length - 1] = joined;
    this.#writing ??= this.#write();
  }

  /** Resolves when more can be added. Rejects if a write has failed. */
  async ready(): Promise<void> {
    const isFull = (): boolean => this.#waiting.length >= maxWaiting || (this.#held > 0 && this.#deps.memory.isFull);
    while (isFull() && this.#failure === null) await this.#writing;
    this.#check();
  }

  /** Resolves when everything is written. Rejects if a write has failed. */
  async drained(): Promise<void> {
    await this.#writing;
    this.#check();
  }

  async #write(): Promise<void> {
    try {
      while (this.#waiting.length > 0 && this.#failure === null) {
        const batch = this.#waiting;
        const held = this.#held;
        this.#waiting = [];
        await this.#append(batch);
        this.#hold(-held);
        // Readers get this batch before the next is written.
        await new Promise<void>((resolve) => void setImmediate(resolve));
      }
    } catch (error) {
      this.#failure = { error };
      this.#waiting = [];
      this.#hold(-this.#held);
    } finally {
      this.#writing = null;
    }
  }

  async #append(batch: readonly EventDraft[]): Promise<void> {
    const { eventStore, clock, signal } = this.#deps;
    this.#last = await retryThroughStoreOutage(clock, signal, async (failures) => {
      // A failed write may have been stored.
      const found = failures === 0 ? null : await this.#find(batch);
      return found ?? (await eventStore.append(batch));
    });
  }

  /** Returns the sequence number of the batch's last event in the log, as `append` does; null if the batch was not written. */
  async #find(batch: readonly EventDraft[]): Promise<number | null> {
    const last = batch.at(-1);
    if (last === undefined) return null;
    const { ownerId, conversationId, kind, at } = last;
    const data = canonicalJson(last.data);
    const filter = { ownerId, ...(conversationId !== null && { conversationId }), kinds: [kind] };
    const written = await this.#deps.eventStore.read(filter, this.#last, 1000);
    return written.findLast((event) => event.at === at && canonicalJson(event.data) === data)?.sequence ?? null;
  }

  #hold(bytes: number): void {
    this.#held += bytes;
    this.#deps.memory.add(bytes);
  }

  #check(): void {
    if (this.#failure !== null) throw this.#failure.error;
  }
}

/** Joins two parts of one message. Returns null if they belong to different messages, or are too long together. */
function joinChunks(first: EventDraft, second: EventDraft): EventDraft | null {
  if (first.kind !== 'message_chunk' || second.kind !== 'message_chunk') return null;
  if (first.data.messageId !== second.data.messageId || first.data.text.length + second.data.text.length > maxJoined) return null;
  return { ...first, data: { ...first.data, text: first.data.text + second.data.text } };
}
