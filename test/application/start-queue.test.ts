import { setImmediate as tick } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { StartQueue, type StartSlot, type Urgency } from '../../src/application/sandboxes/start-queue.ts';

const forever = new AbortController().signal;

/** Asks for a turn, and notes under the name when it is granted. */
function ask(queue: StartQueue, granted: string[], name: string, asked: { owner?: string; urgency?: Urgency; signal?: AbortSignal } = {}): Promise<StartSlot> {
  const { owner = 'me', urgency = 'asked', signal = forever } = asked;
  const turn = queue.take(owner, urgency, signal);
  turn.then(() => granted.push(name), () => {});
  return turn;
}

/** Gives each turn back as soon as it is granted, and answers with the order of all. */
async function orderOf(turns: readonly Promise<StartSlot>[], first: StartSlot, granted: string[]): Promise<string[]> {
  first.release();
  for (const turn of turns) void turn.then((one) => one.release(), () => {});
  await Promise.allSettled(turns);
  return granted;
}

describe('the queue of starts', () => {
  test('lets so many run at a time', async () => {
    const queue = new StartQueue(2);
    const granted: string[] = [];
    const turns = ['a', 'b', 'c', 'd'].map((name) => ask(queue, granted, name));
    const [first] = await Promise.all(turns.slice(0, 2));
    expect(granted).toEqual(['a', 'b']);
    first?.release();
    first?.release();
    await turns[2];
    await tick();
    expect(granted).toEqual(['a', 'b', 'c']);
  });

  test('takes owners in turn, however many one asks for', async () => {
    const queue = new StartQueue(1);
    const granted: string[] = [];
    const first = await queue.take('x', 'asked', forever);
    const turns = ['a1', 'a2', 'a3', 'b1', 'b2', 'c1'].map((name) => ask(queue, granted, name, { owner: name.slice(0, 1) }));
    expect(await orderOf(turns, first, granted)).toEqual(['a1', 'b1', 'c1', 'a2', 'b2', 'a3']);
  });

  test('takes what was under way before what is asked for, and pools last', async () => {
    const queue = new StartQueue(1);
    const granted: string[] = [];
    const first = await queue.take('x', 'asked', forever);
    const turns = (['pool', 'asked', 'again', 'asked'] as const).map((urgency, index) => ask(queue, granted, `${urgency}${index}`, { urgency, owner: `${index}` }));
    expect(await orderOf(turns, first, granted)).toEqual(['again2', 'asked1', 'asked3', 'pool0']);
  });

  test('whoever gives up loses its place at once, and nobody else does', async () => {
    const queue = new StartQueue(1);
    const granted: string[] = [];
    const first = await queue.take('x', 'asked', forever);
    const [one, two] = [new AbortController(), new AbortController()];
    const turns = [ask(queue, granted, 'a', { signal: one.signal }), ask(queue, granted, 'b', { signal: two.signal, owner: 'you' }), ask(queue, granted, 'c')];
    one.abort(new Error('deleted'));
    await expect(turns[0]).rejects.toThrow('deleted');
    two.abort(new Error('deleted too'));
    await expect(turns[1]).rejects.toThrow('deleted too');
    expect(await orderOf(turns, first, granted)).toEqual(['c']);
    await expect(queue.take('me', 'asked', AbortSignal.abort(new Error('late')))).rejects.toThrow('late');
    (await queue.take('me', 'asked', forever)).release();
  });
});
