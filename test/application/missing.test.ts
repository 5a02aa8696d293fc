import { expect, test } from 'vitest';
import { codeOf } from './code-of.ts';
import { calm, createRunning } from './world.ts';

/** A sandbox that is MISSING because Skep talks to another engine. */
async function missing() {
  const world = await createRunning();
  const switchEngine = async () => {
    world.engine.switchEngine();
    await world.sweeper.sweep();
    await calm();
  };
  await switchEngine();
  expect(await world.sandboxes.get('me', world.id)).toMatchObject({ status: 'MISSING', statusReason: { code: 'vanished' } });
  return { ...world, switchEngine };
}

test('a MISSING sandbox resumes with its files if the runtime has it again, but never by itself', async () => {
  const { sandboxes, engine, id, switchEngine } = await missing();
  expect(await codeOf(sandboxes.resume('me', id))).toBe('sandbox_not_paused');
  await switchEngine();
  expect(await sandboxes.get('me', id)).toMatchObject({ status: 'MISSING' });
  expect(engine.inspect(id).state).toBe('stopped');
  expect(await sandboxes.resume('me', id)).toMatchObject({ status: 'RUNNING', statusReason: { code: 'processes_restarted' }, pausedBy: null });
  expect(engine.calls.start).toBe(1);
});

test('a MISSING sandbox becomes ERROR if the runtime refuses its resume, and can be resumed later', async () => {
  const { sandboxes, engine, faults, id, switchEngine } = await missing();
  await switchEngine();
  faults.plan({ call: 'resume', what: 'unavailable', when: 'before' });
  expect(await codeOf(sandboxes.resume('me', id))).toBe('runtime_unavailable');
  expect(await sandboxes.get('me', id)).toMatchObject({ status: 'ERROR', statusReason: { code: 'vanished' }, pausedBy: null, pauseKind: null });
  expect(engine.inspect(id).state).toBe('stopped');
  expect(await sandboxes.resume('me', id)).toMatchObject({ status: 'RUNNING' });
});
