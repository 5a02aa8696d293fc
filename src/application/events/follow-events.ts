import type { Event, EventKind } from '../../domain/event.ts';
import type { Clock } from '../../ports/clock.ts';
import type { EventFilter, EventStore, WrittenEvents } from '../../ports/event-store.ts';

interface FollowDeps {
  readonly store: EventStore;
  readonly readers: Readers;
  readonly clock: Clock;
  /** How often to look for what another process wrote. */
  readonly pollEveryMs: number;
}

/** How many events are read and passed on at a time. */
const batchSize = 100;

/**
 * Yields the events after the given one, and then the new ones, in order, until the signal fires or the conversation is deleted.
 * It reads the log after the last event that it yielded, so nothing is kept in memory for a slow reader.
 */
export async function* follow(
  deps: FollowDeps,
  filter: EventFilter,
  after: number,
  signal: AbortSignal,
): AsyncGenerator<readonly Event[], void> {
  const { store, readers, clock, pollEveryMs } = deps;
  const { kinds } = filter;
  const bell = new Bell();
  const ring = (): void => bell.ring();
  const { ownerId, conversationId = null, sandboxId = null } = filter;
  const leave = readers.add({ ownerId, conversationId, sandboxId, wake: ring });
  signal.addEventListener('abort', ring, { once: true });
  let last = after;
  try {
    while (!signal.aborted) {
      bell.reset();
      const events = await store.read(withEnd(filter), last, batchSize);
      last = events.at(-1)?.sequence ?? last;
      const wanted = kinds === undefined ? events : events.filter(({ kind }) => kinds.includes(kind));
      if (wanted.length > 0) yield wanted;
      if (conversationId !== null && events.some((event) => isDeletion(event, conversationId))) return;
      if (events.length < batchSize && !signal.aborted) await bell.rung(clock, pollEveryMs);
    }
  } finally {
    leave();
    signal.removeEventListener('abort', ring);
  }
}

function isDeletion(event: Event, conversationId: string): boolean {
  return event.kind === 'conversation_deleted' && event.conversationId === conversationId;
}

/** Adds the deletion of the conversation to the kinds that are read. */
function withEnd(filter: EventFilter): EventFilter {
  const end: EventKind = 'conversation_deleted';
  if (filter.kinds === undefined || filter.conversationId === undefined || filter.kinds.includes(end)) return filter;
  return { ...filter, kinds: [...filter.kinds, end] };
}

/** Remembers that something was written until it is reset, so that what is written during a read is read next. */
class Bell {
  #rang = false;
  #wake: (() => void) | null = null;

  ring(): void {
    this.#rang = true;
    this.#wake?.();
  }

  reset(): void {
    this.#rang = false;
  }

  /** Resolves when it has rung, or after the time. */
  async rung(clock: Clock, ms: number): Promise<void> {
    if (this.#rang) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#wake = resolve;
    const cancel = clock.after(ms, resolve);
    await promise;
    this.#wake = null;
    cancel();
  }
}

/** What a reader follows. */
export interface ReaderOf {
  readonly ownerId: string;
  readonly conversationId: string | null;
  readonly sandboxId: string | null;
}

/** Waits for events, and looks again when woken. */
interface Reader extends ReaderOf {
  wake(): void;
}

/**
 * Wakes only the readers that written events concern. They are woken after the present work of the event loop, once for everything
 * that it wrote.
 */
export class Readers {
  readonly #groups = new Map<string, Set<Reader>>();
  readonly #concerned = new Set<string>();
  readonly #unsubscribe: () => void;

  constructor(store: EventStore) {
    this.#unsubscribe = store.subscribe((written) => this.#note(written));
  }

  /** Returns the function that removes the reader. */
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
