import { describe, expect, test } from 'vitest';
import { started } from './started.ts';
import { calm } from './world.ts';

describe('the last result of a readiness probe', () => {
  test('is on the record while a start waits, and in the ERROR if the start is too late', async () => {
    const { engine, begin, ids, of, clock, miss, writes } = await started();
    engine.close('ready');
    await begin();
    expect(await of(ids[0])).toMatchObject({ status: 'STARTING', statusReason: null });
    clock.advance(300);
    await calm();
    expect(await of(ids[0])).toMatchObject({ status: 'STARTING', statusReason: { code: 'probe_missed', probe: 'tcp', port: 80, path: null, miss: { kind: 'refused' } } });
    for (let times = 0; times < 1000; times += 1) miss({ kind: 'silent', withinMs: 2000 });
    clock.advance(9699);
    await calm();
    expect(await of(ids[0])).toMatchObject({ status: 'STARTING', statusReason: { code: 'probe_missed', probe: 'tcp', port: 80, path: null, miss: { kind: 'silent', withinMs: 2000 } } });
    miss({ kind: 'answered', status: 503 });
    clock.advance(1);
    await calm();
    expect(await of(ids[0])).toMatchObject({ status: 'ERROR', statusReason: { code: 'not_ready_in_time', withinMs: 10_000, last: { code: 'probe_missed', miss: { kind: 'answered', status: 503 } } } });
    expect(writes).toHaveLength(6);
  });

  test('is written only once while it stays the same', async () => {
    const { engine, begin, clock, miss, writes, sweeper } = await started();
    await sweeper.start();
    engine.close('ready');
    await begin();
    for (let seconds = 0; seconds < 9; seconds += 1) {
      for (let times = 0; times < 10; times += 1) miss({ kind: 'refused' });
      clock.advance(1000);
      await calm();
    }
    expect(writes.map(({ to }) => to.statusReason)).toEqual([null, null, { code: 'probe_missed', probe: 'tcp', port: 80, path: null, miss: { kind: 'refused' } }]);
  });

  test('is in the ERROR that the next process writes', async () => {
    const { engine, begin, ids, of, clock, miss, boot, shutdown } = await started();
    engine.close('ready');
    await begin();
    miss({ kind: 'answered', status: 404 });
    clock.advance(300);
    await calm();
    await shutdown();
    clock.advance(60_000);
    await boot().sweeper.start();
    await calm();
    expect(await of(ids[0])).toMatchObject({ status: 'STARTING', statusReason: { code: 'probe_missed' } });
    miss({ kind: 'answered', status: 404 });
    clock.advance(10_000);
    await calm();
    expect(await of(ids[0])).toMatchObject({ status: 'ERROR', statusReason: { code: 'not_ready_in_time', withinMs: 10_000, last: { code: 'probe_missed', miss: { kind: 'answered', status: 404 } } } });
  });

  test('is removed from the record when the sandbox is ready', async () => {
    const { engine, begin, ids, of, clock } = await started();
    engine.close('ready');
    await begin();
    clock.advance(300);
    await calm();
    engine.open('ready');
    await calm();
    expect(await of(ids[0])).toMatchObject({ status: 'RUNNING', statusReason: null });
  });

  test('is in the ERROR of a resume that is too late', async () => {
    const { begin, of, clock, resumeUnready } = await started();
    await begin();
    const { id, resumed } = await resumeUnready();
    clock.advance(10_000);
    await calm();
    await resumed;
    expect(await of(id)).toMatchObject({ status: 'ERROR', statusReason: { code: 'not_ready_in_time', withinMs: 10_000, last: { code: 'probe_missed', miss: { kind: 'refused' } } } });
  });
});
