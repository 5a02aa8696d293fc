import { deepEqual } from 'node:assert/strict';
import { type Event, type EventDraft, type EventKind, eventKinds } from '../../src/domain/event.ts';
import type { EventFilter } from '../../src/ports/event-store.ts';
import type { ContractCase } from './contract.ts';
import { eventOf, someEvent } from './records.ts';
import { storeCase, type StoreHarness } from './store.ts';

/** Reads by owner, subject, kind and position. */
export function eventReadingCases(harness: StoreHarness): ContractCase[] {
  return [
    storeCase(harness, 'returns the events that match the filter, page by page', async ([{ events }]) => {
      const written = await numbered(async (drafts) => void (await events.append(drafts)));
      for (const filter of filters) {
        const expected = written.filter(({ draft }) => belongs(draft, filter)).map(({ sequence }) => sequence);
        for (const limit of [1, 3, 1000]) {
          const seen: number[] = [];
          for (let part: readonly Event[] | null = null; part === null || part.length > 0; ) {
            part = await events.read(filter, seen.at(-1) ?? 0, limit);
            deepEqual(part.length <= limit, true);
            seen.push(...part.map(({ sequence }) => sequence));
          }
          deepEqual(seen, expected, `${JSON.stringify(filter)} by ${limit}`);
        }
      }
    }),
    storeCase(harness, 'returns nothing after the last event, and accepts unknown sequence numbers', async ([{ events }]) => {
      await events.append([someEvent('one'), someEvent('two', { ownerId: 'bob' }), someEvent('three')]);
      const latest = await events.latest();
      deepEqual(await events.read({ ownerId: 'ann' }, latest, 9), []);
      deepEqual(await events.read({ ownerId: 'ann' }, latest + 1000, 9), []);
      deepEqual((await events.read({ ownerId: null }, 0, 9)).map(({ ownerId }) => ownerId), ['ann', 'bob', 'ann']);
      deepEqual((await events.read({ ownerId: 'ann' }, latest - 1, 9)).map(({ sequence }) => sequence), [latest]);
    }),
    storeCase(harness, 'filters by kind, and ignores repeated kinds', async ([{ events }]) => {
      await events.append([someEvent('one'), eventOf('turn_started', { messageId: 'm' }), someEvent('two')]);
      const kindsOf = async (kinds: readonly EventKind[]): Promise<string[]> =>
        (await events.read({ ownerId: 'ann', kinds }, 0, 9)).map(({ kind }) => kind);
      deepEqual(await kindsOf([]), []);
      deepEqual(await kindsOf(['turn_started', 'turn_started']), ['turn_started']);
      deepEqual(await kindsOf(['plan']), []);
      deepEqual(await kindsOf(eventKinds), ['message', 'turn_started', 'message']);
    }),
  ];
}

const places = [
  { conversationId: 'c1', sandboxId: 's1' },
  { conversationId: 'c1', sandboxId: null },
  { conversationId: 'c1', sandboxId: 's2' },
  { conversationId: 'c2', sandboxId: 's1' },
  { conversationId: null, sandboxId: 's1' },
  { conversationId: null, sandboxId: 's2' },
  { conversationId: null, sandboxId: null },
];

const filters: readonly EventFilter[] = [
  {},
  { conversationId: 'c1' },
  { conversationId: 'c2' },
  { conversationId: 'c1', sandboxId: 's1' },
  { conversationId: 'c2', sandboxId: 's2' },
  { conversationId: 'none', sandboxId: 's1' },
  { sandboxId: 's1' },
  { conversationId: 'none' },
].flatMap((where): EventFilter[] =>
  [undefined, ['message'] as const, ['turn_started', 'message_chunk'] as const, eventKinds].flatMap((kinds) =>
    ['ann', 'bob', 'cyd'].map((ownerId) => ({ ownerId, ...where, ...(kinds !== undefined && { kinds }) })),
  ),
);

/** Writes mixed events of two owners and three kinds in every place. Returns each with its expected sequence number. */
async function numbered(
  append: (drafts: readonly EventDraft[]) => Promise<void>,
): Promise<readonly { readonly draft: EventDraft; readonly sequence: number }[]> {
  const drafts = ['ann', 'bob', 'ann'].flatMap((ownerId) =>
    places.flatMap((place) => [
      someEvent('text', { ownerId, ...place }),
      eventOf('message_chunk', { messageId: 'm', channel: 'answer', text: 'text' }, { ownerId, ...place }),
      eventOf('turn_started', { messageId: 'm' }, { ownerId, ...place }),
    ]),
  );
  const mixed = drafts.map((_, n) => drafts[(n * 25) % drafts.length]).filter((draft) => draft !== undefined);
  await append(mixed);
  // A new log begins with 1, and one append leaves no gap.
  return mixed.map((draft, n) => ({ draft, sequence: n + 1 }));
}

function belongs(event: EventDraft, { ownerId, conversationId, sandboxId, kinds }: EventFilter): boolean {
  if (event.ownerId !== ownerId || (kinds !== undefined && !kinds.includes(event.kind))) return false;
  if (conversationId === undefined && sandboxId === undefined) return true;
  if (event.conversationId !== null) return event.conversationId === conversationId;
  return event.sandboxId !== null && event.sandboxId === sandboxId;
}
