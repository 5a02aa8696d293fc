import { describe, expect, test } from 'vitest';
import { sandboxSpec } from '../../src/domain/sandbox-spec.ts';
import { codeOf } from './code-of.ts';
import { calm, createWorld } from './world.ts';

const spec = sandboxSpec({ id: 'resting', rest: { freezeAfterMs: 1500, stopAfterMs: 1500, deleteAfterMs: 1500, maxLifeMs: 60_000 } });

async function running() {
  const world = createWorld({ specs: [spec] });
  const skep = world.boot();
  await skep.reconciler.start();
  const { id } = await skep.sandboxes.start('me', { specId: null });
  await calm();
  const pass = async (ms: number) => {
    world.clock.advance(ms);
    await calm();
  };
  return { ...world, ...skep, id, pass };
}

describe('a sandbox at rest', () => {
  test('is frozen, then stopped, then deleted, each at its time rather than at the next sweep, and with the reason', async () => {
    const { sandboxes, engine, id, pass } = await running();
    await pass(1499);
    expect(await sandboxes.get('me', id)).toMatchObject({ status: 'RUNNING' });
    await pass(1);
    expect(await sandboxes.get('me', id)).toMatchObject({ status: 'PAUSED', pauseKind: 'freeze', statusDetail: 'frozen: no activity for 1.5 s, as its spec says' });
    await pass(1500);
    expect(await sandboxes.get('me', id)).toMatchObject({ status: 'PAUSED', pauseKind: 'stop', statusDetail: expect.stringContaining('stopped: frozen for 1.5 s') });
    expect(engine.inspect(id).state).toBe('stopped');
    await pass(1500);
    expect(await codeOf(sandboxes.get('me', id))).toBe('sandbox_not_found');
    expect(engine.inspect(id).state).toBe('absent');
  });

  test('is left alone while it is active', async () => {
    const { sandboxes, id, pass } = await running();
    for (let times = 0; times < 5; times += 1) {
      await pass(1000);
      await sandboxes.resume('me', id);
    }
    expect(await sandboxes.get('me', id)).toMatchObject({ status: 'RUNNING' });
    await pass(1500);
    expect(await sandboxes.get('me', id)).toMatchObject({ status: 'PAUSED' });
  });

  test('lives no longer than its spec allows, however active it is, and also where it has failed', async () => {
    const { sandboxes, engine, id, pass, store } = await running();
    const broken = await sandboxes.start('me', { specId: null });
    await calm();
    engine.crash(broken.id);
    await calm();
    for (let times = 0; times < 59; times += 1) {
      await pass(1000);
      await sandboxes.resume('me', id);
    }
    expect(await sandboxes.get('me', broken.id)).toMatchObject({ status: 'ERROR' });
    await pass(1000);
    for (const one of [id, broken.id]) {
      expect(await codeOf(sandboxes.get('me', one))).toBe('sandbox_not_found');
      expect(await store.sandboxes.find(one)).toMatchObject({ statusDetail: expect.stringContaining('the longest life that its spec allows') });
      expect(engine.inspect(one).state).toBe('absent');
    }
  });

  test('tells of every move in the log of events, and of who caused it', async () => {
    const { sandboxes, engine, store, id, pass } = await running();
    await pass(1500);
    await sandboxes.resume('me', id);
    engine.endFromOutside(id, 'somebody stopped it');
    await calm();
    await sandboxes.delete('me', id);
    const events = await store.events.read({ ownerId: 'me' }, 0, 100);
    const told = events.map(({ kind, actor, reason, data }) => [kind, actor, 'from' in data ? `${data.from} ${data.to}` : '', reason]);
    expect(told).toEqual([
      ['sandbox_moved', 'user', 'null STARTING', null],
      ['sandbox_moved', 'runtime', 'STARTING RUNNING', null],
      ['sandbox_moved', 'skep', 'RUNNING PAUSING', expect.stringContaining('no activity')],
      ['sandbox_moved', 'skep', 'PAUSING PAUSED', expect.stringContaining('no activity')],
      ['sandbox_moved', 'user', 'PAUSED RESUMING', 'resumed by its owner'],
      ['sandbox_moved', 'runtime', 'RESUMING RUNNING', expect.stringContaining('resumed')],
      ['sandbox_moved', 'runtime', 'RUNNING PAUSING', expect.stringContaining('somebody stopped it')],
      ['sandbox_moved', 'skep', 'PAUSING PAUSED', expect.stringContaining('somebody stopped it')],
      ['sandbox_moved', 'user', 'PAUSED null', 'deleted by its owner'],
    ]);
    expect(events.every(({ sandboxId }) => sandboxId === id)).toBe(true);
  });
});

describe('what happens from outside', () => {
  test('an engine that was restarted leaves running and frozen ones PAUSED with their files, and they can be resumed', async () => {
    const { sandboxes, engine, reconciler, id } = await running();
    const frozen = await sandboxes.start('me', { specId: null });
    await calm();
    await sandboxes.pause('me', frozen.id, 'freeze');
    engine.restart();
    await reconciler.sweep();
    await calm();
    for (const one of [id, frozen.id]) {
      expect(await sandboxes.get('me', one)).toMatchObject({ status: 'PAUSED', pauseKind: 'stop', statusDetail: expect.stringContaining('its engine was restarted') });
      expect(await sandboxes.resume('me', one)).toMatchObject({ status: 'RUNNING' });
      expect(engine.inspect(one).state).toBe('running');
    }
  });

  test('one that a person froze is PAUSED, and what gave up stays as it is', async () => {
    const { sandboxes, engine, reconciler, id } = await running();
    engine.freezeFromOutside(id);
    await calm();
    expect(await sandboxes.get('me', id)).toMatchObject({ status: 'PAUSED', pauseKind: 'freeze', statusDetail: 'it was frozen from outside' });
    await sandboxes.resume('me', id);
    engine.crash(id);
    await calm();
    engine.restart();
    await reconciler.sweep();
    await calm();
    expect(await sandboxes.get('me', id)).toMatchObject({ status: 'ERROR', statusDetail: 'exited with code 3' });
  });
});
