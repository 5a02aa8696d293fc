import { expect, test } from 'vitest';
import { explained } from '../../src/domain/reason.ts';
import { Failure } from '../../src/domain/failure.ts';
import { sandboxSpec } from '../../src/domain/sandbox-spec.ts';
import { codeOf } from './code-of.ts';
import { calm, createWorld } from './world.ts';

const plain = sandboxSpec({ id: 'plain', ready: { probe: { kind: 'none' }, withinMs: 10_000 } });
const probed = sandboxSpec({ id: 'probed', ports: [{ name: 'HTTP', port: 80 }], ready: { probe: { kind: 'tcp', port: 80 }, withinMs: 10_000 } });

/** A process that starts one sandbox at a time. */
async function alone() {
  const world = createWorld({ specs: [plain, probed], atOnce: 1 });
  const skep = world.boot();
  await skep.sweeper.start();
  const start = async (specId = 'plain') => {
    const { id } = await skep.sandboxes.start('me', { specId });
    await calm();
    return id;
  };
  const statusOf = async (id: string) => (await skep.sandboxes.get('me', id)).status;
  return { ...world, ...skep, start, statusOf };
}

test('a crash during a start is noticed before the wait for readiness', async () => {
  const { engine, runtime, start, sandboxes } = await alone();
  engine.close('ready');
  const run = runtime.start.bind(runtime);
  runtime.start = async (launch, ...rest) => {
    const fact = await run(launch, ...rest);
    engine.crash(launch.id);
    await calm();
    return fact;
  };
  const id = await start('probed');
  await calm();
  expect(await sandboxes.get('me', id)).toMatchObject({ status: 'ERROR', statusReason: { code: 'process_exited', exitCode: 3 } });
});

test('a freeze without effect is not repeated at once, but again in a later sweep', async () => {
  const { clock, engine, runtime, sweeper, start, sandboxes, statusOf } = await alone();
  const id = await start();
  await sandboxes.pause('me', id, 'freeze');
  const { instanceId, spec, sessionApiKey } = await sandboxes.get('me', id);
  engine.run({ id: instanceId, spec, sessionApiKey });
  const freeze = runtime.freeze.bind(runtime);
  let freezes = 0;
  runtime.freeze = async (instance) => ((freezes += 1) <= 50 ? engine.inspect(instance) : await freeze(instance));
  await sweeper.sweep();
  await calm();
  expect(freezes).toBeGreaterThan(0);
  expect(freezes).toBeLessThan(10);
  freezes = 50;
  clock.advance(60_000);
  await sweeper.sweep();
  await calm();
  expect([await statusOf(id), engine.inspect(id).state]).toEqual(['PAUSED', 'frozen']);
});

test('a refused pause fails for the caller, even if the sandbox is reconciled again after it', async () => {
  const { runtime, sandboxReconciler, start, sandboxes, statusOf } = await alone();
  const id = await start();
  runtime.freeze = async () => {
    sandboxReconciler.enqueue(id);
    throw new Failure('runtime_unavailable', { runtime: 'scripted', reason: explained('no'), retryAfterSeconds: 1 });
  };
  expect(await codeOf(sandboxes.pause('me', id, 'freeze'))).toBe('runtime_unavailable');
  expect(await statusOf(id)).toBe('RUNNING');
});

test('a start slot is released if the runtime does not answer right after it was taken', async () => {
  const { faults, start, statusOf } = await alone();
  faults.plan({ call: 'inspect', what: 'unavailable', when: 'before', skip: 1 });
  const first = await start();
  expect(await statusOf(first)).toBe('STARTING');
  expect(await statusOf(await start())).toBe('RUNNING');
});

test('a start slot is released if the container runs already and only readiness is missing', async () => {
  const { engine, start, sandboxes, statusOf } = await alone();
  const id = await start('probed');
  await sandboxes.pause('me', id, 'stop');
  const { instanceId, spec, sessionApiKey } = await sandboxes.get('me', id);
  engine.run({ id: instanceId, spec, sessionApiKey });
  engine.close('ready');
  const resumed = sandboxes.resume('me', id);
  await calm();
  expect(await statusOf(id)).toBe('RESUMING');
  expect(await statusOf(await start())).toBe('RUNNING');
  engine.open('ready');
  expect(await resumed).toMatchObject({ status: 'RUNNING' });
});

test('a record with a wrong form does not stop the sweep of the others', async () => {
  const { engine, logged, sweeper, start, statusOf, store } = await alone();
  const [wrong = '', other = ''] = [await start(), await start()].toSorted();
  const record = await store.sandboxes.find(wrong);
  if (record === null) throw new Error('no record');
  const spec = { ...record.spec, ports: null as never };
  expect(await store.sandboxes.replace({ ...record, spec, version: record.version + 1 })).toEqual({ kind: 'replaced' });
  engine.vanish(other);
  await sweeper.sweep();
  await calm();
  expect(await statusOf(other)).toBe('MISSING');
  expect(logged).toContain('a sweep left out a sandbox; its record may have a wrong form');
});
