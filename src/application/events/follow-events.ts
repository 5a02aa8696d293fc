import type { Event, EventKind } from '../../domain/event.ts';
import type { Clock } from '../../ports/clock.ts';
import type { EventFilter, EventStore } from '../../ports/event-store.ts';
import type { Readers } from './event-readers.ts';

export interface FollowDeps {
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
