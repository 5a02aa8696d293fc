import type { Event, EventDraft, EventKind } from '../domain/event.ts';

/** Whose events are wanted. */
export interface EventFilter {
  readonly ownerId: string;
  /** Of this conversation only. */
  readonly conversationId?: string;
  /** Those of this sandbox that belong to no conversation: besides the conversation's, if one is named. */
  readonly sandboxId?: string;
  /** Of these kinds only. */
  readonly kinds?: readonly EventKind[];
}

/** Whom events that were written concern. */
export interface WrittenEvents {
  readonly ownerIds: ReadonlySet<string>;
  readonly conversationIds: ReadonlySet<string>;
  readonly sandboxIds: ReadonlySet<string>;
}

/**
 * The log of what was said and done. Events that go with a change of a record are written in its transaction (see
 * `SandboxStore`, `ConversationStore`); those of a turn are appended here. A reader that goes on from the last `sequence`
 * that it saw misses none and sees none twice: an event becomes visible only after every one before it.
 *
 * Failure: `store_unavailable`; after it, a write may or may not have been made.
 */
export interface EventStore {
  /** Adds the events in their order; all or none. */
  append(events: readonly EventDraft[]): Promise<void>;

  /** The events after the given sequence number (0: from the beginning), oldest first, at most `limit` (1 to 1,000). */
  read(filter: EventFilter, after: number, limit: number): Promise<readonly Event[]>;

  /** The sequence number of the newest event; 0 when there never was one. */
  latest(): Promise<number>;

  /**
   * Calls the listener after events were written through this store object, with those who may read them. It only wakes:
   * what another process writes is seen by reading now and then. Answers with the function that ends it.
   */
  subscribe(listener: (written: WrittenEvents) => void): () => void;

  /** Forgets the events that are older, at most `limit` of them; answers with how many those were. */
  purge(before: number, limit: number): Promise<number>;
}
