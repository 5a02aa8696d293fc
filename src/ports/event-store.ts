import type { Event, EventDraft, EventKind } from '../domain/event.ts';
import type { OwnerScope } from '../domain/principal.ts';

export interface EventFilter {
  /** Null: of all owners. */
  readonly ownerId: OwnerScope;
  /** Only of this conversation. */
  readonly conversationId?: string;
  /** Events of this sandbox itself, which belong to no conversation. With `conversationId`, these are added. */
  readonly sandboxId?: string;
  /** Only of these kinds. */
  readonly kinds?: readonly EventKind[];
}

/** The kinds, owners and conversations of written events, and the sandboxes of those that belong to no conversation. */
export interface WrittenEvents {
  readonly kinds: ReadonlySet<EventKind>;
  readonly ownerIds: ReadonlySet<string>;
  readonly conversationIds: ReadonlySet<string>;
  readonly sandboxIds: ReadonlySet<string>;
}

/**
 * The log of messages and changes. The events of a record's change are written in the same transaction (see `SandboxStore`,
 * `ConversationStore`); those of a turn are appended here. An event becomes visible only after every event before it, so a reader that
 * continues after the last `sequence` it saw misses none and sees none twice.
 *
 * Failure: `store_unavailable`; the write may have been made or not.
 */
export interface EventStore {
  /** Adds the events in their order: all or none. Returns the sequence number of the last; 0 if there are none. */
  append(events: readonly EventDraft[]): Promise<number>;

  /** Returns the events after the given sequence number (0: from the beginning), oldest first, at most `limit` (1 to 1,000). */
  read(filter: EventFilter, after: number, limit: number): Promise<readonly Event[]>;

  /** Returns the sequence number of the newest event; 0 if there never was one. */
  latest(): Promise<number>;

  /**
   * Calls the listener after events were written through this object. This is only a hint: events of another process are found by reading
   * from time to time. Returns the function that unsubscribes.
   */
  subscribe(listener: (written: WrittenEvents) => void): () => void;

  /**
   * Deletes events before the time `before`, in milliseconds since the epoch, oldest first, at most `limit`. Returns how many. Those of a
   * conversation with a turn are left: the process that takes over the turn reads them.
   */
  purge(before: number, limit: number): Promise<number>;
}
