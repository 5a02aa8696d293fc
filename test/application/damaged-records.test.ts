import { expect, test } from 'vitest';
import { Failure } from '../../src/domain/failure.ts';
import { sandboxSpec } from '../../src/domain/sandbox-spec.ts';
import { calm, createRunning } from './world.ts';

test('a sweep leaves the instance of a damaged record alone, and puts an unknown one in quarantine', async () => {
  const { engine, clock, store, reconciler, id } = await createRunning();
  const scan = store.sandboxes.scan.bind(store.sandboxes);
  const findByInstance = store.sandboxes.findByInstance.bind(store.sandboxes);
  store.sandboxes.scan = async (...from) => (await scan(...from)).filter((record) => record.id !== id);
  store.sandboxes.findByInstance = async (instanceId) => {
    if (instanceId !== id) return await findByInstance(instanceId);
    throw new Failure('store_unavailable', { reason: { code: 'damaged' }, retryAfterSeconds: 5 });
  };
  engine.run({ id: 'sb-stray', spec: sandboxSpec({ id: 'stray' }), sessionApiKey: 'k' });
  await reconciler.sweep();
  clock.advance(2000);
  await reconciler.sweep();
  await calm();
  expect([engine.inspect(id).state, engine.inspect('sb-stray').state]).toEqual(['running', 'stopped']);
});
