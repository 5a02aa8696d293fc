import { expect, test } from 'vitest';
import { createInMemoryStore } from '../../../src/adapters/store/sqlite/index.ts';
import { EventWriter } from '../../../src/application/conversations/turns/turn-recorder.ts';
import { Readers } from '../../../src/application/events/follow-events.ts';
import type { EventDraft } from '../../../src/domain/event.ts';

function call(title: string): EventDraft {
  const data = { toolCallId: title, title, toolKind: 'other', status: 'pending', paths: [], content: [] } as const;
  return { kind: 'tool_call', data, at: 0, ownerId: 'me', conversationId: 'conv', sandboxId: null, actor: 'agent', reason: null };
}

function chunk(messageId: string, text: string): EventDraft {
  return { kind: 'message_chunk', data: { messageId, channel: 'answer', text }, at: 0, ownerId: 'me', conversationId: 'conv', sandboxId: null, actor: 'agent', reason: null };
}

const titleOf = ({ kind, data }: EventDraft): string => (kind === 'tool_call' ? data.title : kind === 'message_chunk' ? data.text : kind);

/** A writer over a store of which each append waits for the test, and what was written, by batch. */
function heldWriter() {
  const { events } = createInMemoryStore();
  const batches: string[][] = [];
  const { promise: never } = Promise.withResolvers<void>();
  const begins = Array.from({ length: 10 }, () => Promise.withResolvers<void>());
  const held: { readonly let: () => void; readonly fail: (error: Error) => void }[] = [];
  const append = async (drafts: readonly EventDraft[]): Promise<void> => {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    batches.push(drafts.map(titleOf));
    held.push({ let: resolve, fail: reject });
    begins[batches.length - 1]?.resolve();
    await promise;
    await events.append(drafts);
  };
  const writer = new EventWriter({ ...events, append });
  const log = async () => (await events.read({ ownerId: 'me' }, 0, 1000)).map(titleOf);
  /** Resolves when the batch with this index is being written. */
  const begun = (index: number): Promise<void> => begins[index]?.promise ?? never;
  return { writer, batches, held, begun, log };
}

test('the first event is written at once, what comes meanwhile in one batch after it, and all is written when it says so', async () => {
  const { writer, batches, held, begun, log } = heldWriter();
  const order: string[] = [];
  for (const title of ['a', 'b', 'c']) writer.add(call(title));
  expect(batches).toEqual([['a']]);
  const drained = writer.drained().then(() => order.push('drained'));
  held[0]?.let();
  await begun(1);
  writer.add(call('d'));
  expect(batches).toEqual([['a'], ['b', 'c']]);
  held[1]?.let();
  await begun(2);
  order.push('the last batch is held');
  held[2]?.let();
  await drained;
  expect(order).toEqual(['the last batch is held', 'drained']);
  expect(await log()).toEqual(['a', 'b', 'c', 'd']);
  writer.add(call('e'));
  expect(batches.at(-1)).toEqual(['e']);
  held[3]?.let();
  await writer.drained();
  expect(await log()).toEqual(['a', 'b', 'c', 'd', 'e']);
});

test('readers are woken for a batch before the next is written', async () => {
  const { events } = createInMemoryStore();
  const order: string[] = [];
  const readers = new Readers(events);
  readers.add({ ownerId: 'me', conversationId: 'conv', sandboxId: null, wake: () => order.push('woken') });
  const writer = new EventWriter({
    ...events,
    append: async (drafts) => {
      order.push(drafts.map(titleOf).join(' '));
      await events.append(drafts);
    },
  });
  for (const title of ['a', 'b', 'c']) writer.add(call(title));
  await writer.drained();
  expect(order).toEqual(['a', 'woken', 'b c', 'woken']);
  readers.close();
});

test('parts of one message that wait are one event, up to a length; parts of another, and what is no part, stand alone', async () => {
  const { writer, batches, held, begun } = heldWriter();
  writer.add(call('first'));
  for (const event of [chunk('m', 'a'), chunk('m', 'b'), chunk('n', 'c'), call('d'), chunk('n', 'e'), chunk('n', 'x'.repeat(16_383)), chunk('n', 'f')]) writer.add(event);
  const drained = writer.drained();
  held[0]?.let();
  await begun(1);
  expect(batches[1]).toEqual(['ab', 'c', 'd', `e${'x'.repeat(16_383)}`, 'f']);
  held[1]?.let();
  await drained;
});

test('where much waits, whoever adds is held back until there is room', async () => {
  const { writer, held, begun } = heldWriter();
  const order: string[] = [];
  for (let count = 0; count <= 200; count += 1) writer.add(call(`${count}`));
  const room = writer.ready().then(() => order.push('room'));
  held[0]?.let();
  await begun(1);
  order.push('what waited is being written');
  held[1]?.let();
  await room;
  expect(order).toEqual(['what waited is being written', 'room']);
  await writer.drained();
});

test('after a write that failed nothing more is written, and whoever waits or asks afterwards is told', async () => {
  const { writer, batches, held, log } = heldWriter();
  for (let count = 0; count <= 200; count += 1) writer.add(call(`${count}`));
  const outcomes = Promise.allSettled([writer.ready(), writer.drained()]);
  const failure = new Error('the disk is full');
  held[0]?.fail(failure);
  expect(await outcomes).toEqual([{ status: 'rejected', reason: failure }, { status: 'rejected', reason: failure }]);
  writer.add(call('later'));
  await expect(writer.ready()).rejects.toThrow('the disk is full');
  await expect(writer.drained()).rejects.toThrow('the disk is full');
  expect(batches).toEqual([['0']]);
  expect(await log()).toEqual([]);
});

test('a later batch that fails leaves what was written before it', async () => {
  const { writer, batches, held, begun, log } = heldWriter();
  for (const title of ['a', 'b']) writer.add(call(title));
  const outcome = writer.drained().then(() => null, (error: unknown) => error);
  held[0]?.let();
  await begun(1);
  held[1]?.fail(new Error('the disk is full'));
  expect(await outcome).toEqual(new Error('the disk is full'));
  expect(await log()).toEqual(['a']);
  expect(batches).toEqual([['a'], ['b']]);
});
