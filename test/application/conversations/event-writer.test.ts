import { describe, expect, test } from 'vitest';
import { createInMemoryStore } from '../../../src/adapters/store/sqlite/index.ts';
import { AgentMemory } from '../../../src/application/agents/agent-memory-limit.ts';
import { EventWriter } from '../../../src/application/conversations/turns/event-writer.ts';
import { follow } from '../../../src/application/events/events.ts';
import { Failure } from '../../../src/domain/failure.ts';
import type { EventDraft } from '../../../src/domain/event.ts';
import { neverAborts } from '../../../src/ports/abort-signals.ts';
import { createManualClock } from '../../doubles/memory/index.ts';
import { calm, passSeconds } from '../port-calls.ts';

const share = () => new AgentMemory(2 ** 30, createManualClock()).share();

function call(title: string): EventDraft {
  const data = { toolCallId: title, title, toolKind: 'other', status: 'pending', paths: [], content: [] } as const;
  return { kind: 'tool_call', data, at: 0, ownerId: 'me', conversationId: 'conv', sandboxId: null, actor: 'agent', userId: null, reason: null };
}

function chunk(messageId: string, text: string): EventDraft {
  return { kind: 'message_chunk', data: { messageId, channel: 'answer', text }, at: 0, ownerId: 'me', conversationId: 'conv', sandboxId: null, actor: 'agent', userId: null, reason: null };
}

const titleOf = ({ kind, data }: EventDraft): string => (kind === 'tool_call' ? data.title : kind === 'message_chunk' ? data.text : kind);

/** A writer over a store in which each append waits for the test, and the batches that were written. */
function heldWriter() {
  const { events } = createInMemoryStore();
  const batches: string[][] = [];
  const { promise: never } = Promise.withResolvers<void>();
  const begins = Array.from({ length: 10 }, () => Promise.withResolvers<void>());
  const held: { readonly let: () => void; readonly fail: (error: Error) => void }[] = [];
  const append = async (drafts: readonly EventDraft[]): Promise<number> => {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    batches.push(drafts.map(titleOf));
    held.push({ let: resolve, fail: reject });
    begins[batches.length - 1]?.resolve();
    await promise;
    return await events.append(drafts);
  };
  const writer = new EventWriter({ eventStore: { ...events, append }, clock: createManualClock(), from: 0, signal: neverAborts, memory: share() });
  const log = async () => (await events.read({ ownerId: 'me' }, 0, 1000)).map(titleOf);
  /** Resolves when the batch with this index is being written. */
  const begun = (index: number): Promise<void> => begins[index]?.promise ?? never;
  return { writer, batches, held, begun, log };
}

test('the first event is written at once, later events in one batch, and drained() waits for all', async () => {
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

test('readers get a batch before the next is written', async () => {
  const { events } = createInMemoryStore();
  const order: string[] = [];
  const leave = new AbortController();
  const deps = { eventStore: events, clock: createManualClock() };
  const reading = (async () => {
    for await (const batch of follow(deps, { ownerId: 'me' }, 0, leave.signal)) order.push(`read ${batch.map(titleOf).join(' ')}`);
  })();
  await calm();
  const append = async (drafts: readonly EventDraft[]): Promise<number> => {
    order.push(drafts.map(titleOf).join(' '));
    return await events.append(drafts);
  };
  const writer = new EventWriter({ eventStore: { ...events, append }, clock: createManualClock(), from: 0, signal: neverAborts, memory: share() });
  for (const title of ['a', 'b', 'c']) writer.add(call(title));
  await writer.drained();
  await calm();
  expect(order).toEqual(['a', 'read a', 'b c', 'read b c']);
  leave.abort();
  await reading;
});

test('waiting parts of one message are merged into one event, up to a maximum length', async () => {
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

test('ready() waits for room if many events wait', async () => {
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

test('after a failed write nothing more is written, and all present and later waits fail', async () => {
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

test('a failed batch leaves the batches before it in the log', async () => {
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

/** A writer over a store that refuses `times` writes, before or after they have their effect. */
function refusing(times: number, when: 'before' | 'after', signal = neverAborts) {
  const { events } = createInMemoryStore();
  const clock = createManualClock();
  let left = times;
  const append = async (drafts: readonly EventDraft[]): Promise<number> => {
    const refuses = left > 0;
    left -= 1;
    const last = refuses && when === 'before' ? 0 : await events.append(drafts);
    if (refuses) throw new Failure('store_unavailable', { reason: { code: 'locked' }, retryAfterSeconds: 1 });
    return last;
  };
  const writer = new EventWriter({ eventStore: { ...events, append }, clock, from: 0, signal, memory: share() });
  const pass = (seconds: number) => passSeconds(clock, seconds);
  const titles = async () => (await events.read({ ownerId: 'me' }, 0, 1000)).map(titleOf);
  return { writer, pass, titles };
}

describe('a store that does not answer for a while', () => {
  test.each(['before', 'after'] as const)('loses no event and repeats none if it fails %s the write takes effect', async (when) => {
    const { writer, pass, titles } = refusing(10, when);
    const written = ['a', 'a', 'b', 'a'];
    writer.add(call('a'));
    await calm();
    for (const title of written.slice(1)) writer.add(call(title));
    const drained = writer.drained();
    await pass(60);
    await drained;
    expect(await titles()).toEqual(written);
  });

  test('is given up after two minutes, or five seconds after the turn had to end', async () => {
    const long = refusing(1000, 'before');
    long.writer.add(call('a'));
    const outcome = long.writer.drained().then(() => null, (error: unknown) => error);
    await long.pass(130);
    expect(await outcome).toMatchObject({ code: 'store_unavailable' });
    const ending = new AbortController();
    const ended = refusing(1000, 'before', ending.signal);
    ended.writer.add(call('a'));
    await calm();
    ending.abort();
    const end = ended.writer.drained().then(() => null, (error: unknown) => error);
    await ended.pass(6);
    expect(await end).toMatchObject({ code: 'store_unavailable' });
  });
});
