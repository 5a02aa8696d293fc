import { describe, expect, test } from 'vitest';
import { Failure } from '../../src/domain/failure.ts';
import { sandboxSpec } from '../../src/domain/sandbox-spec.ts';
import { codeOf } from './code-of.ts';
import { calm, createRunning, createWorld } from './world.ts';

const slow = sandboxSpec({ id: 'slow', ports: [{ name: 'HTTP', port: 80 }], ready: { probe: { kind: 'http', port: 80, path: '/' }, withinMs: 10_000 } });

describe('a sandbox', () => {
  test('starts, freezes, stops and resumes, and reports whether processes continued or restarted', async () => {
    const { sandboxes, engine, id } = await createRunning();
    expect(await sandboxes.get('me', id)).toMatchObject({ status: 'RUNNING', pauseKind: null });
    expect(await sandboxes.pause('me', id, 'freeze')).toMatchObject({ status: 'PAUSED', pauseKind: 'freeze' });
    expect(engine.inspect(id).state).toBe('frozen');
    expect(await sandboxes.resume('me', id)).toMatchObject({ status: 'RUNNING', pauseKind: null, statusReason: { code: 'processes_continued' } });
    expect(await sandboxes.pause('me', id, 'stop')).toMatchObject({ status: 'PAUSED', pauseKind: 'stop' });
    expect(engine.inspect(id).state).toBe('stopped');
    expect(await sandboxes.resume('me', id)).toMatchObject({ status: 'RUNNING', statusReason: { code: 'processes_restarted' } });
  });

  test('is not written again by a pause while it is stopped, or a resume while it runs', async () => {
    const { sandboxes, id, writes } = await createRunning();
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

  test('is frozen by one call, even if the runtime reports the freeze during the call', async () => {
    const { sandboxes, sandboxReconciler, runtime, id } = await createRunning();
    const freezes: string[] = [];
    const freeze = runtime.freeze.bind(runtime);
    runtime.freeze = async (instanceId) => {
      freezes.push(instanceId);
      const fact = await freeze(instanceId);
      if (freezes.length === 1) sandboxReconciler.enqueue(id);
      return fact;
    };
    expect(await sandboxes.pause('me', id, 'freeze')).toMatchObject({ status: 'PAUSED', pauseKind: 'freeze' });
    expect(freezes).toEqual([id]);
  });

  test('is stopped if a freeze and a stop come at once, and both calls return PAUSED', async () => {
    const { sandboxes, id, writes } = await createRunning();
    const both = await Promise.all([sandboxes.pause('me', id, 'freeze'), sandboxes.pause('me', id, 'stop')]);
    expect(both.map(({ status }) => status)).toEqual(['PAUSED', 'PAUSED']);
    expect(both[1].pauseKind).toBe('stop');
    expect((await sandboxes.get('me', id)).pauseKind).toBe('stop');
    expect(writes.flatMap(({ to }) => (to.status === 'PAUSING' ? [to.pauseKind] : []))).toEqual(['freeze', 'stop']);
  });

  test('has the state of one of the calls after a pause and a resume at once', async () => {
    const { sandboxes, engine, id } = await createRunning();
    await sandboxes.pause('me', id, 'freeze');
    await Promise.allSettled([sandboxes.resume('me', id), sandboxes.pause('me', id, 'freeze')]);
    await calm();
    const { status } = await sandboxes.get('me', id);
    expect([status, engine.inspect(id).state]).toEqual(status === 'RUNNING' ? ['RUNNING', 'running'] : ['PAUSED', 'frozen']);
  });

  test('is returned to a repeated start, also if its spec is no longer configured', async () => {
    const { boot } = createWorld();
    const claim = { ownerId: 'me', key: 'k', fingerprint: 'a' };
    const { id } = await boot().sandboxes.start('me', { specId: 'plain', claim });
    const { sandboxes } = boot([slow]);
    expect(await sandboxes.start('me', { specId: 'plain', claim })).toMatchObject({ id });
    expect(await codeOf(sandboxes.start('me', { specId: 'plain', claim: { ...claim, key: 'other' } }))).toBe('invalid_request');
  });

  test('fails with `sandbox_busy` for a pause or a resume while it starts', async () => {
    const { sandboxes, engine, id } = await createRunning({ specs: [slow] });
    engine.close('ready');
    const second = await sandboxes.start('me', { specId: 'slow' });
    await calm();
    expect(await sandboxes.get('me', id)).toMatchObject({ status: 'RUNNING' });
    expect(await codeOf(sandboxes.pause('me', second.id, 'freeze'))).toBe('sandbox_busy');
    expect(await codeOf(sandboxes.resume('me', second.id))).toBe('sandbox_busy');
  });

  test('becomes ERROR with a reason if it crashes, and MISSING if it is removed outside Skep', async () => {
    const { sandboxes, engine, sweeper, id } = await createRunning();
    engine.crash(id);
    await calm();
    expect(await sandboxes.get('me', id)).toMatchObject({ status: 'ERROR', statusReason: { code: 'process_exited', exitCode: 3 } });
    const other = await sandboxes.start('me', { specId: null });
    await calm();
    engine.vanish(other.id);
    await sweeper.sweep();
    await calm();
    expect(await sandboxes.get('me', other.id)).toMatchObject({ status: 'MISSING' });
  });

  test('resumes after a crash and keeps its files, but stays ERROR if its files are gone', async () => {
    const { sandboxes, engine, id } = await createRunning();
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

  test('keeps its status if the runtime refuses a pause or a resume, and the call fails', async () => {
    const { sandboxes, faults, id } = await createRunning();
    faults.plan({ call: 'freeze', what: 'unavailable', when: 'before' });
    expect(await codeOf(sandboxes.pause('me', id, 'freeze'))).toBe('runtime_unavailable');
    expect(await sandboxes.get('me', id)).toMatchObject({ status: 'RUNNING', statusReason: { code: 'failure', failure: 'runtime_unavailable' } });
    expect(await sandboxes.pause('me', id, 'freeze')).toMatchObject({ status: 'PAUSED' });
    faults.plan({ call: 'resume', what: 'unavailable', when: 'before' });
    expect(await codeOf(sandboxes.resume('me', id))).toBe('runtime_unavailable');
    expect(await sandboxes.get('me', id)).toMatchObject({ status: 'PAUSED', pauseKind: 'freeze' });
  });

  test('is frozen again if its resume failed but had its effect', async () => {
    const { sandboxes, engine, faults, sweeper, id } = await createRunning({ limits: { running: 1 } });
    await sandboxes.pause('me', id, 'freeze');
    faults.plan({ call: 'resume', what: 'unavailable', when: 'after' });
    expect(await codeOf(sandboxes.resume('me', id))).toBe('runtime_unavailable');
    expect(engine.inspect(id).state).toBe('running');
    const other = await sandboxes.start('me', { specId: null });
    await sweeper.sweep();
    await calm();
    expect([engine.inspect(id).state, engine.inspect(other.id).state]).toEqual(['frozen', 'running']);
    expect(await sandboxes.get('me', id)).toMatchObject({ status: 'PAUSED', pauseKind: 'freeze' });
  });

  test('is not found by another owner', async () => {
    const { sandboxes, id } = await createRunning();
    for (const call of [sandboxes.get('you', id), sandboxes.pause('you', id, 'freeze'), sandboxes.resume('you', id), sandboxes.delete('you', id)]) {
      expect(await codeOf(call)).toBe('sandbox_not_found');
    }
    expect((await sandboxes.search('you', {}, { after: null, limit: 10 })).items).toEqual([]);
  });

  test('counts against the limits while it runs, and again when it resumes', async () => {
    const { sandboxes, id } = await createRunning({ limits: { runningPerOwner: 2 } });
    await sandboxes.start('me', { specId: null });
    expect(await codeOf(sandboxes.start('me', { specId: null }))).toBe('sandbox_limit_reached');
    await sandboxes.start('you', { specId: null });
    await sandboxes.pause('me', id, 'freeze');
    await sandboxes.start('me', { specId: null });
    expect(await codeOf(sandboxes.resume('me', id))).toBe('sandbox_limit_reached');
    expect(await sandboxes.get('me', id)).toMatchObject({ status: 'PAUSED' });
  });
});

describe('reconciliation', () => {
  test('stops an instance without a record after a grace period', async () => {
    const { engine, sweeper, clock, store } = await createRunning();
    const lookedUp = new Set<string>();
    const findByInstance = store.sandboxes.findByInstance.bind(store.sandboxes);
    store.sandboxes.findByInstance = async (instanceId) => {
      lookedUp.add(instanceId);
      return await findByInstance(instanceId);
    };
    engine.run({ id: 'sb-stray', spec: slow, sessionApiKey: 'k' });
    await sweeper.sweep();
    expect(engine.inspect('sb-stray').state).toBe('running');
    clock.advance(2000);
    await sweeper.sweep();
    await calm();
    expect(engine.inspect('sb-stray').state).toBe('stopped');
    expect([...lookedUp], 'what the scan has found is not asked for one by one').toEqual(['sb-stray']);
  });

  test('starts the grace period again if an instance without a record was gone in between', async () => {
    const { engine, sweeper, clock } = await createRunning();
    const stray = { id: 'sb-stray', spec: slow, sessionApiKey: 'k' };
    engine.run(stray);
    await sweeper.sweep();
    engine.vanish(stray.id);
    await sweeper.sweep();
    clock.advance(2000);
    await calm();
    engine.run(stray);
    await sweeper.sweep();
    expect(engine.inspect(stray.id).state).toBe('running');
  });

  test.each(['intact', 'damaged'])('leaves an instance alone if the scan did not return its record, which is %s', async (record) => {
    const { engine, sweeper, clock, store, id } = await createRunning();
    const scan = store.sandboxes.scan.bind(store.sandboxes);
    const findByInstance = store.sandboxes.findByInstance.bind(store.sandboxes);
    store.sandboxes.scan = async (...from) => (await scan(...from)).filter((record) => record.id !== id);
    store.sandboxes.findByInstance = async (instanceId) => {
      if (instanceId !== id || record === 'intact') return await findByInstance(instanceId);
      throw new Failure('store_unavailable', { reason: { code: 'damaged' }, retryAfterSeconds: 5 });
    };
    engine.run({ id: 'sb-stray', spec: slow, sessionApiKey: 'k' });
    await sweeper.sweep();
    clock.advance(2000);
    await sweeper.sweep();
    await calm();
    expect([engine.inspect(id).state, engine.inspect('sb-stray').state]).toEqual(['running', 'stopped']);
  });

  test('removes an instance that appears after its record was marked as removed', async () => {
    const { engine, sweeper, clock, store, sandboxes, id } = await createRunning();
    await sandboxes.delete('me', id);
    expect((await store.sandboxes.find(id))?.removedAt).not.toBeNull();
    engine.run({ id, spec: slow, sessionApiKey: 'k' });
    await sweeper.sweep();
    clock.advance(2000);
    await sweeper.sweep();
    expect(engine.inspect(id).state).toBe('absent');
  });

  test('completes a pause that an earlier process left unfinished', async () => {
    const { store, boot, engine, shutdown, id } = await createRunning();
    await shutdown();
    const sandbox = await store.sandboxes.find(id);
    if (sandbox === null) throw new Error('no record');
    await store.sandboxes.replace({ ...sandbox, status: 'PAUSING', pauseKind: 'stop', version: sandbox.version + 1 });
    const next = boot();
    await next.sweeper.start();
    await calm();
    expect(await next.sandboxes.get('me', id)).toMatchObject({ status: 'PAUSED', pauseKind: 'stop' });
    expect(engine.inspect(id).state).toBe('stopped');
  });

  test('finds the record of an instance, and ignores an unknown instance', async () => {
    const { sandboxReconciler, engine, sandboxes, id } = await createRunning();
    sandboxReconciler.enqueueInstance('sb-nobody');
    engine.crash(id);
    await calm();
    expect(await sandboxes.get('me', id)).toMatchObject({ status: 'ERROR' });
  });

  test('continues the sweep if the removal of one orphan fails', async () => {
    const { engine, sweeper, clock, faults, sandboxes, id } = await createRunning();
    const other = await sandboxes.start('me', { specId: null });
    for (const deleted of [id, other.id]) await sandboxes.delete('me', deleted);
    for (const deleted of [id, other.id]) engine.run({ id: deleted, spec: slow, sessionApiKey: 'k' });
    await sweeper.sweep();
    faults.plan({ call: 'remove', what: 'timeout', when: 'before' });
    clock.advance(2000);
    await calm();
    expect([id, other.id].map((deleted) => engine.inspect(deleted).state).toSorted()).toEqual(['absent', 'running']);
  });
});

test('an administrator changes, links and reads the sandbox of another user as one caller', async () => {
  const root = { userId: 'root', access: 'admin' } as const;
  const { sandboxes, id } = await createRunning({ specs: [sandboxSpec({ id: 'web', ports: slow.ports })] });
  await sandboxes.setTimeout(root, id, 60_000);
  expect(await sandboxes.get(root, id)).toMatchObject({ ownerId: 'me', spec: { rest: { maxLifeMs: expect.any(Number) } } });
  expect(await sandboxes.createPortLink(root, id, 80, 1000)).toMatchObject({ sandboxId: id, port: 80 });
  expect((await sandboxes.search(root, {}, { after: null, limit: 1 })).items).toMatchObject([{ id }]);
});
