import type { EventStore, WrittenEvents } from '../../ports/event-store.ts';

/** Whom a reader follows. */
export interface ReaderOf {
  readonly ownerId: string;
  readonly conversationId: string | null;
  readonly sandboxId: string | null;
}

/** Somebody who waits for events; looks again when woken. */
export interface Reader extends ReaderOf {
  wake(): void;
}

/**
 * Wakes the readers whom written events concern, and no other, however many there are. What was written comes first: readers are
 * woken when what goes on at the moment has let go, once for all that it wrote.
 */
export class Readers {
  readonly #groups = new Map<string, Set<Reader>>();
  readonly #concerned = new Set<string>();
  readonly #unsubscribe: () => void;

  constructor(store: EventStore) {
    this.#unsubscribe = store.subscribe((written) => this.#note(written));
  }

  /** Answers with the function that takes the reader out. */
  add(reader: Reader): () => void {
    const keys = keysOf(reader);
    for (const key of keys) this.#groups.set(key, (this.#groups.get(key) ?? new Set()).add(reader));
    return () => {
      for (const key of keys) this.#leave(key, reader);
    };
  }

  close(): void {
    this.#unsubscribe();
    const readers = new Set([...this.#groups.values()].flatMap((group) => [...group]));
    for (const reader of readers) reader.wake();
  }

  #leave(key: string, reader: Reader): void {
    const group = this.#groups.get(key);
    group?.delete(reader);
    if (group?.size === 0) this.#groups.delete(key);
  }

  #note({ ownerIds, conversationIds, sandboxIds }: WrittenEvents): void {
    if (this.#groups.size === 0) return;
    if (this.#concerned.size === 0) setImmediate(() => this.#wake());
    for (const id of ownerIds) this.#concerned.add(`owner ${id}`);
    for (const id of conversationIds) this.#concerned.add(`conversation ${id}`);
    for (const id of sandboxIds) this.#concerned.add(`sandbox ${id}`);
  }

  #wake(): void {
    const keys = [...this.#concerned];
    this.#concerned.clear();
    for (const key of keys) for (const reader of this.#groups.get(key) ?? []) reader.wake();
  }
}

/** A reader of one conversation is not woken for the owner's others. */
function keysOf({ ownerId, conversationId, sandboxId }: ReaderOf): string[] {
  if (conversationId === null) return [`owner ${ownerId}`];
  return sandboxId === null ? [`conversation ${conversationId}`] : [`conversation ${conversationId}`, `sandbox ${sandboxId}`];
}
