import { expect, test, vi } from 'vitest';
import { purgeInBatches } from '../../src/application/purge-in-batches.ts';
import { neverAborts } from '../../src/ports/abort-signals.ts';
import { createWorld } from './world.ts';

test('A purge lets other work run between two batches, and ends when nothing is left', async () => {
  let left = 3;
  let turns = 0;
  await purgeInBatches(neverAborts, async () => {
    setImmediate(() => (turns += 1));
    return (left -= 1) > 0;
  });
  expect([left, turns]).toEqual([0, 2]);
});

test('A sweep purges a bounded number of batches, and none after it is closed', async () => {
  const world = createWorld();
  const { sweeper } = world.boot();
  const purge = vi.spyOn(world.store.executions, 'purge').mockResolvedValue(true);
  await sweeper.sweep();
  expect(purge).toHaveBeenCalledTimes(20);
  purge.mockImplementation(async () => {
    await sweeper.close();
    return true;
  });
  await sweeper.sweep();
  expect(purge).toHaveBeenCalledTimes(21);
});
