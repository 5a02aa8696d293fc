import { expect, test } from 'vitest';
import { sandboxSpec } from '../../src/domain/sandbox-spec.ts';
import { neverAborts } from '../../src/ports/abort-signals.ts';
import type { Write } from './observed.ts';
import { calm, createWorld } from './world.ts';

const spec = sandboxSpec({ id: 'plain', ready: { probe: { kind: 'none' }, withinMs: 10_000 } });
const warm = { ...spec, id: 'warm', pool: { size: 2 } };

/** Returns the sandboxes in the order in which they became RUNNING. */
function inOrder(writes: readonly Write[]): string[] {
  return writes.flatMap(({ from, to }) => (from?.status === 'STARTING' && to.status === 'RUNNING' ? [to.id] : []));
}

test('start slots go to requested starts before pool members', async () => {
  const { engine, store, writes, boot } = createWorld({ specs: [spec, warm], atOnce: 1 });
  const { sandboxes, pool, shutdown } = boot();
  engine.close('start');
  pool.open();
  pool.enqueue();
  await calm();
  const members = (await store.sandboxes.pooled()).map(({ sandbox }) => sandbox.id);
  const { id } = await sandboxes.start('me', { specId: 'plain' });
  await calm();
  engine.open('start');
  await calm();
  const order = inOrder(writes);
  expect(order[1]).toBe(id);
  expect(order.toSorted()).toEqual([...members, id].toSorted());
  await shutdown();
});

test('start slots go first to unfinished starts of an earlier process, then to requests, then to pools', async () => {
  const { engine, store, writes, boot, clock } = createWorld({ specs: [spec, warm], atOnce: 2 });
  const earlier = boot([spec, { ...warm, pool: { size: 1 } }]);
  engine.close('start');
  earlier.pool.open();
  earlier.pool.enqueue();
  const left = await earlier.sandboxes.start('me', { specId: 'plain' });
  await calm();
  const [member] = (await store.sandboxes.pooled()).map(({ sandbox }) => sandbox.id);
  await earlier.shutdown();
  clock.advance(1);
  const { sandboxes, queue, sandboxReconciler, shutdown } = boot([spec]);
  const [one, two] = await Promise.all([0, 1].map(() => queue.take('you', 'requested', neverAborts)));
  const asked = await sandboxes.start('me', { specId: 'plain' });
  await calm();
  for (const id of [member, left.id]) sandboxReconciler.enqueue(id ?? '');
  await calm();
  engine.open('start');
  one?.release();
  await calm();
  expect(inOrder(writes)).toEqual([left.id, asked.id, member]);
  two?.release();
  await shutdown();
});

test('a start that is retried does not overtake the starts of other owners', async () => {
  const { faults, writes, boot } = createWorld({ specs: [spec], atOnce: 1 });
  const { sandboxes, queue, sandboxReconciler, shutdown } = boot();
  faults.plan({ call: 'start', what: 'unavailable', when: 'before' });
  const retried = await sandboxes.start('me', { specId: 'plain' });
  await calm();
  const slot = await queue.take('you', 'requested', neverAborts);
  const other = await sandboxes.start('her', { specId: 'plain' });
  await calm();
  sandboxReconciler.enqueue(retried.id);
  await calm();
  slot.release();
  await calm();
  expect(inOrder(writes)).toEqual([other.id, retried.id]);
  await shutdown();
});
