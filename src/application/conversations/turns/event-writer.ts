import type { EventDraft } from '../../../domain/event.ts';
import type { EventStore } from '../../../ports/event-store.ts';

/** What may wait to be written: beyond, the agent is held back. */
const maxWaiting = 200;
/** Parts of a message that wait are joined up to this many characters. */
const maxJoined = 16_384;

/**
 * Writes events in their order, one batch at a time: the first goes at once, and what comes while it is written makes the
 * next batch. After a write that failed nothing more is written, since it can't be known what was.
 */
export class EventWriter {
  readonly #store: EventStore;
  #waiting: EventDraft[] = [];
  #writing: Promise<void> | null = null;
  #failure: { readonly error: unknown } | null = null;

  constructor(store: EventStore) {
    this.#store = store;
  }

  add(event: EventDraft): void {
    const last = this.#waiting.at(-1);
    const joined = last === undefined ? null : join(last, event);
    if (joined === null) this.#waiting.push(event);
    else this.#waiting[this.#waiting.length - 1] = joined;
    this.#writing ??= this.#write();
  }

  /** Answers when there is room for more. Rejects where a write has failed. */
  async room(): Promise<void> {
    while (this.#waiting.length >= maxWaiting && this.#failure === null) await this.#writing;
    this.#check();
  }

  /** Answers when all is written. Rejects where a write has failed. */
  async drained(): Promise<void> {
    await this.#writing;
    this.#check();
  }

  async #write(): Promise<void> {
    try {
      while (this.#waiting.length > 0 && this.#failure === null) {
        const batch = this.#waiting;
        this.#waiting = [];
        await this.#store.append(batch);
        // Readers get it before more is written.
        await new Promise<void>((resolve) => void setImmediate(resolve));
      }
    } catch (error) {
      this.#failure = { error };
    } finally {
      this.#writing = null;
    }
  }

  #check(): void {
    if (this.#failure !== null) throw this.#failure.error;
  }
}

/** Two parts of one message as one, where that is not too long; null otherwise. */
function join(first: EventDraft, second: EventDraft): EventDraft | null {
  if (first.kind !== 'message_chunk' || second.kind !== 'message_chunk') return null;
  if (first.data.messageId !== second.data.messageId || first.data.text.length + second.data.text.length > maxJoined) return null;
  return { ...first, data: { ...first.data, text: first.data.text + second.data.text } };
}
