import { describe, expect, test } from 'vitest';
import { codeOf } from './code-of.ts';
import { started } from './started.ts';
import { calm } from './world.ts';

describe('a start', () => {
  test('tells what is pulled, and neither the pull nor the wait for its turn counts as its time', async () => {
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

  test('that is quick is told of in no word, and writes no more than it must', async () => {
    const { begin, writes } = await started();
    await begin();
    expect(writes.map(({ to }) => [to.status, to.statusReason])).toEqual([['STARTING', null], ['STARTING', null], ['RUNNING', null]]);
  });

  test('of an image that can\'t be had is an ERROR that says so', async () => {
    const { engine, begin, ids, of } = await started();
    engine.refused.add('pulled');
    await begin();
    expect(await of(ids[0])).toMatchObject({ status: 'ERROR', statusReason: { code: 'image_not_found', image: 'node:26' } });
    expect(engine.calls.start).toBe(0);
  });

  test.each(['provide', 'start', 'ready'] as const)('deleted while it waits at %s leaves nothing behind, and lets the next one go on at once', async (gate) => {
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

  test('too late is an ERROR, wherever it hangs after its turn, and its place goes to the next', async () => {
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

  test('that crashes while it is waited for ends at once', async () => {
    const { engine, begin, ids, of, reconciler } = await started();
    await reconciler.start();
    engine.close('ready');
    await begin();
    engine.crash(ids[0] ?? '');
    await calm();
    expect(await of(ids[0])).toMatchObject({ status: 'ERROR', statusReason: { code: 'process_exited', exitCode: 3 } });
  });

  test('that crashes between its start and the wait for it is noticed as well', async () => {
    const { engine, begin, ids, of, reconciler } = await started();
    await reconciler.start();
    engine.close('ready');
    engine.broken.add('pulled');
    await begin();
    expect(await of(ids[0])).toMatchObject({ status: 'ERROR', statusReason: { code: 'process_exited', exitCode: 3 } });
  });

  test('whose engine was restarted meanwhile is run again in its time', async () => {
    const { engine, begin, ids, of, reconciler } = await started();
    engine.close('ready');
    await begin();
    engine.restart();
    await reconciler.sweep();
    await calm();
    engine.open('ready');
    await calm();
    expect(await of(ids[0])).toMatchObject({ status: 'RUNNING' });
    expect(engine.inspect(ids[0] ?? '').state).toBe('running');
  });

  test('is neither lost nor repeated when its process ends: it goes on with the time that it has left', async () => {
    const { engine, begin, ids, of, boot, shutdown, clock } = await started(3);
    engine.close('start');
    await begin();
    await shutdown();
    expect(engine.starting).toBe(0);
    const turns = await Promise.all(ids.map(async (id) => (await of(id))?.startingSince ?? null));
    expect(turns.map((at) => at !== null)).toEqual([true, true, false]);
    clock.advance(6000);
    const next = boot();
    await next.reconciler.start();
    await calm();
    expect(await Promise.all(ids.slice(0, 2).map(async (id) => (await of(id))?.startingSince))).toEqual(turns.slice(0, 2));
    clock.advance(4000);
    await calm();
    expect((await Promise.all(ids.map(of))).map((one) => one?.status)).toEqual(['ERROR', 'ERROR', 'STARTING']);
    engine.open('start');
    await calm();
    expect(await of(ids[2])).toMatchObject({ status: 'RUNNING' });
    expect(engine.list().filter(({ state }) => state === 'running').map(({ id }) => id)).toEqual([ids[2]]);
  });

  test('does not stay STARTING while its runtime does not answer, whichever call fails', async () => {
    for (const call of ['inspect', 'provide', 'start']) {
      const { faults, begin, ids, of, clock, reconciler } = await started();
      await reconciler.start();
      faults.plan(...Array.from({ length: 200 }, () => ({ call, what: 'unavailable' as const, when: 'before' as const })));
      await begin();
      expect(await of(ids[0])).toMatchObject({ status: 'STARTING' });
      for (let seconds = 0; seconds < 12; seconds += 1) {
        clock.advance(1000);
        await calm();
      }
      expect(await of(ids[0]), call).toMatchObject({ status: 'ERROR', statusReason: { code: 'not_ready_in_time', withinMs: 10_000 } });
    }
  });

  test('under an id that was used is that of before, and not possible once it was deleted', async () => {
    const { sandboxes } = await started();
    const id = 'sb-chosen';
    const [one, two] = await Promise.all([sandboxes.startAs('me', id, { specId: null }), sandboxes.startAs('me', id, { specId: null })]);
    expect(two.sessionApiKey).toBe(one.sessionApiKey);
    await sandboxes.delete('me', id);
    expect(await codeOf(sandboxes.startAs('me', id, { specId: null }))).toBe('sandbox_not_found');
  });
});

describe('a resumption', () => {
  test('of a stopped one needs nothing that only its start needed', async () => {
    const { engine, begin, ids, sandboxes } = await started();
    await begin();
    await sandboxes.pause('me', ids[0] ?? '', 'stop');
    engine.refused.add('pulled');
    expect(await sandboxes.resume('me', ids[0] ?? '')).toMatchObject({ status: 'RUNNING' });
  });

  test('that another process carries out, while this one waits for its turn, is a success here too', async () => {
    const { engine, begin, ids, sandboxes, start, boot, clock } = await started();
    await begin();
    const id = ids[0] ?? '';
    await sandboxes.pause('me', id, 'stop');
    engine.close('start');
    await Promise.all([start('you'), start('you')]);
    await calm();
    const resumed = sandboxes.resume('me', id);
    await calm();
    boot().driver.enqueue(id);
    await calm();
    clock.advance(1000);
    expect(await resumed).toMatchObject({ status: 'RUNNING' });
  });

  test('of a stopped one waits its turn; of a frozen one does not', async () => {
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

  test('of a frozen one whose processes ended brings back the files, and says so', async () => {
    const { engine, begin, ids, sandboxes } = await started();
    await begin();
    const id = ids[0] ?? '';
    await sandboxes.pause('me', id, 'freeze');
    engine.restart();
    expect(await sandboxes.resume('me', id)).toMatchObject({ status: 'RUNNING', statusReason: { code: 'processes_restarted' } });
  });

  test('that crashes is an ERROR with the reason', async () => {
    const { engine, begin, ids, sandboxes, of, reconciler } = await started();
    await reconciler.start();
    await begin();
    const id = ids[0] ?? '';
    await sandboxes.pause('me', id, 'stop');
    engine.close('ready');
    const resumed = codeOf(sandboxes.resume('me', id));
    await calm();
    engine.crash(id);
    expect(await resumed).toBe('sandbox_not_paused');
    expect(await of(id)).toMatchObject({ status: 'ERROR', statusReason: { code: 'process_exited', exitCode: 3 } });
  });

  test('that is in ERROR is so again, for the same reason, if the runtime refuses to resume it', async () => {
    const { engine, begin, ids, sandboxes, of, reconciler, faults } = await started();
    await reconciler.start();
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

  test('whose processes fail has a reason that says when they ended, and what they wrote last, without secrets', async () => {
    const { engine, begin, ids, of, reconciler } = await started();
    await reconciler.start();
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
