import type { Event, EventKind } from '../../domain/event.ts';
import type { Clock } from '../../ports/clock.ts';
import type { EventFilter, EventStore, WrittenEvents } from '../../ports/event-store.ts';

interface FollowDeps {
  readonly store: EventStore;
  readonly readers: Readers;
  readonly clock: Clock;
  /** How often what another process writes is looked for. */
  readonly pollEveryMs: number;
}

/** Events are read, and handed on, at most so many at a time. */
const batchSize = 100;

/**
 * The events after the given one, and then those that come, in order, until the signal fires or the conversation is
 * deleted. The log is read again after the last that was seen: nothing is kept in memory for a reader that is slow.
 */
export async function* follow(deps: FollowDeps, filter: EventFilter, after: number, signal: AbortSignal): AsyncGenerator<readonly Event[], void> {
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
      bell.hush();
      const events = await store.read(withEnd(filter), last, batchSize);
      last = events.at(-1)?.sequence ?? last;
      const wanted = kinds === undefined ? events : events.filter(({ kind }) => kinds.includes(kind));
      if (wanted.length > 0) yield wanted;
      if (conversationId !== null && events.some((event) => event.kind === 'conversation_deleted' && event.conversationId === conversationId)) return;
      if (events.length < batchSize && !signal.aborted) await bell.rung(clock, pollEveryMs);
    }
  } finally {
    leave();
    signal.removeEventListener('abort', ring);
  }
}

/** The end of the conversation is looked for, whatever else is wanted. */
function withEnd(filter: EventFilter): EventFilter {
  const end: EventKind = 'conversation_deleted';
  if (filter.kinds === undefined || filter.conversationId === undefined || filter.kinds.includes(end)) return filter;
  return { ...filter, kinds: [...filter.kinds, end] };
}

/** Remembers that it rang until it is hushed, so that what is written during a read is read next. */
class Bell {
  #rang = false;
  #wake: (() => void) | null = null;

  ring(): void {
    this.#rang = true;
    this.#wake?.();
  }

  hush(): void {
    this.#rang = false;
  }

  /** Answers when it has rung, or after the time. */
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

/** Whom a reader follows. */
export interface ReaderOf {
  readonly ownerId: string;
  readonly conversationId: string | null;
  readonly sandboxId: string | null;
}

/** Somebody who waits for events; looks again when woken. */
interface Reader extends ReaderOf {
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
