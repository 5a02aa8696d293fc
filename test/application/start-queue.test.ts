import { setImmediate as tick } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { StartQueue, type StartSlot, type StartPriority } from '../../src/application/sandboxes/start-queue.ts';
import { neverAborts } from '../../src/ports/abort-signals.ts';

/** Asks for a start slot, and adds the name to `granted` when it is granted. */
function ask(queue: StartQueue, granted: string[], name: string, asked: { owner?: string; priority?: StartPriority; signal?: AbortSignal } = {}): Promise<StartSlot> {
  const { owner = 'me', priority = 'requested', signal = neverAborts } = asked;
  const turn = queue.take(owner, priority, signal);
  turn.then(() => granted.push(name), () => {});
  return turn;
}

/** Releases each start slot as soon as it is granted, and returns the order in which they were granted. */
async function orderOf(turns: readonly Promise<StartSlot>[], first: StartSlot, granted: string[]): Promise<string[]> {
  first.release();
  for (const turn of turns) void turn.then((one) => one.release(), () => {});
  await Promise.allSettled(turns);
  return granted;
}

describe('the start queue', () => {
  test('grants only as many slots at once as configured', async () => {
    const queue = new StartQueue(2);
    const granted: string[] = [];
    const turns = ['a', 'b', 'c', 'd'].map((name) => ask(queue, granted, name));
    const [first] = await Promise.all(turns.slice(0, 2));
    expect(granted).toEqual(['a', 'b']);
    first?.release();
    await turns[2];
    await tick();
    expect(granted).toEqual(['a', 'b', 'c']);
  });

  test('alternates between owners, even if one owner asks for many slots', async () => {
    const queue = new StartQueue(1);
    const granted: string[] = [];
    const first = await queue.take('x', 'requested', neverAborts);
    const turns = ['a1', 'a2', 'a3', 'b1', 'b2', 'c1'].map((name) => ask(queue, granted, name, { owner: name.slice(0, 1) }));
    expect(await orderOf(turns, first, granted)).toEqual(['a1', 'b1', 'c1', 'a2', 'b2', 'a3']);
  });

  test('serves an owner that got a free slot after the others, also if all slots were free since then', async () => {
    const queue = new StartQueue(1);
    (await queue.take('b', 'requested', neverAborts)).release();
    const first = await queue.take('a', 'requested', neverAborts);
    const granted: string[] = [];
    const turns = ['a2', 'b1', 'c1'].map((name) => ask(queue, granted, name, { owner: name.slice(0, 1) }));
    expect(await orderOf(turns, first, granted)).toEqual(['c1', 'b1', 'a2']);
  });

  test('serves interrupted starts first, then requested starts, then pools', async () => {
    const queue = new StartQueue(1);
    const granted: string[] = [];
    const first = await queue.take('x', 'requested', neverAborts);
    const turns = (['pool', 'requested', 'interrupted', 'requested'] as const).map((priority, index) => ask(queue, granted, `${priority}${index}`, { priority, owner: `${index}` }));
    expect(await orderOf(turns, first, granted)).toEqual(['interrupted2', 'requested1', 'requested3', 'pool0']);
  });

  test('rejects a caller that aborts at once, and keeps the other callers', async () => {
    const queue = new StartQueue(1);
    const granted: string[] = [];
    const first = await queue.take('x', 'requested', neverAborts);
    const [one, two] = [new AbortController(), new AbortController()];
    const turns = [ask(queue, granted, 'a', { signal: one.signal }), ask(queue, granted, 'b', { signal: two.signal, owner: 'you' }), ask(queue, granted, 'c')];
    one.abort(new Error('deleted'));
    await expect(turns[0]).rejects.toThrow('deleted');
    two.abort(new Error('deleted too'));
    await expect(turns[1]).rejects.toThrow('deleted too');
    expect(await orderOf(turns, first, granted)).toEqual(['c']);
    await expect(queue.take('me', 'requested', AbortSignal.abort(new Error('late')))).rejects.toThrow('late');
    (await queue.take('me', 'requested', neverAborts)).release();
  });
});
