import type { Event, EventKind } from '../../domain/event.ts';
import { type Page, pageOf } from '../../domain/page.ts';
import { type Caller, scopeOf } from '../../domain/principal.ts';
import { onAbort } from '../../ports/abort-signals.ts';
import type { Clock } from '../../ports/clock.ts';
import type { EventFilter, EventStore, WrittenEvents } from '../../ports/event-store.ts';
import type { CoreDeps } from '../use-cases.ts';
import { getVisibleConversation } from '../conversations/conversation-records.ts';
import { purgeInBatches } from '../purge-in-batches.ts';
import { waitAtMost } from '../timers.ts';

/** How long events are kept, if nothing else is configured: 30 days. */
export const defaultKeepEventsForMs = 30 * 86_400_000;

export interface EventsDeps extends Pick<CoreDeps, 'store' | 'clock'> {
  /** How long events are kept, in milliseconds. */
  readonly keepForMs: number;
}

export interface EventsWanted {
  /** Only events of this conversation and its sandbox. */
  readonly conversationId?: string;
  /** Only events of this sandbox, without events of its conversations. Not together with `conversationId`. */
  readonly sandboxId?: string | undefined;
  readonly kinds?: readonly EventKind[] | undefined;
}

/** Events, oldest first. `next` is the sequence number after which the next page begins. */
export type EventPage = Page<Event, number>;

const purgeBatchSize = 1000;

/** The use cases of the event log. Events outside the scope of the caller are left out. */
export class Events {
  readonly #deps: EventsDeps;
  readonly #closing = new AbortController();

  constructor(deps: EventsDeps) {
    this.#deps = deps;
  }

  /** Returns at most `limit` (1 to 100) events after the number. Throws `conversation_not_found` and `store_unavailable`. */
  async page(caller: Caller | null, wanted: EventsWanted, after: number, limit: number): Promise<EventPage> {
    const events = await this.#deps.store.events.read(await this.#filter(caller, wanted), after, limit + 1);
    return pageOf(events, limit, ({ sequence }) => sequence);
  }

  async latest(): Promise<number> {
    return await this.#deps.store.events.latest();
  }

  /**
   * Yields the events after the given one (`latest`: only new ones) in batches, in order, each once, until the signal fires, the
   * conversation is deleted or Skep closes. The first batch comes at once and is empty: it shows that the request is accepted.
   * Nothing is kept in memory for a slow reader. Failures before the first batch: `conversation_not_found`, `store_unavailable`;
   * later: `store_unavailable`.
   */
  async *follow(
    caller: Caller | null,
    wanted: EventsWanted,
    after: number | 'latest',
    signal: AbortSignal,
  ): AsyncGenerator<readonly Event[], void> {
    const { store, clock } = this.#deps;
    const filter = await this.#filter(caller, wanted);
    const from = after === 'latest' ? await this.latest() : after;
    yield [];
    yield* follow({ eventStore: store.events, clock }, filter, from, AbortSignal.any([signal, this.#closing.signal]));
  }

  /** Deletes a bounded number of events that are older than `keepForMs`. Must be called from time to time. */
  async purge(): Promise<void> {
    const { store, clock, keepForMs } = this.#deps;
    const before = clock.now() - keepForMs;
    await purgeInBatches(this.#closing.signal, async () => (await store.events.purge(before, purgeBatchSize)) === purgeBatchSize);
  }

  /** Ends every follower. Idempotent. */
  close(): void {
    this.#closing.abort();
  }

  async #filter(caller: Caller | null, { conversationId, sandboxId: asked, kinds }: EventsWanted): Promise<EventFilter> {
    const some = kinds === undefined || kinds.length === 0 ? {} : { kinds };
    if (conversationId === undefined) return { ownerId: scopeOf(caller), ...(asked !== undefined && { sandboxId: asked }), ...some };
    const { ownerId, sandboxId } = await getVisibleConversation(this.#deps.store, caller, conversationId);
    return { ownerId, conversationId, sandboxId, ...some };
  }
}

const pollEveryMs = 5000;

const batchSize = 100;

/** Reads the log after the last event that it yielded, so nothing is kept in memory for a slow reader. */
export async function* follow(
  { eventStore, clock }: { readonly eventStore: EventStore; readonly clock: Clock },
  filter: EventFilter,
  after: number,
  signal: AbortSignal,
): AsyncGenerator<readonly Event[], void> {
  const { kinds, conversationId } = filter;
  const read = withEnd(filter);
  let woken = Promise.withResolvers<void>();
  // Wakes after the present work of the event loop, so several writes in it cause one read.
  const wake = (): void => void setImmediate(woken.resolve);
  using ends = new DisposableStack();
  ends.defer(eventStore.subscribe((written) => concerns(written, read) && wake()));
  ends.use(onAbort(signal, wake));
  let last = after;
  while (!signal.aborted) {
    // Events that are written during this read wake the next one.
    woken = Promise.withResolvers();
    const events = await eventStore.read(read, last, batchSize);
    if (signal.aborted) return;
    last = events.at(-1)?.sequence ?? last;
    const wanted = kinds === undefined ? events : events.filter(({ kind }) => kinds.includes(kind));
    if (wanted.length > 0) yield wanted;
    const isOver = events.some((event) => event.kind === 'conversation_deleted' && event.conversationId === conversationId);
    if (isOver) return;
    if (events.length < batchSize && !signal.aborted) await waitAtMost(clock, pollEveryMs, woken.promise);
  }
}

/** Returns true if the written events may match the filter. A reader is not woken for other conversations or other kinds only. */
function concerns(written: WrittenEvents, { ownerId, conversationId, sandboxId, kinds }: EventFilter): boolean {
  const { ownerIds, conversationIds, sandboxIds } = written;
  if (kinds !== undefined && !kinds.some((kind) => written.kinds.has(kind))) return false;
  if (conversationId === undefined) return ownerId === null || ownerIds.has(ownerId);
  return conversationIds.has(conversationId) || (sandboxId !== undefined && sandboxIds.has(sandboxId));
}

function withEnd(filter: EventFilter): EventFilter {
  const end: EventKind = 'conversation_deleted';
  if (filter.kinds === undefined || filter.conversationId === undefined || filter.kinds.includes(end)) return filter;
  return { ...filter, kinds: [...filter.kinds, end] };
}
