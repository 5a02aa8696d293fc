import { describe, expect, test } from 'vitest';
import { isFailure, type FailureCode } from '../../src/domain/failure.ts';
import { sandboxSpec } from '../../src/domain/sandbox-spec-defaults.ts';
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

async function codeOf(promise: Promise<unknown>): Promise<FailureCode | null> {
  try {
    await promise;
    return null;
  } catch (error) {
    if (!isFailure(error)) throw error;
    return error.code;
  }
}

describe('a sandbox', () => {
  test('starts, freezes, resumes, stops, resumes, and says which tier holds and what came back', async () => {
    const { sandboxes, engine, id } = await running();
    expect(await sandboxes.get('me', id)).toMatchObject({ status: 'RUNNING', pauseKind: null });
    expect(await sandboxes.pause('me', id, 'freeze')).toMatchObject({ status: 'PAUSED', pauseKind: 'freeze' });
    expect(engine.inspect(id).state).toBe('frozen');
    expect(await sandboxes.resume('me', id)).toMatchObject({ status: 'RUNNING', pauseKind: null, statusDetail: expect.stringContaining('went on') });
    expect(await sandboxes.pause('me', id, 'stop')).toMatchObject({ status: 'PAUSED', pauseKind: 'stop' });
    expect(engine.inspect(id).state).toBe('stopped');
    expect(await sandboxes.resume('me', id)).toMatchObject({ status: 'RUNNING', statusDetail: expect.stringContaining('files') });
  });

  test('pausing what is paused and resuming what runs change nothing', async () => {
    const { sandboxes, id, writes } = await running();
    await sandboxes.pause('me', id, 'freeze');
    const before = writes.length;
    expect(await sandboxes.pause('me', id, 'stop')).toMatchObject({ status: 'PAUSED', pauseKind: 'freeze' });
    expect(writes.length).toBe(before);
    await sandboxes.resume('me', id);
    const after = writes.length;
    expect(await sandboxes.resume('me', id)).toMatchObject({ status: 'RUNNING' });
    expect(writes.length).toBe(after);
  });

  test('of two pauses at once one moves, and both see the result', async () => {
    const { sandboxes, id, writes } = await running();
    const both = await Promise.all([sandboxes.pause('me', id, 'freeze'), sandboxes.pause('me', id, 'stop')]);
    expect(both.map(({ status }) => status)).toEqual(['PAUSED', 'PAUSED']);
    expect(both[0].pauseKind).toBe(both[1].pauseKind);
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
    const { sandboxes, probe, id } = await running({ specs: [slow] }).then(async (world) => world);
    probe.answer(`http://${id}.invalid:80`, null);
    const second = await sandboxes.start('me', { specId: 'slow' });
    probe.answer(`http://${second.id}.invalid:80`, null);
    await calm();
    expect(await codeOf(sandboxes.pause('me', second.id, 'freeze'))).toBe('sandbox_busy');
    expect(await codeOf(sandboxes.resume('me', second.id))).toBe('sandbox_busy');
  });

  test('deleted while it starts is gone at once, and nothing of it is left', async () => {
    const world = createWorld({ specs: [slow] });
    const { sandboxes, driver } = world.boot();
    const { id } = await sandboxes.start('me', { specId: null });
    world.probe.answer(`http://${id}.invalid:80`, null);
    await calm();
    expect(world.engine.inspect(id).state).toBe('running');
    await sandboxes.delete('me', id);
    expect(world.engine.inspect(id).state).toBe('absent');
    expect(await codeOf(sandboxes.get('me', id))).toBe('sandbox_not_found');
    expect(await codeOf(sandboxes.delete('me', id))).toBeNull();
    await driver.close();
  });

  test('that is not ready in time is an ERROR, and what it started is ended', async () => {
    const world = createWorld({ specs: [slow] });
    const { sandboxes } = world.boot();
    const { id } = await sandboxes.start('me', { specId: null });
    world.probe.answer(`http://${id}.invalid:80`, 503);
    await calm();
    world.clock.advance(10_000);
    await calm();
    expect(await sandboxes.get('me', id)).toMatchObject({ status: 'ERROR', statusDetail: 'it was not ready within 10 s' });
    expect(world.engine.inspect(id).state).toBe('stopped');
    expect(await codeOf(sandboxes.pause('me', id, 'freeze'))).toBe('sandbox_not_running');
    expect(await codeOf(sandboxes.resume('me', id))).toBe('sandbox_not_paused');
  });

  test('does not stay STARTING while its runtime does not answer', async () => {
    const world = createWorld();
    const { sandboxes, reconciler } = world.boot();
    world.faults.push(...Array.from({ length: 50 }, () => ({ call: 'inspect' as const, when: 'before' as const })));
    const { id } = await sandboxes.start('me', { specId: null });
    await calm();
    expect(await sandboxes.get('me', id)).toMatchObject({ status: 'STARTING' });
    world.clock.advance(10_000);
    await reconciler.sweep();
    await calm();
    expect(await sandboxes.get('me', id)).toMatchObject({ status: 'ERROR', statusDetail: expect.stringContaining('does not answer') });
  });

  test('that crashes is an ERROR with the reason; one that vanishes is MISSING', async () => {
    const { sandboxes, engine, reconciler, id } = await running();
    engine.crash(id, 'exited with code 3');
    await calm();
    expect(await sandboxes.get('me', id)).toMatchObject({ status: 'ERROR', statusDetail: 'exited with code 3' });
    const other = await sandboxes.start('me', { specId: null });
    await calm();
    engine.remove(other.id);
    await reconciler.sweep();
    await calm();
    expect(await sandboxes.get('me', other.id)).toMatchObject({ status: 'MISSING' });
  });

  test('whose runtime refuses a pause runs on, and the caller is told', async () => {
    const { sandboxes, faults, id } = await running();
    faults.push({ call: 'freeze', when: 'before' });
    expect(await codeOf(sandboxes.pause('me', id, 'freeze'))).toBe('runtime_unavailable');
    expect(await sandboxes.get('me', id)).toMatchObject({ status: 'RUNNING', statusDetail: expect.stringContaining('planted') });
    expect(await sandboxes.pause('me', id, 'freeze')).toMatchObject({ status: 'PAUSED' });
    faults.push({ call: 'resume', when: 'before' });
    expect(await codeOf(sandboxes.resume('me', id))).toBe('runtime_unavailable');
    expect(await sandboxes.get('me', id)).toMatchObject({ status: 'PAUSED', pauseKind: 'freeze' });
  });

  test('whose resumption was refused, though it had its effect, is held again, and takes no place of another', async () => {
    const { sandboxes, engine, faults, reconciler, id } = await running({ limits: { running: 1 } });
    await sandboxes.pause('me', id, 'freeze');
    faults.push({ call: 'resume', when: 'after' });
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

  test('rests by its rules: frozen, then stopped, then deleted, each with the reason', async () => {
    const resting = sandboxSpec({ id: 'resting', rest: { freezeAfterMs: 1000, stopAfterMs: 1000, deleteAfterMs: 1000 } });
    const { sandboxes, clock, reconciler, engine, id } = await running({ specs: [resting] });
    const sweep = async () => {
      clock.advance(1000);
      await reconciler.sweep();
      await calm();
    };
    await sweep();
    expect(await sandboxes.get('me', id)).toMatchObject({ status: 'PAUSED', pauseKind: 'freeze', statusDetail: expect.stringContaining('frozen') });
    await sweep();
    expect(await sandboxes.get('me', id)).toMatchObject({ status: 'PAUSED', pauseKind: 'stop', statusDetail: expect.stringContaining('stopped') });
    expect(engine.inspect(id).state).toBe('stopped');
    await sweep();
    expect(await codeOf(sandboxes.get('me', id))).toBe('sandbox_not_found');
    expect(engine.inspect(id).state).toBe('absent');
  });
});

describe('the reconciler', () => {
  test('removes what no record owns, after a grace', async () => {
    const { engine, reconciler, clock } = await running();
    engine.start({ id: 'sb-stray', spec: slow, sessionApiKey: 'k' });
    await reconciler.sweep();
    expect(engine.inspect('sb-stray').state).toBe('running');
    clock.advance(2000);
    await reconciler.sweep();
    expect(engine.inspect('sb-stray').state).toBe('absent');
  });

  test('goes on with what an earlier process left on the way', async () => {
    const { store, boot, engine, reconciler, driver, id } = await running();
    await Promise.all([reconciler.close(), driver.close()]);
    const sandbox = await store.sandboxes.find(id);
    if (sandbox === null) throw new Error('no record');
    await store.sandboxes.replace({ ...sandbox, status: 'PAUSING', pauseKind: 'stop', generation: sandbox.generation + 1 });
    const next = boot();
    await next.reconciler.start();
    await calm();
    expect(await next.sandboxes.get('me', id)).toMatchObject({ status: 'PAUSED', pauseKind: 'stop' });
    expect(engine.inspect(id).state).toBe('stopped');
  });
});
