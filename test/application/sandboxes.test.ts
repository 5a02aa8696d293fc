import { describe, expect, test } from 'vitest';
import { sandboxSpec } from '../../src/domain/sandbox-spec.ts';
import { codeOf } from './code-of.ts';
import { calm, createWorld } from './world.ts';

const slow = sandboxSpec({ id: 'slow', ports: [{ name: 'HTTP', port: 80 }], ready: { probe: { kind: 'http', port: 80, path: '/' }, withinMs: 10_000 } });

async function running(options: Parameters<typeof createWorld>[0] = {}) {
  const world = createWorld(options);
  const skep = world.boot();
  await skep.reconciler.start();
  const { id } = await skep.sandboxes.start('me', { specId: null });
  await calm();
  return { ...world, ...skep, id };
}

describe('a sandbox', () => {
  test('starts, freezes, resumes, stops, resumes, and says which tier holds and what came back', async () => {
    const { sandboxes, engine, id } = await running();
    expect(await sandboxes.get('me', id)).toMatchObject({ status: 'RUNNING', pauseKind: null });
    expect(await sandboxes.pause('me', id, 'freeze')).toMatchObject({ status: 'PAUSED', pauseKind: 'freeze' });
    expect(engine.inspect(id).state).toBe('frozen');
    expect(await sandboxes.resume('me', id)).toMatchObject({ status: 'RUNNING', pauseKind: null, statusReason: { code: 'processes_continued' } });
    expect(await sandboxes.pause('me', id, 'stop')).toMatchObject({ status: 'PAUSED', pauseKind: 'stop' });
    expect(engine.inspect(id).state).toBe('stopped');
    expect(await sandboxes.resume('me', id)).toMatchObject({ status: 'RUNNING', statusReason: { code: 'processes_restarted' } });
  });

  test('pausing what is paused as deep and resuming what runs change nothing', async () => {
    const { sandboxes, id, writes } = await running();
    await sandboxes.pause('me', id, 'stop');
    const before = writes.length;
    for (const kind of ['freeze', 'stop', undefined] as const) {
      expect(await sandboxes.pause('me', id, kind)).toMatchObject({ status: 'PAUSED', pauseKind: 'stop' });
    }
    expect(writes.length).toBe(before);
    await sandboxes.resume('me', id);
    const after = writes.length;
    expect(await sandboxes.resume('me', id)).toMatchObject({ status: 'RUNNING' });
    expect(writes.length).toBe(after);
  });

  test('is frozen by one call, though the runtime tells of the freeze while it is made', async () => {
    const { sandboxes, driver, runtime, id } = await running();
    const freezes: string[] = [];
    const freeze = runtime.freeze.bind(runtime);
    runtime.freeze = async (instanceId) => {
      freezes.push(instanceId);
      const fact = await freeze(instanceId);
      if (freezes.length === 1) driver.enqueue(id);
      return fact;
    };
    expect(await sandboxes.pause('me', id, 'freeze')).toMatchObject({ status: 'PAUSED', pauseKind: 'freeze' });
    expect(freezes).toEqual([id]);
  });

  test('of two pauses at once one moves, both see it PAUSED, and the stop prevails', async () => {
    const { sandboxes, id, writes } = await running();
    const both = await Promise.all([sandboxes.pause('me', id, 'freeze'), sandboxes.pause('me', id, 'stop')]);
    expect(both.map(({ status }) => status)).toEqual(['PAUSED', 'PAUSED']);
    expect(both[1].pauseKind).toBe('stop');
    expect((await sandboxes.get('me', id)).pauseKind).toBe('stop');
    expect(writes.filter(({ to }) => to.status === 'PAUSING')).toHaveLength(1);
  });

  test('a pause and a resumption at once leave it in a state that one of them asked for', async () => {
    const { sandboxes, engine, id } = await running();
    await sandboxes.pause('me', id, 'freeze');
    await Promise.allSettled([sandboxes.resume('me', id), sandboxes.pause('me', id, 'freeze')]);
    await calm();
    const { status } = await sandboxes.get('me', id);
    expect([status, engine.inspect(id).state]).toEqual(status === 'RUNNING' ? ['RUNNING', 'running'] : ['PAUSED', 'frozen']);
  });

  test('is busy for a pause while it starts, and for a resumption', async () => {
    const { sandboxes, engine, id } = await running({ specs: [slow] });
    engine.close('ready');
    const second = await sandboxes.start('me', { specId: 'slow' });
    await calm();
    expect(await sandboxes.get('me', id)).toMatchObject({ status: 'RUNNING' });
    expect(await codeOf(sandboxes.pause('me', second.id, 'freeze'))).toBe('sandbox_busy');
    expect(await codeOf(sandboxes.resume('me', second.id))).toBe('sandbox_busy');
  });

  test('that crashes is an ERROR with the reason; one that vanishes is MISSING', async () => {
    const { sandboxes, engine, reconciler, id } = await running();
    engine.crash(id);
    await calm();
    expect(await sandboxes.get('me', id)).toMatchObject({ status: 'ERROR', statusReason: { code: 'process_exited', exitCode: 3 } });
    const other = await sandboxes.start('me', { specId: null });
    await calm();
    engine.vanish(other.id);
    await reconciler.sweep();
    await calm();
    expect(await sandboxes.get('me', other.id)).toMatchObject({ status: 'MISSING' });
  });

  test('that crashed is run again over its files by a resumption, within the limits; without files it stays an ERROR', async () => {
    const { sandboxes, engine, id } = await running();
    engine.crash(id);
    await calm();
    expect(await sandboxes.resume('me', id)).toMatchObject({ status: 'RUNNING', statusReason: { code: 'processes_restarted' } });
    expect(engine.calls.start).toBe(1);
    engine.crash(id);
    await calm();
    engine.vanish(id);
    expect(await codeOf(sandboxes.resume('me', id))).toBe('sandbox_not_paused');
    expect(await sandboxes.get('me', id)).toMatchObject({ status: 'ERROR', statusReason: { code: 'process_exited' } });
  });

  test('whose runtime refuses a pause runs on, and the caller is told', async () => {
    const { sandboxes, faults, id } = await running();
    faults.plan({ call: 'freeze', what: 'unavailable', when: 'before' });
    expect(await codeOf(sandboxes.pause('me', id, 'freeze'))).toBe('runtime_unavailable');
    expect(await sandboxes.get('me', id)).toMatchObject({ status: 'RUNNING', statusReason: { code: 'failure', failure: 'runtime_unavailable' } });
    expect(await sandboxes.pause('me', id, 'freeze')).toMatchObject({ status: 'PAUSED' });
    faults.plan({ call: 'resume', what: 'unavailable', when: 'before' });
    expect(await codeOf(sandboxes.resume('me', id))).toBe('runtime_unavailable');
    expect(await sandboxes.get('me', id)).toMatchObject({ status: 'PAUSED', pauseKind: 'freeze' });
  });

  test('whose resumption was refused, though it had its effect, is held again, and takes no place of another', async () => {
    const { sandboxes, engine, faults, reconciler, id } = await running({ limits: { running: 1 } });
    await sandboxes.pause('me', id, 'freeze');
    faults.plan({ call: 'resume', what: 'unavailable', when: 'after' });
    expect(await codeOf(sandboxes.resume('me', id))).toBe('runtime_unavailable');
    expect(engine.inspect(id).state).toBe('running');
    const other = await sandboxes.start('me', { specId: null });
    await reconciler.sweep();
    await calm();
    expect([engine.inspect(id).state, engine.inspect(other.id).state]).toEqual(['frozen', 'running']);
    expect(await sandboxes.get('me', id)).toMatchObject({ status: 'PAUSED', pauseKind: 'freeze' });
  });

  test('of another owner does not exist', async () => {
    const { sandboxes, id } = await running();
    for (const call of [sandboxes.get('you', id), sandboxes.pause('you', id, 'freeze'), sandboxes.resume('you', id), sandboxes.delete('you', id)]) {
      expect(await codeOf(call)).toBe('sandbox_not_found');
    }
    expect((await sandboxes.search('you', {}, { after: null, limit: 10 })).items).toEqual([]);
  });

  test('counts against the limits while it runs, and again when it is resumed', async () => {
    const { sandboxes, id } = await running({ limits: { runningPerOwner: 2 } });
    await sandboxes.start('me', { specId: null });
    expect(await codeOf(sandboxes.start('me', { specId: null }))).toBe('sandbox_limit_reached');
    await sandboxes.start('you', { specId: null });
    await sandboxes.pause('me', id, 'freeze');
    await sandboxes.start('me', { specId: null });
    expect(await codeOf(sandboxes.resume('me', id))).toBe('sandbox_limit_reached');
    expect(await sandboxes.get('me', id)).toMatchObject({ status: 'PAUSED' });
  });
});

describe('the reconciler', () => {
  test('stops what no record owns, after a grace', async () => {
    const { engine, reconciler, clock, store } = await running();
    const lookedUp = new Set<string>();
    const findByInstance = store.sandboxes.findByInstance.bind(store.sandboxes);
    store.sandboxes.findByInstance = async (instanceId) => {
      lookedUp.add(instanceId);
      return await findByInstance(instanceId);
    };
    engine.run({ id: 'sb-stray', spec: slow, sessionApiKey: 'k' });
    await reconciler.sweep();
    expect(engine.inspect('sb-stray').state).toBe('running');
    clock.advance(2000);
    await reconciler.sweep();
    await calm();
    expect(engine.inspect('sb-stray').state).toBe('stopped');
    expect([...lookedUp], 'what the scan has found is not asked for one by one').toEqual(['sb-stray']);
  });

  test('gives what it finds without a record the whole grace, also where that was seen before, and was gone since', async () => {
    const { engine, reconciler, clock } = await running();
    const stray = { id: 'sb-stray', spec: slow, sessionApiKey: 'k' };
    engine.run(stray);
    await reconciler.sweep();
    engine.vanish(stray.id);
    await reconciler.sweep();
    clock.advance(2000);
    await calm();
    engine.run(stray);
    await reconciler.sweep();
    expect(engine.inspect(stray.id).state).toBe('running');
  });

  test('leaves alone what a record owns, though its scans have passed over that record', async () => {
    const { engine, reconciler, clock, store, id } = await running();
    const scan = store.sandboxes.scan.bind(store.sandboxes);
    store.sandboxes.scan = async (...from) => (await scan(...from)).filter((record) => record.id !== id);
    engine.run({ id: 'sb-stray', spec: slow, sessionApiKey: 'k' });
    await reconciler.sweep();
    clock.advance(2000);
    await reconciler.sweep();
    await calm();
    expect([engine.inspect(id).state, engine.inspect('sb-stray').state]).toEqual(['running', 'stopped']);
  });

  test('removes what comes up after its record was seen to have nothing left', async () => {
    const { engine, reconciler, clock, store, sandboxes, id } = await running();
    await sandboxes.delete('me', id);
    expect((await store.sandboxes.find(id))?.removedAt).not.toBeNull();
    engine.run({ id, spec: slow, sessionApiKey: 'k' });
    await reconciler.sweep();
    clock.advance(2000);
    await reconciler.sweep();
    expect(engine.inspect(id).state).toBe('absent');
  });

  test('goes on with what an earlier process left on the way', async () => {
    const { store, boot, engine, shutdown, id } = await running();
    await shutdown();
    const sandbox = await store.sandboxes.find(id);
    if (sandbox === null) throw new Error('no record');
    await store.sandboxes.replace({ ...sandbox, status: 'PAUSING', pauseKind: 'stop', version: sandbox.version + 1 });
    const next = boot();
    await next.reconciler.start();
    await calm();
    expect(await next.sandboxes.get('me', id)).toMatchObject({ status: 'PAUSED', pauseKind: 'stop' });
    expect(engine.inspect(id).state).toBe('stopped');
  });

  test('knows whose an instance is, and leaves alone what it does not know', async () => {
    const { driver, engine, sandboxes, id } = await running();
    driver.enqueueInstance('sb-nobody');
    engine.crash(id);
    await calm();
    expect(await sandboxes.get('me', id)).toMatchObject({ status: 'ERROR' });
  });

  test('goes on with its sweep where one removal of an orphan fails', async () => {
    const { engine, reconciler, clock, faults, sandboxes, id } = await running();
    const other = await sandboxes.start('me', { specId: null });
    for (const deleted of [id, other.id]) await sandboxes.delete('me', deleted);
    for (const deleted of [id, other.id]) engine.run({ id: deleted, spec: slow, sessionApiKey: 'k' });
    await reconciler.sweep();
    faults.plan({ call: 'remove', what: 'timeout', when: 'before' });
    clock.advance(2000);
    await calm();
    expect([id, other.id].map((deleted) => engine.inspect(deleted).state).toSorted()).toEqual(['absent', 'running']);
  });
});
