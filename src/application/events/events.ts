import type { Event, EventKind } from '../../domain/event.ts';
import { Failure } from '../../domain/failure.ts';
import type { Clock } from '../../ports/clock.ts';
import type { ConversationStore } from '../../ports/conversation-store.ts';
import type { EventFilter, EventStore } from '../../ports/event-store.ts';
import { follow } from './follow-events.ts';
import { Readers } from './event-readers.ts';

/** How long events are kept, if nothing else is configured: 30 days. */
export const defaultKeepEventsForMs = 30 * 86_400_000;

/** How often events that are older are removed. */
export const purgeEventsEveryMs = 3_600_000;

export interface EventsDeps {
  readonly store: EventStore;
  readonly conversations: ConversationStore;
  readonly clock: Clock;
  /** How often a follower looks for what another process wrote; 5 s unless it is said. */
  readonly pollEveryMs?: number;
  /** How long events are kept, in milliseconds; null is for ever. */
  readonly keepForMs: number | null;
}

/** Which of an owner's events are wanted. */
export interface EventsWanted {
  /** Of this conversation, and of its sandbox, only. */
  readonly conversationId?: string;
  readonly kinds?: readonly EventKind[];
}

export interface EventPage {
  /** Oldest first. */
  readonly items: readonly Event[];
  /** The sequence number after which the next page begins; null where there is none yet. */
  readonly next: number | null;
}

const purgedAtOnce = 1000;
const purgesASweep = 20;

/** The use cases of the log. Every one takes the owner; another owner's conversation does not exist for it. */
export class Events {
  readonly #deps: EventsDeps;
  readonly #readers: Readers;
  readonly #closing = new AbortController();

  constructor(deps: EventsDeps) {
    this.#deps = deps;
    this.#readers = new Readers(deps.store);
  }

  /** The events after the given sequence number (0: from the beginning), at most `limit` (1 to 100). Failures: `conversation_not_found`, `store_unavailable`. */
  async page(ownerId: string, wanted: EventsWanted, after: number, limit: number): Promise<EventPage> {
    const events = await this.#deps.store.read(await this.#filter(ownerId, wanted), after, limit + 1);
    const items = events.slice(0, limit);
    return { items, next: events.length > limit ? (items.at(-1)?.sequence ?? null) : null };
  }

  /** The sequence number of the newest event, whoever's it is: what comes from now on comes after it. Failure: `store_unavailable`. */
  async latest(): Promise<number> {
    return await this.#deps.store.latest();
  }

  /**
   * Batches of the events after the given one (`latest`: of those that come from now on), in order, each once, until the
   * signal fires, the conversation is deleted or Skep closes. The first batch comes at once and may be empty: it says that
   * the reader is let in. A slow reader holds nothing but its place. Failures, with the first batch:
   * `conversation_not_found`, `store_unavailable`; later: `store_unavailable`.
   */
  async *follow(ownerId: string, wanted: EventsWanted, after: number | 'latest', signal: AbortSignal): AsyncGenerator<readonly Event[], void> {
    const { store, clock, pollEveryMs = 5000 } = this.#deps;
    const filter = await this.#filter(ownerId, wanted);
    const from = after === 'latest' ? await store.latest() : after;
    yield [];
    const ends = AbortSignal.any([signal, this.#closing.signal]);
    yield* follow({ store, readers: this.#readers, clock, pollEveryMs }, filter, from, ends);
  }

  /** Forgets what is older than it is to be kept, a bounded number at a time: to be called now and then. */
  async purge(): Promise<void> {
    const { store, clock, keepForMs } = this.#deps;
    if (keepForMs === null) return;
    for (let bites = 0; bites < purgesASweep && !this.#closing.signal.aborted; bites += 1) {
      if ((await store.purge(clock.now() - keepForMs, purgedAtOnce)) < purgedAtOnce) return;
    }
  }

  /** Ends every follower. Idempotent. */
  close(): void {
    this.#closing.abort();
    this.#readers.close();
  }

  async #filter(ownerId: string, { conversationId, kinds }: EventsWanted): Promise<EventFilter> {
    const some = kinds === undefined || kinds.length === 0 ? {} : { kinds };
    if (conversationId === undefined) return { ownerId, ...some };
    const conversation = await this.#deps.conversations.find(conversationId);
    if (conversation === null || conversation.ownerId !== ownerId || conversation.deletedAt !== null) {
      throw new Failure('conversation_not_found', { id: conversationId });
    }
    return { ownerId, conversationId, sandboxId: conversation.sandboxId, ...some };
  }
}
