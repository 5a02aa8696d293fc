import { deepEqual, equal, ok } from 'node:assert/strict';
import type { Event, EventDraft } from '../../src/domain/event.ts';
import type { EventStore } from '../../src/ports/event-store.ts';
import type { ContractCase } from './contract.ts';
import { eventReadingCases } from './event-store-reading.ts';
import { eventRecordCases } from './event-store-records.ts';
import { eventOf, hostileTexts, nextVersion, someConversation, someEvent, someMessage, someTime } from './records.ts';
import { closedCases, type Connections, race, storeCase, type StoreHarness, textsOf } from './store.ts';

/** The contract of every `EventStore`, and of the stores that write events together with their records. */
export function eventStoreContract(harness: StoreHarness): ContractCase[] {
  return [
    ...appendCases(harness),
    ...eventReadingCases(harness),
    ...eventRecordCases(harness),
    ...wakeCases(harness),
    ...purgeCases(harness),
    ...closedCases(harness, {
      append: ({ events }) => events.append([someEvent('one')]),
      read: ({ events }) => events.read({ ownerId: 'ann' }, 0, 1),
      latest: ({ events }) => events.latest(),
      purge: ({ events }) => events.purge(someTime, 1),
    }),
  ];
}

const everyKind: readonly EventDraft[] = [
  eventOf('message', { messageId: 'm', role: 'user', channel: 'answer', text: 'Hello' }, { actor: 'user', userId: 'ann' }),
  eventOf('message_chunk', { messageId: 'm', channel: 'thought', text: 'Hel' }),
  eventOf('tool_call', {
    toolCallId: 't',
    title: 'Edit',
    toolKind: 'edit',
    status: 'in_progress',
    paths: ['/workspace/a'],
    content: [{ type: 'text', text: 'x' }, { type: 'diff', path: '/workspace/a', oldText: null, newText: 'y' }],
  }),
  eventOf('plan', { entries: [{ content: 'first', priority: 'high', status: 'pending' }] }),
  eventOf('usage', { usedTokens: 1, contextTokens: 2, cost: { amount: 0.25, currency: 'EUR' } }),
  eventOf('usage', { usedTokens: 1, contextTokens: 2, cost: null }),
  eventOf('permission_requested', {
    permissionId: 'p',
    toolCallId: 't',
    title: 'Edit?',
    options: [{ optionId: 'o', name: 'Yes', kind: 'allow_once' }],
  }),
  eventOf('permission_answered', { permissionId: 'p', optionId: null }),
  eventOf('turn_started', { messageId: 'm' }, { actor: 'skep' }),
  eventOf('turn_ended', { messageId: 'm', stopReason: 'interrupted' }, { actor: 'runtime', reason: { code: 'vanished' } }),
  eventOf('work_tree_changed', { files: 2, linesAdded: 30, linesRemoved: 4 }),
  eventOf('start_step', { from: null, to: 'WORKING' }, { sandboxId: null }),
  eventOf('setup_script', { executionId: 'exec-1', status: 'running' }),
  eventOf('setup_script', { executionId: null, status: 'failed' }, { reason: { code: 'setup_script_failed', exitCode: null, cause: null } }),
  eventOf('microagents', {
    given: [{ path: 'a.md', trigger: 'deploy' }, { path: 'b.md', trigger: null }], leftOut: [{ path: 'c.md', why: 'too_large' }], leftOutCount: 2,
  }),
  eventOf('execution_changed', { from: 'idle', to: null }),
  eventOf('agent_started', { sessionId: 's', loaded: true }),
  eventOf('sandbox_moved', { from: 'RUNNING', to: 'PAUSED', pauseKind: 'freeze' }, { conversationId: null }),
  eventOf('sandbox_moved', { from: 'RUNNING', to: null, pauseKind: null }, { conversationId: null, sandboxId: null }),
  eventOf('conversation_archived', {}),
  eventOf('conversation_deleted', {}),
];

function appendCases(harness: StoreHarness): ContractCase[] {
  return [
    storeCase(harness, 'returns events of every kind unchanged and in order', async ([{ events }]) => {
      equal(await events.latest(), 0);
      const last = await events.append(everyKind);
      const read = await events.read({ ownerId: 'ann' }, 0, 1000);
      deepEqual(read.map(draftOf), everyKind);
      const sequences = read.map(({ sequence }) => sequence);
      deepEqual(sequences, [...new Set(sequences)].toSorted((a, b) => a - b));
      ok((sequences[0] ?? 0) > 0);
      equal(await events.latest(), sequences.at(-1));
      equal(last, sequences.at(-1));
    }),
    storeCase(harness, 'stores special characters and SQL in texts unchanged', async ([{ events }]) => {
      for (const text of hostileTexts) {
        const place = { ownerId: `owner ${text}`, conversationId: `c ${text}`, sandboxId: `s ${text}`, userId: `user ${text}`, reason: { code: 'noted', text } as const };
        const content = [{ type: 'text', text }] as const;
        const tool = { toolCallId: text, title: text, toolKind: text, status: 'failed', paths: [text], content } as const;
        const drafts = [someEvent(text, place), eventOf('tool_call', tool, place)];
        await events.append(drafts);
        for (const filter of [{}, { conversationId: `c ${text}` }, { conversationId: `c ${text}`, sandboxId: `s ${text}` }]) {
          const read = await events.read({ ownerId: `owner ${text}`, ...filter }, 0, 9);
          deepEqual(read.map(draftOf), drafts);
        }
      }
    }),
    storeCase(harness, 'appends zero or 100 events at once', async ([{ events }]) => {
      equal(await events.append([]), 0);
      equal(await events.latest(), 0);
      const texts = Array.from({ length: 100 }, (_, n) => `text ${n}`);
      await events.append(texts.map((text) => someEvent(text)));
      deepEqual(textsOf(await events.read({ ownerId: 'ann' }, 0, 1000)), texts);
    }),
    storeCase(harness, 'returns each event once and in order to a reader while eight writers append', readWhileOthersWrite),
  ];
}

async function readWhileOthersWrite(connections: Connections): Promise<void> {
  const reader = connections.at(-1)?.events ?? connections[0].events;
  let writing = true;
  const writers = race(connections, 8, async ({ events }, writer) => {
    for (let n = 0; n < 40; n += 1) {
      const place = { conversationId: `c${writer % 2}` };
      await events.append(Array.from({ length: 1 + (n % 3) }, (_, part) => someEvent(`${writer} ${n} ${part}`, place)));
      await new Promise(setImmediate);
    }
  }).finally(() => {
    writing = false;
  });

  const seen: Event[] = [];
  for (let last = false; ; ) {
    const next = await reader.read({ ownerId: 'ann' }, seen.at(-1)?.sequence ?? 0, 7);
    seen.push(...next);
    if (next.length > 0) continue;
    if (last) break;
    last = !writing;
    await new Promise(setImmediate);
  }
  await writers;

  const expected = Array.from({ length: 8 }, (_, writer) =>
    Array.from({ length: 40 }, (_, n) => Array.from({ length: 1 + (n % 3) }, (_, part) => `${writer} ${n} ${part}`)).flat(),
  );
  const texts = textsOf(seen);
  equal(texts.length, expected.flat().length);
  for (const [writer, own] of expected.entries()) deepEqual(texts.filter((text) => text.startsWith(`${writer} `)), own);
  deepEqual(seen, await everything(reader, 1000));
}

function wakeCases(harness: StoreHarness): ContractCase[] {
  return [
    storeCase(harness, 'notifies listeners after the events are readable, with their kinds, owners and conversations, and the sandboxes of those without one', async ([{ events }]) => {
      const woken: unknown[] = [];
      let readable: Promise<readonly Event[]> = Promise.resolve([]);
      const end = events.subscribe(({ kinds, ownerIds, conversationIds, sandboxIds }) => {
        woken.push([[...kinds], [...ownerIds], [...conversationIds], [...sandboxIds]]);
        readable = events.read({ ownerId: 'ann' }, 0, 10);
      });
      await events.append([
        someEvent('one'),
        someEvent('two', { conversationId: 'other', sandboxId: null }),
        someEvent('three', { ownerId: 'bob', conversationId: null, sandboxId: 'bobs' }),
      ]);
      await events.append([]);
      deepEqual(woken, [[['message'], ['ann', 'bob'], ['conversation-1', 'other'], ['bobs']]]);
      deepEqual(textsOf(await readable), ['one', 'two']);
      end();
      end();
      await events.append([someEvent('four')]);
      equal(woken.length, 1);
    }),
    storeCase(harness, 'is not affected by a listener that throws, and notifies the other listeners', async ([{ events }]) => {
      let woken = 0;
      const count = (): void => void (woken += 1);
      events.subscribe(count);
      events.subscribe(() => {
        throw new Error('a listener that fails, as the contract has it');
      });
      const end = events.subscribe(count);
      await events.append([someEvent('one')]);
      equal(woken, 2);
      end();
      await events.append([someEvent('two')]);
      equal(woken, 3);
      deepEqual(textsOf(await events.read({ ownerId: 'ann' }, 0, 9)), ['one', 'two']);
    }),
  ];
}

function purgeCases(harness: StoreHarness): ContractCase[] {
  return [
    storeCase(harness, 'purges the oldest events first, up to the given count', async ([{ events }]) => {
      const ages = [5, 1, 4, 1, 3, 9];
      await events.append(ages.map((at, n) => someEvent(`${n}`, { at })));
      equal(await events.purge(5, 3), 3);
      deepEqual(textsOf(await everything(events, 2)), ['0', '2', '5']);
      equal(await events.purge(5, 3), 1);
      equal(await events.purge(5, 3), 0);
      deepEqual(textsOf(await everything(events, 2)), ['0', '5']);
    }),
    storeCase(harness, 'purges no events of a conversation that has a turn', async ([{ conversations, events }]) => {
      const working = someConversation('c', { turn: someMessage('m') });
      await conversations.insert(working);
      const placed = [{ conversationId: 'c' }, { conversationId: 'idle' }, { conversationId: null }];
      await events.append(placed.map((where, n) => someEvent(`${n}`, { ...where, at: 1 })));
      equal(await events.purge(5, 3), 2);
      deepEqual(textsOf(await everything(events, 2)), ['0']);
      await conversations.replace(nextVersion(working, { turn: null }));
      equal(await events.purge(5, 3), 1);
    }),
    storeCase(harness, 'never reuses a sequence number, even after all events are purged', async ([{ events }], open) => {
      await events.append([someEvent('one'), someEvent('two')]);
      const before = await events.latest();
      equal(await events.purge(someTime + 1, 100), 2);
      equal(await events.latest(), before);
      const [reopened] = harness.traits.durable ? await open.reopen() : open.connections;
      await reopened.events.append([someEvent('three')]);
      const [three] = await reopened.events.read({ ownerId: 'ann' }, before, 9);
      ok((three?.sequence ?? 0) > before);
    }),
  ];
}

function draftOf({ sequence: _sequence, ...draft }: Event): EventDraft {
  return draft;
}

/** Reads all of ann's events, page by page. */
async function everything(events: EventStore, limit: number): Promise<Event[]> {
  const seen: Event[] = [];
  for (;;) {
    const next = await events.read({ ownerId: 'ann' }, seen.at(-1)?.sequence ?? 0, limit);
    if (next.length === 0) return seen;
    seen.push(...next);
  }
}
