import { expect, test } from 'vitest';
import { codeOf } from './code-of.ts';
import { calm, createRunning } from './world.ts';

/** Two sandboxes of a runtime that stops answering. The docs say what happens to each request. */
async function silent() {
  const world = await createRunning();
  const paused = await world.sandboxes.start('me', { specId: null });
  await calm();
  await world.sandboxes.pause('me', paused.id, 'stop');
  for (const call of ['inspect', 'list', 'provide', 'start', 'freeze', 'stop', 'resume', 'remove']) world.refuse(call, 200);
  const answers = async () => {
    world.faults.planned.length = 0;
    await world.pass(10);
  };
  return { ...world, running: world.id, paused: paused.id, answers };
}

test('a delete while the runtime does not answer hides the sandbox at once and removes it later', async () => {
  const { sandboxes, engine, answers, running } = await silent();
  await sandboxes.delete('me', running);
  expect(await codeOf(sandboxes.get('me', running))).toBe('sandbox_not_found');
  expect(engine.inspect(running).state).toBe('running');
  await answers();
  expect(engine.inspect(running).state).toBe('absent');
});

test('a start is RUNNING if the runtime answers within its time limit, and ERROR otherwise', async () => {
  const { sandboxes, pass, answers } = await silent();
  const late = await sandboxes.start('me', { specId: null });
  await pass(11);
  expect(await sandboxes.get('me', late.id)).toMatchObject({ status: 'ERROR', statusReason: { code: 'not_ready_in_time' } });
  const { id } = await sandboxes.start('me', { specId: null });
  await pass(2);
  expect(await sandboxes.get('me', id)).toMatchObject({ status: 'STARTING' });
  await answers();
  expect(await sandboxes.get('me', id)).toMatchObject({ status: 'RUNNING' });
});

test('pause and resume fail while the runtime does not answer, and only the resume completes later', async () => {
  const { sandboxes, pass, answers, running, paused } = await silent();
  expect(await codeOf(sandboxes.pause('me', running, 'stop'))).toBe('runtime_unavailable');
  expect(await codeOf(sandboxes.resume('me', paused))).toBe('runtime_unavailable');
  await pass(2);
  expect(await sandboxes.get('me', running)).toMatchObject({ status: 'RUNNING' });
  expect(await sandboxes.get('me', paused)).toMatchObject({ status: 'RESUMING' });
  await answers();
  expect([(await sandboxes.get('me', running)).status, (await sandboxes.get('me', paused)).status]).toEqual(['RUNNING', 'RUNNING']);
});

test('a frozen sandbox keeps its processes if the runtime does not answer in time to a resume', async () => {
  const { sandboxes, engine, pass, refuse, faults, id } = await createRunning();
  await sandboxes.pause('me', id, 'freeze');
  for (const call of ['inspect', 'list', 'resume', 'stop'] as const) refuse(call, 200);
  expect(await codeOf(sandboxes.resume('me', id))).toBe('runtime_unavailable');
  await pass(11);
  expect(await sandboxes.get('me', id)).toMatchObject({ status: 'PAUSED', pauseKind: 'freeze', statusReason: { code: 'not_ready_in_time' } });
  faults.planned.length = 0;
  await pass(10);
  expect(engine.inspect(id).state).toBe('frozen');
  expect(await sandboxes.resume('me', id)).toMatchObject({ status: 'RUNNING', statusReason: { code: 'processes_continued' } });
});
