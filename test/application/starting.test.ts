import { describe, expect, test } from 'vitest';
import { codeOf } from './code-of.ts';
import { started } from './started.ts';
import { calm } from './world.ts';

describe('a start', () => {
  test('reports the image pull, and its time limit excludes the pull and the wait for a start slot', async () => {
    const { engine, clock, begin, ids, of } = await started(3);
    engine.close('provide');
    engine.close('start');
    await begin();
    clock.advance(1000);
    await calm();
    expect(await of(ids[0])).toMatchObject({ status: 'STARTING', statusReason: { code: 'pulling_image', image: 'node:26' }, startingSince: null });
    clock.advance(60_000);
    await calm();
    expect((await of(ids[0]))?.status).toBe('STARTING');
    engine.open('provide');
    await calm();
    clock.advance(5000);
    await calm();
    expect(engine.starting).toBe(2);
    expect(await of(ids[2])).toMatchObject({ status: 'STARTING', statusReason: { code: 'waiting_for_start_slot' }, startingSince: null });
    engine.open('start');
    await calm();
    for (const id of ids) expect(await of(id)).toMatchObject({ status: 'RUNNING', statusReason: null });
    expect(engine.mostStarting).toBe(2);
  });

  test('that is quick reports no progress, and is written only three times', async () => {
    const { begin, writes } = await started();
    await begin();
    expect(writes.map(({ to }) => [to.status, to.statusReason])).toEqual([['STARTING', null], ['STARTING', null], ['RUNNING', null]]);
  });

  test('of an image that does not exist is an ERROR with `image_not_found`', async () => {
    const { engine, begin, ids, of } = await started();
    engine.refused.add('pulled');
    await begin();
    expect(await of(ids[0])).toMatchObject({ status: 'ERROR', statusReason: { code: 'image_not_found', image: 'node:26' } });
    expect(engine.calls.start).toBe(0);
  });

  test.each(['provide', 'start', 'ready'] as const)('that is deleted while it waits at %s leaves no container, and the next start runs at once', async (gate) => {
    const { engine, begin, ids, of, sandboxes } = await started(3);
    engine.close(gate);
    await begin();
    for (const id of ids) await sandboxes.delete('me', id);
    expect(engine.list()).toEqual([]);
    for (const id of ids) expect(await of(id)).toMatchObject({ removedAt: expect.any(Number) });
    engine.open(gate);
    const next = await sandboxes.start('me', { specId: null });
    await calm();
    expect(await of(next.id)).toMatchObject({ status: 'RUNNING' });
  });

  test('that exceeds its time limit is an ERROR, and its start slot goes to the next start', async () => {
    const { engine, begin, ids, of, clock, start } = await started(2);
    engine.close('start');
    await begin();
    const third = await start('you');
    await calm();
    clock.advance(10_000);
    await calm();
    for (const id of ids) expect(await of(id)).toMatchObject({ status: 'ERROR', statusReason: { code: 'not_ready_in_time', withinMs: 10_000, last: { code: 'starting_command' } } });
    expect(await of(third)).toMatchObject({ status: 'STARTING' });
    engine.open('start');
    await calm();
    expect(await of(third)).toMatchObject({ status: 'RUNNING' });
  });

  test('that crashes during the wait for readiness is an ERROR at once', async () => {
    const { engine, begin, ids, of, sweeper } = await started();
    await sweeper.start();
    engine.close('ready');
    await begin();
    engine.crash(ids[0] ?? '');
    await calm();
    expect(await of(ids[0])).toMatchObject({ status: 'ERROR', statusReason: { code: 'process_exited', exitCode: 3 } });
  });

  test('that crashes before the wait for readiness is an ERROR', async () => {
    const { engine, begin, ids, of, sweeper } = await started();
    await sweeper.start();
    engine.close('ready');
    engine.broken.add('pulled');
    await begin();
    expect(await of(ids[0])).toMatchObject({ status: 'ERROR', statusReason: { code: 'process_exited', exitCode: 3 } });
  });

  test('is run again if the engine restarts during the wait for readiness', async () => {
    const { engine, begin, ids, of, sweeper } = await started();
    engine.close('ready');
    await begin();
    engine.restart();
    await sweeper.sweep();
    await calm();
    engine.open('ready');
    await calm();
    expect(await of(ids[0])).toMatchObject({ status: 'RUNNING' });
    expect(engine.inspect(ids[0] ?? '').state).toBe('running');
  });

  test('continues in the next process, in which its time limit begins anew with its start slot', async () => {
    const { engine, begin, ids, of, boot, shutdown, clock } = await started(3);
    const statuses = async () => (await Promise.all(ids.map(of))).map((one) => one?.status ?? '').toSorted();
    engine.close('start');
    await begin();
    await shutdown();
    expect(engine.starting).toBe(0);
    const turns = await Promise.all(ids.map(async (id) => (await of(id))?.startingSince ?? null));
    expect(turns.map((at) => at !== null)).toEqual([true, true, false]);
    clock.advance(60_000);
    const next = boot();
    await next.sweeper.start();
    await calm();
    clock.advance(9999);
    await calm();
    expect(await statuses()).toEqual(['STARTING', 'STARTING', 'STARTING']);
    clock.advance(1);
    await calm();
    // The one that waited for a slot has all its time left, also if it had a slot in the first process.
    expect(await statuses()).toEqual(['ERROR', 'ERROR', 'STARTING']);
    clock.advance(9999);
    await calm();
    engine.open('start');
    await calm();
    expect(await statuses()).toEqual(['ERROR', 'ERROR', 'RUNNING']);
    expect(engine.list().filter(({ state }) => state === 'running')).toHaveLength(1);
  });

  test('becomes RUNNING in the next process if its program was ready while no process ran, however long that was', async () => {
    const { engine, begin, ids, of, boot, shutdown, clock } = await started(3);
    engine.close('ready');
    await begin();
    await shutdown();
    engine.open('ready');
    clock.advance(3_600_000);
    await boot().sweeper.start();
    await calm();
    expect((await Promise.all(ids.map(of))).map((one) => one?.status)).toEqual(['RUNNING', 'RUNNING', 'RUNNING']);
  });

  test('is only as late as its time limit says, if the time of the machine was set back before it', async () => {
    const { engine, begin, ids, of, clock } = await started();
    engine.close('ready');
    clock.jump(-3_600_000);
    await begin();
    expect(engine.calls.start).toBe(1);
    clock.advance(9999);
    await calm();
    expect((await of(ids[0]))?.status).toBe('STARTING');
    clock.advance(1);
    await calm();
    expect(await of(ids[0])).toMatchObject({ status: 'ERROR', statusReason: { code: 'not_ready_in_time' } });
  });

  test('becomes ERROR after its time limit if the runtime does not answer, whichever call fails', async () => {
    for (const call of ['inspect', 'provide', 'start']) {
      const { refuse, begin, ids, of, pass, sweeper } = await started();
      await sweeper.start();
      refuse(call, 200);
      await begin();
      expect(await of(ids[0])).toMatchObject({ status: 'STARTING' });
      await pass(12);
      expect(await of(ids[0]), call).toMatchObject({ status: 'ERROR', statusReason: { code: 'not_ready_in_time', withinMs: 10_000 } });
    }
  });

  test('with an id that exists returns the existing sandbox, and fails after that was deleted', async () => {
    const { sandboxes } = await started();
    const id = 'sb-chosen';
    const [one, two] = await Promise.all([sandboxes.startWithId('me', id, { specId: null }), sandboxes.startWithId('me', id, { specId: null })]);
    expect(two.sessionApiKey).toBe(one.sessionApiKey);
    await sandboxes.delete('me', id);
    expect(await codeOf(sandboxes.startWithId('me', id, { specId: null }))).toBe('sandbox_not_found');
  });
});

describe('a resume', () => {
  test('of a stopped sandbox does not need its image', async () => {
    const { engine, begin, ids, sandboxes } = await started();
    await begin();
    await sandboxes.pause('me', ids[0] ?? '', 'stop');
    engine.refused.add('pulled');
    expect(await sandboxes.resume('me', ids[0] ?? '')).toMatchObject({ status: 'RUNNING' });
  });

  test('succeeds if another process completes it while this one waits for a start slot', async () => {
    const { engine, begin, ids, sandboxes, start, boot, clock } = await started();
    await begin();
    const id = ids[0] ?? '';
    await sandboxes.pause('me', id, 'stop');
    engine.close('start');
    await Promise.all([start('you'), start('you')]);
    await calm();
    const resumed = sandboxes.resume('me', id);
    await calm();
    boot().sandboxReconciler.enqueue(id);
    await calm();
    clock.advance(1000);
    expect(await resumed).toMatchObject({ status: 'RUNNING' });
  });

  test('of a stopped sandbox waits for a start slot, and of a frozen one does not', async () => {
    const { engine, begin, ids, sandboxes, start, of } = await started(2);
    await begin();
    await sandboxes.pause('me', ids[0] ?? '', 'stop');
    await sandboxes.pause('me', ids[1] ?? '', 'freeze');
    engine.close('start');
    await Promise.all([start('you'), start('you')]);
    await calm();
    const stopped = sandboxes.resume('me', ids[0] ?? '');
    expect(await sandboxes.resume('me', ids[1] ?? '')).toMatchObject({ status: 'RUNNING', statusReason: { code: 'processes_continued' } });
    await calm();
    expect(await of(ids[0])).toMatchObject({ status: 'RESUMING', startingSince: null });
    engine.open('start');
    expect(await stopped).toMatchObject({ status: 'RUNNING', statusReason: { code: 'processes_restarted' } });
  });

  test('of a frozen sandbox whose processes ended restarts them, and reports that', async () => {
    const { engine, begin, ids, sandboxes } = await started();
    await begin();
    const id = ids[0] ?? '';
    await sandboxes.pause('me', id, 'freeze');
    engine.restart();
    expect(await sandboxes.resume('me', id)).toMatchObject({ status: 'RUNNING', statusReason: { code: 'processes_restarted' } });
  });

  test('becomes RUNNING in the next process if its program was ready while no process ran, however long that was', async () => {
    const { engine, begin, of, boot, shutdown, clock, resumeUnready } = await started();
    await begin();
    const { id } = await resumeUnready();
    expect(await of(id)).toMatchObject({ status: 'RESUMING' });
    await shutdown();
    engine.open('ready');
    clock.advance(3_600_000);
    await boot().sweeper.start();
    await calm();
    expect(await of(id)).toMatchObject({ status: 'RUNNING', statusReason: { code: 'processes_restarted' } });
  });

  test('that crashes is an ERROR with the reason', async () => {
    const { engine, begin, of, sweeper, resumeUnready } = await started();
    await sweeper.start();
    await begin();
    const { id, resumed } = await resumeUnready();
    engine.crash(id);
    expect(await resumed).toBe('sandbox_not_running');
    expect(await of(id)).toMatchObject({ status: 'ERROR', statusReason: { code: 'process_exited', exitCode: 3 } });
  });

  test('of an ERROR sandbox keeps ERROR and its reason if the runtime refuses the resume', async () => {
    const { engine, begin, ids, sandboxes, of, sweeper, faults } = await started();
    await sweeper.start();
    await begin();
    const id = ids[0] ?? '';
    engine.crash(id);
    await calm();
    const { statusReason } = (await of(id)) ?? {};
    expect(statusReason).toMatchObject({ code: 'process_exited', phase: 'running' });
    faults.plan({ call: 'resume', what: 'unavailable', when: 'before' });
    expect(await codeOf(sandboxes.resume('me', id))).toBe('runtime_unavailable');
    expect(await of(id)).toMatchObject({ status: 'ERROR', statusReason, pausedBy: null, pauseKind: null });
    expect(await sandboxes.resume('me', id)).toMatchObject({ status: 'RUNNING' });
  });

  test('a crash has a reason with its phase and the last output, and secrets are redacted', async () => {
    const { engine, begin, ids, of, sweeper } = await started();
    await sweeper.start();
    await begin();
    const id = ids[0] ?? '';
    const sessionApiKey = (await of(id))?.sessionApiKey ?? '';
    engine.outputs.set(id, `key ${sessionApiKey}, the-key-of-a-model, postgres://app:hunter22@db/shop: no such table`);
    engine.crash(id);
    await calm();
    expect(await of(id)).toMatchObject({
      status: 'ERROR',
      statusReason: { code: 'process_exited', phase: 'running', output: 'key **********, **********, postgres://app:**********@db/shop: no such table' },
    });
  });
});
