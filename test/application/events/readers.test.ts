import { setImmediate as tick } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { createInMemoryStore } from '../../../src/adapters/store/sqlite/index.ts';
import { Readers, type ReaderOf } from '../../../src/application/events/event-readers.ts';
import type { EventDraft } from '../../../src/domain/event.ts';

function plan(fields: Partial<EventDraft> = {}): EventDraft {
  return { kind: 'plan', data: { entries: [] }, at: 0, ownerId: 'me', conversationId: 'conv', sandboxId: null, actor: 'agent', reason: null, ...fields } as EventDraft;
}

/** Readers over a store, and by name who was woken, in order. */
function readersOver() {
  const { events } = createInMemoryStore();
  const readers = new Readers(events);
  const woken: string[] = [];
  const add = (name: string, of: Partial<ReaderOf> = {}, onWake: () => void = () => {}) =>
    readers.add({
      ownerId: 'me', conversationId: 'conv', sandboxId: null, ...of,
      wake: () => {
        woken.push(name);
        onWake();
      },
    });
  const write = (...drafts: readonly EventDraft[]) => events.append(drafts.length === 0 ? [plan()] : drafts);
  return { events, readers, woken, add, write };
}

test('a reader is woken once for all that was written at a time, when that is written', async () => {
  const { woken, add, write } = readersOver();
  add('one');
  for (let count = 0; count < 5; count += 1) await write();
  expect(woken).toEqual([]);
  await tick();
  expect(woken).toEqual(['one']);
});

test('those are woken whom it concerns: of the owner, of the conversation, of its sandbox; and no other', async () => {
  const { woken, add, write } = readersOver();
  add('owner', { conversationId: null });
  add('conversation');
  add('sandbox', { conversationId: 'conv-2', sandboxId: 'sb' });
  add('stranger', { ownerId: 'you', conversationId: null });
  const wokenBy = async (draft: EventDraft) => {
    await write(draft);
    await tick();
    return woken.splice(0).toSorted();
  };
  expect(await wokenBy(plan())).toEqual(['conversation', 'owner']);
  expect(await wokenBy(plan({ conversationId: null, sandboxId: 'sb' }))).toEqual(['owner', 'sandbox']);
  expect(await wokenBy(plan({ ownerId: 'you', conversationId: 'conv-3' }))).toEqual(['stranger']);
});

test('a reader that has left is woken no more, also by what was written before it left', async () => {
  const { woken, add, write } = readersOver();
  const leave = add('gone');
  add('there');
  await write();
  leave();
  await tick();
  expect(woken).toEqual(['there']);
});

test('a reader that comes between the write and its wake is woken', async () => {
  const { woken, add, write } = readersOver();
  add('there');
  await write();
  add('new');
  await tick();
  expect(woken).toEqual(['there', 'new']);
});

test('what is written while readers are woken wakes them again', async () => {
  const { woken, add, write } = readersOver();
  let writes = 0;
  add('one', {}, () => {
    if ((writes += 1) === 1) void write();
  });
  await write();
  await tick();
  await tick();
  expect(woken).toEqual(['one', 'one']);
  await write();
  await tick();
  expect(woken).toHaveLength(3);
});

test('a close wakes everybody once more, with a wake under way too, and what is written afterwards wakes nobody', async () => {
  const { readers, woken, add, write } = readersOver();
  const leaves: (() => void)[] = [];
  leaves.push(add('one', {}, () => leaves[0]?.()));
  add('elsewhere', { ownerId: 'you', conversationId: null });
  await write();
  readers.close();
  expect(woken.toSorted()).toEqual(['elsewhere', 'one']);
  await tick();
  expect(woken).toHaveLength(2);
  await write(plan({ ownerId: 'you' }));
  await tick();
  expect(woken).toHaveLength(2);
});
