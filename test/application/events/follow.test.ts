import { expect, test } from 'vitest';
import { createInMemoryStore } from '../../../src/adapters/store/sqlite/index.ts';
import { follow } from '../../../src/application/events/events.ts';
import type { EventDraft } from '../../../src/domain/event.ts';
import type { EventFilter } from '../../../src/ports/event-store.ts';
import { createManualClock } from '../../doubles/memory/index.ts';
import { calm, noteCall } from '../port-calls.ts';

function plan(fields: Partial<EventDraft> = {}): EventDraft {
  return { kind: 'plan', data: { entries: [] }, at: 0, ownerId: 'me', conversationId: 'conv', sandboxId: null, actor: 'agent', reason: null, ...fields } as EventDraft;
}

/** Creates followers of one log, and counts the reads and the events of each. The clock does not advance. */
function log() {
  const { events } = createInMemoryStore();
  const clock = createManualClock();
  const write = async (...drafts: readonly EventDraft[]) => await events.append(drafts.length === 0 ? [plan()] : drafts);
  const followed = async (filter: Partial<EventFilter> = {}, afterRead: () => Promise<void> = async () => {}) => {
    const leave = new AbortController();
    const seen = { reads: 0, events: 0, hasEnded: false };
    const read: typeof events.read = async (...args) => {
      noteCall();
      seen.reads += 1;
      const found = await events.read(...args);
      await afterRead();
      return found;
    };
    const reading = (async () => {
      const deps = { eventStore: { ...events, read }, clock };
      const whole = { ownerId: 'me', ...(filter.ownerId === undefined && { conversationId: 'conv' }), ...filter };
      for await (const batch of follow(deps, whole, 0, leave.signal)) seen.events += batch.length;
      seen.hasEnded = true;
    })();
    await calm();
    return { seen, leave: () => leave.abort(), reading };
  };
  return { write, followed };
}

test('a follower reads once for several writes at a time', async () => {
  const { write, followed } = log();
  const one = await followed();
  for (let count = 0; count < 5; count += 1) await write();
  expect(one.seen).toMatchObject({ reads: 1, events: 0 });
  await calm();
  expect(one.seen).toMatchObject({ reads: 2, events: 5 });
  one.leave();
});

test('a write is read only by followers of its owner, conversation or sandbox', async () => {
  const { write, followed } = log();
  const followers = {
    owner: await followed({ ownerId: 'me' }),
    conversation: await followed(),
    sandbox: await followed({ conversationId: 'conv-2', sandboxId: 'sb' }),
    stranger: await followed({ ownerId: 'you' }),
  };
  const readBy = async (draft: EventDraft) => {
    for (const { seen } of Object.values(followers)) seen.reads = 0;
    await write(draft);
    await calm();
    return Object.entries(followers).flatMap(([name, { seen }]) => (seen.reads > 0 ? name : []));
  };
  expect(await readBy(plan())).toEqual(['owner', 'conversation']);
  expect(await readBy(plan({ conversationId: null, sandboxId: 'sb' }))).toEqual(['owner', 'sandbox']);
  expect(await readBy(plan({ ownerId: 'you', conversationId: 'conv-3' }))).toEqual(['stranger']);
  for (const { leave } of Object.values(followers)) leave();
});

test('a write is read only by followers of its kind, and by those that end with it', async () => {
  const { write, followed } = log();
  const moves = await followed({ ownerId: null, kinds: ['sandbox_moved'] });
  const inConversation = await followed({ kinds: ['usage'] });
  await write();
  await calm();
  expect([moves.seen.reads, inConversation.seen.reads]).toEqual([1, 1]);
  await write(plan({ kind: 'sandbox_moved', data: { from: null, to: 'STARTING', pauseKind: null }, conversationId: null }));
  await write(plan({ kind: 'conversation_deleted', data: {} }));
  await calm();
  expect(moves.seen).toMatchObject({ reads: 2, events: 1 });
  expect(inConversation.seen).toMatchObject({ reads: 2, events: 0, hasEnded: true });
  moves.leave();
});

test('a follower that has left reads no more, not even earlier writes', async () => {
  const { write, followed } = log();
  const [gone, there] = [await followed(), await followed()];
  await write();
  gone.leave();
  await gone.reading;
  await write();
  await calm();
  expect([gone.seen.reads, there.seen.events, gone.seen.hasEnded]).toEqual([1, 2, true]);
  there.leave();
});

test('a follower reads again if something is written during a read', async () => {
  const { write, followed } = log();
  let writes = 0;
  const one = await followed({}, async () => {
    if ((writes += 1) <= 2) await write();
  });
  await calm();
  expect(one.seen).toMatchObject({ reads: 3, events: 2 });
  one.leave();
});

test('a follower that leaves during a read gets none of its events', async () => {
  const { write, followed } = log();
  let leave: (() => void) | null = null;
  const one = await followed({}, async () => leave?.());
  leave = one.leave;
  await write();
  await one.reading;
  expect(one.seen).toMatchObject({ reads: 2, events: 0, hasEnded: true });
});
