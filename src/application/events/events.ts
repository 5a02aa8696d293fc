import type { Event, EventKind } from '../../domain/event.ts';
import { Failure } from '../../domain/failure.ts';
import type { Clock } from '../../ports/clock.ts';
import type { ConversationStore } from '../../ports/conversation-store.ts';
import type { EventFilter, EventStore } from '../../ports/event-store.ts';
import { follow, Readers } from './follow-events.ts';

/** How long events are kept, if nothing else is configured: 30 days. */
export const defaultKeepEventsForMs = 30 * 86_400_000;

/** How often events that are older are removed. */
export const purgeEventsEveryMs = 3_600_000;

export interface EventsDeps {
  readonly store: EventStore;
  readonly conversations: ConversationStore;
  readonly clock: Clock;
  /** How often followers look for what another process wrote. Default: 5 s. */
  readonly pollEveryMs?: number;
  /** How long events are kept, in milliseconds; null is for ever. */
  readonly keepForMs: number | null;
}

export interface EventsWanted {
  /** Only of this conversation and its sandbox. */
  readonly conversationId?: string;
  readonly kinds?: readonly EventKind[];
}

export interface EventPage {
  /** Oldest first. */
  readonly items: readonly Event[];
  /** The sequence number after which the next page begins; null on the last page. */
  readonly next: number | null;
}

const purgeBatchSize = 1000;
const purgeBatches = 20;

/** The use cases of the event log. Each takes the owner; another owner's conversation does not exist for it. */
export class Events {
  readonly #deps: EventsDeps;
  readonly #readers: Readers;
  readonly #closing = new AbortController();

  constructor(deps: EventsDeps) {
    this.#deps = deps;
    this.#readers = new Readers(deps.store);
  }

  /**
   * Returns the events after the given sequence number (0: from the beginning), at most `limit` (1 to 100). Failures:
   * `conversation_not_found`, `store_unavailable`.
   */
  async page(ownerId: string, wanted: EventsWanted, after: number, limit: number): Promise<EventPage> {
    const events = await this.#deps.store.read(await this.#filter(ownerId, wanted), after, limit + 1);
    const items = events.slice(0, limit);
    return { items, next: events.length > limit ? (items.at(-1)?.sequence ?? null) : null };
  }

  /** Returns the sequence number of the newest event of all owners. Failure: `store_unavailable`. */
  async latest(): Promise<number> {
    return await this.#deps.store.latest();
  }

  /**
   * Yields the events after the given one (`latest`: only new ones) in batches, in order, each once, until the signal fires, the
   * conversation is deleted or Skep closes. The first batch comes at once and may be empty: the request is accepted then. For a
   * slow reader nothing is kept in memory. Failures before the first batch: `conversation_not_found`, `store_unavailable`;
   * later: `store_unavailable`.
   */
  async *follow(
    ownerId: string,
    wanted: EventsWanted,
    after: number | 'latest',
    signal: AbortSignal,
  ): AsyncGenerator<readonly Event[], void> {
    const { store, clock, pollEveryMs = 5000 } = this.#deps;
    const filter = await this.#filter(ownerId, wanted);
    const from = after === 'latest' ? await store.latest() : after;
    yield [];
    const ends = AbortSignal.any([signal, this.#closing.signal]);
    yield* follow({ store, readers: this.#readers, clock, pollEveryMs }, filter, from, ends);
  }

  /** Deletes events that are older than they are kept, a bounded number. To be called from time to time. */
  async purge(): Promise<void> {
    const { store, clock, keepForMs } = this.#deps;
    if (keepForMs === null) return;
    for (let batches = 0; batches < purgeBatches && !this.#closing.signal.aborted; batches += 1) {
      if ((await store.purge(clock.now() - keepForMs, purgeBatchSize)) < purgeBatchSize) return;
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
