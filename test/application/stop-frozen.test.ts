import { expect, test } from 'vitest';
import { Failure } from '../../src/domain/failure.ts';
import { codeOf } from './code-of.ts';
import { calm, createRunning } from './world.ts';

async function frozen() {
  const world = await createRunning();
  await world.sandboxes.pause('me', world.id, 'freeze');
  return world;
}

test('a frozen sandbox is stopped on request, with an event of its owner, and keeps its files', async () => {
  const { sandboxes, engine, store, id } = await frozen();
  expect(await sandboxes.pause('me', id, 'stop')).toMatchObject({
    status: 'PAUSED', pauseKind: 'stop', statusReason: { code: 'paused_by_owner' }, pausedBy: { actor: 'user' },
  });
  expect(engine.inspect(id).state).toBe('stopped');
  const { actor, data } = (await store.events.read({ ownerId: 'me' }, 0, 100)).at(-1) ?? {};
  expect({ actor, data }).toEqual({ actor: 'user', data: { from: 'PAUSED', to: 'PAUSED', pauseKind: 'stop' } });
  expect(await sandboxes.resume('me', id)).toMatchObject({ status: 'RUNNING', statusReason: { code: 'processes_restarted' } });
});

test('a stop by the owner replaces who paused a frozen sandbox, and a later freeze changes nothing', async () => {
  const { sandboxes, engine, id } = await frozen();
  await sandboxes.resume('me', id);
  engine.freezeFromOutside(id);
  await calm();
  expect(await sandboxes.get('me', id)).toMatchObject({ pausedBy: { actor: 'runtime' } });
  const stopped = await sandboxes.pause('me', id, 'stop');
  expect(stopped.pausedBy).toEqual({ actor: 'user', reason: { code: 'paused_by_owner' }, version: stopped.version, since: expect.any(Number) });
  expect(await sandboxes.pause('me', id, 'freeze')).toEqual(stopped);
});

/** A sandbox that is being frozen until the engine opens, and is to be stopped meanwhile. */
async function stoppedDuringFreeze() {
  const world = await frozen();
  const { sandboxes, engine, id } = world;
  await sandboxes.resume('me', id);
  engine.close('freeze');
  const freeze = sandboxes.pause('me', id, 'freeze');
  await calm();
  const stop = sandboxes.pause('me', id, 'stop');
  await calm();
  return { ...world, freeze, stop };
}

test('a stop during a freeze stops the sandbox', async () => {
  const { engine, id, freeze, stop } = await stoppedDuringFreeze();
  engine.open('freeze');
  await freeze;
  expect(await stop).toMatchObject({ status: 'PAUSED', pauseKind: 'stop' });
  expect(engine.inspect(id).state).toBe('stopped');
});

test('a stop during a freeze applies even if its server ends meanwhile', async () => {
  const { boot, mortal, engine, clock, id, freeze, stop } = await stoppedDuringFreeze();
  clock.advance(5000);
  expect(await stop).toMatchObject({ status: 'PAUSING', pauseKind: 'stop', pausedBy: { actor: 'user' } });
  await freeze;
  mortal.die();
  engine.open('freeze');
  await calm();
  const next = boot();
  await next.sweeper.start();
  await calm();
  expect(await next.sandboxes.get('me', id)).toMatchObject({ status: 'PAUSED', pauseKind: 'stop' });
  expect(engine.inspect(id).state).toBe('stopped');
});

test('a stop that succeeds at the second attempt of a run succeeds for the caller', async () => {
  const { sandboxes, engine, runtime, sandboxReconciler, id } = await frozen();
  const stop = runtime.stop.bind(runtime);
  Object.assign(runtime, { stop: async () => {
    Object.assign(runtime, { stop });
    sandboxReconciler.enqueue(id);
    throw new Failure('runtime_unavailable', { runtime: 'memory', reason: { code: 'pause_refused' }, retryAfterSeconds: 5 });
  } });
  expect(await sandboxes.pause('me', id, 'stop')).toMatchObject({ status: 'PAUSED', pauseKind: 'stop', statusReason: { code: 'paused_by_owner' } });
  expect(engine.inspect(id).state).toBe('stopped');
});

test('a stop that the runtime refuses fails for the caller, and is retried by a later sweep', async () => {
  const { sandboxes, engine, faults, sweeper, clock, id } = await frozen();
  faults.plan({ call: 'stop', what: 'unavailable', when: 'before' });
  expect(await codeOf(sandboxes.pause('me', id, 'stop'))).toBe('runtime_unavailable');
  expect(engine.inspect(id).state).toBe('frozen');
  clock.advance(1000);
  await sweeper.sweep();
  await calm();
  expect(await sandboxes.get('me', id)).toMatchObject({ status: 'PAUSED', pauseKind: 'stop' });
  expect(engine.inspect(id).state).toBe('stopped');
});
