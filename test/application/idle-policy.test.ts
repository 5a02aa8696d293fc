import { describe, expect, test } from 'vitest';
import { sandboxSpec } from '../../src/domain/sandbox-spec.ts';
import { codeOf } from './code-of.ts';
import { calm, createRunning, damageConversationsOf } from './world.ts';

const spec = sandboxSpec({ id: 'resting', rest: { freezeAfterMs: 1500, stopAfterMs: 1500, deleteAfterMs: 1500, maxLifeMs: 60_000 } });

async function running() {
  const world = await createRunning({ specs: [spec] });
  const pass = async (ms: number) => {
    world.clock.advance(ms);
    await calm();
  };
  return { ...world, pass };
}

describe('an idle sandbox', () => {
  test('is frozen, then stopped, then deleted, each on time and with the reason', async () => {
    const { sandboxes, engine, id, pass } = await running();
    await pass(1499);
    expect(await sandboxes.get('me', id)).toMatchObject({ status: 'RUNNING' });
    await pass(1);
    expect(await sandboxes.get('me', id)).toMatchObject({ status: 'PAUSED', pauseKind: 'freeze', statusReason: { code: 'idle', tier: 'freeze', afterMs: 1500 } });
    await pass(1500);
    expect(await sandboxes.get('me', id)).toMatchObject({ status: 'PAUSED', pauseKind: 'stop', statusReason: { code: 'idle', tier: 'stop', afterMs: 1500 } });
    expect(engine.inspect(id).state).toBe('stopped');
    await pass(1500);
    expect(await codeOf(sandboxes.get('me', id))).toBe('sandbox_not_found');
    expect(engine.inspect(id).state).toBe('absent');
  });

  test('is not paused while it is active', async () => {
    const { sandboxes, id, pass } = await running();
    for (let times = 0; times < 5; times += 1) {
      await pass(1000);
      await sandboxes.resume('me', id);
    }
    expect(await sandboxes.get('me', id)).toMatchObject({ status: 'RUNNING' });
    await pass(1500);
    expect(await sandboxes.get('me', id)).toMatchObject({ status: 'PAUSED' });
  });

  test('is not paused if a conversation of it is damaged, but is inspected, and is paused for its user', async () => {
    const { sandboxes, engine, store, sweeper, id, pass } = await running();
    const { id: ending } = await sandboxes.start('me', { specId: null });
    await calm();
    for (const one of [id, ending]) damageConversationsOf(store, one);
    await pass(1500);
    engine.endFromOutside(ending);
    await sweeper.sweep();
    await calm();
    expect(await sandboxes.get('me', ending)).toMatchObject({ status: 'PAUSED', statusReason: { code: 'ended_outside' } });
    expect(await sandboxes.get('me', id)).toMatchObject({ status: 'RUNNING' });
    expect(await sandboxes.pause('me', id)).toMatchObject({ status: 'PAUSED' });
  });

  test('is deleted at the end of its maximum life, even if it is active or in ERROR', async () => {
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
      expect(await store.sandboxes.find(one)).toMatchObject({ statusReason: { code: 'life_over' } });
      expect(engine.inspect(one).state).toBe('absent');
    }
  });

  test('has an event for every status change, with the actor and the reason', async () => {
    const { sandboxes, engine, store, id, pass } = await running();
    await pass(1500);
    await sandboxes.resume('me', id);
    engine.endFromOutside(id);
    await calm();
    await sandboxes.delete('me', id);
    const events = await store.events.read({ ownerId: 'me' }, 0, 100);
    const told = events.map(({ kind, actor, reason, data }) => [kind, actor, 'from' in data ? `${data.from} ${data.to}` : '', reason?.code]);
    expect(told).toEqual([
      ['sandbox_moved', 'user', 'null STARTING', undefined],
      ['sandbox_moved', 'runtime', 'STARTING RUNNING', undefined],
      ['sandbox_moved', 'skep', 'RUNNING PAUSING', 'idle'],
      ['sandbox_moved', 'skep', 'PAUSING PAUSED', 'idle'],
      ['sandbox_moved', 'user', 'PAUSED RESUMING', 'resumed_by_owner'],
      ['sandbox_moved', 'runtime', 'RESUMING RUNNING', 'processes_continued'],
      ['sandbox_moved', 'runtime', 'RUNNING PAUSING', 'ended_outside'],
      ['sandbox_moved', 'skep', 'PAUSING PAUSED', 'ended_outside'],
      ['sandbox_moved', 'user', 'PAUSED null', 'deleted_by_owner'],
    ]);
    expect(events.every(({ sandboxId }) => sandboxId === id)).toBe(true);
  });
});

describe('a runtime that cannot freeze', () => {
  test('stops an idle sandbox instead, and only once', async () => {
    const { engine, sandboxes, store, id, pass } = await running();
    engine.canFreeze = false;
    await pass(1500);
    const stopped = { status: 'PAUSED', pauseKind: 'stop', statusReason: { code: 'idle', tier: 'stop', afterMs: 1500 } };
    expect(await sandboxes.get('me', id)).toMatchObject(stopped);
    await pass(500);
    await pass(500);
    expect(await sandboxes.get('me', id)).toMatchObject(stopped);
    const moves = (await store.events.read({ ownerId: 'me' }, 0, 100)).map(({ data }) => ('to' in data ? data.to : null));
    expect(moves).toEqual(['STARTING', 'RUNNING', 'PAUSING', 'PAUSED']);
  });

  test('refuses a requested freeze, and stops the sandbox if the request names no kind', async () => {
    const { engine, sandboxes, id } = await running();
    engine.canFreeze = false;
    await expect(sandboxes.pause('me', id, 'freeze')).rejects.toMatchObject({ code: 'freeze_unsupported', context: { runtime: 'scripted' } });
    expect(await sandboxes.get('me', id)).toMatchObject({ status: 'RUNNING' });
    expect(await sandboxes.pause('me', id)).toMatchObject({ status: 'PAUSED', pauseKind: 'stop' });
  });

  test('stops a frozen sandbox that was unfrozen outside Skep', async () => {
    const { engine, sandboxes, sweeper, id, pass } = await running();
    await sandboxes.pause('me', id);
    expect(await sandboxes.get('me', id)).toMatchObject({ pauseKind: 'freeze' });
    engine.canFreeze = false;
    engine.thawFromOutside(id);
    await sweeper.sweep();
    await pass(0);
    expect(await sandboxes.get('me', id)).toMatchObject({ status: 'PAUSED', pauseKind: 'stop' });
    expect(engine.inspect(id).state).toBe('stopped');
  });
});

test('a refused idle pause is retried with back-off, and the record has the reason', async () => {
  const { engine, sandboxes, store, faults, id, pass } = await running();
  faults.plan(...Array.from({ length: 9 }, () => ({ call: 'freeze', what: 'unavailable' as const, when: 'before' as const })));
  await pass(1500);
  expect(await sandboxes.get('me', id)).toMatchObject({ status: 'RUNNING', statusReason: { code: 'failure', failure: 'runtime_unavailable' }, refused: { times: 1 } });
  const attempts = async () => (await store.events.read({ ownerId: 'me', kinds: ['sandbox_moved'] }, 0, 1000)).filter(({ data }) => 'to' in data && data.to === 'PAUSING').length;
  // After 1, 2, 4, 8 and 16 seconds.
  for (let seconds = 0; seconds < 31; seconds += 1) await pass(1000);
  expect(await attempts()).toBe(6);
  expect(await sandboxes.get('me', id)).toMatchObject({ status: 'RUNNING', refused: { times: 6 } });
  for (let seconds = 0; seconds < 29; seconds += 1) await pass(1000);
  expect(await codeOf(sandboxes.get('me', id)), 'its life was over').toBe('sandbox_not_found');
  expect(await attempts()).toBe(6);
  expect(engine.inspect(id).state).toBe('absent');
});

test('a refused idle pause is retried when the time of the machine is set back, and until then the record has the reason', async () => {
  const { clock, engine, sandboxes, faults, id, pass } = await running();
  faults.plan(...Array.from({ length: 6 }, () => ({ call: 'freeze', what: 'unavailable' as const, when: 'before' as const })));
  for (let seconds = 0; seconds < 33; seconds += 1) await pass(1000);
  expect(await sandboxes.get('me', id)).toMatchObject({ status: 'RUNNING', statusReason: { code: 'failure' }, refused: { times: 6 } });
  clock.jump(-20_000);
  await pass(1000);
  expect(await sandboxes.get('me', id)).toMatchObject({ status: 'PAUSED' });
  expect(engine.inspect(id).state).toBe('frozen');
});

test('a refused pause leaves no reason once it is not repeated', async () => {
  const { sandboxes, faults, id, pass } = await running();
  faults.plan({ call: 'freeze', what: 'unavailable', when: 'before' });
  expect(await codeOf(sandboxes.pause('me', id, 'freeze'))).toBe('runtime_unavailable');
  expect(await sandboxes.get('me', id)).toMatchObject({ status: 'RUNNING', statusReason: { code: 'failure' } });
  await sandboxes.resume('me', id);
  await pass(1000);
  expect(await sandboxes.get('me', id)).toMatchObject({ status: 'RUNNING', statusReason: null });
});

test('a start that the runtime refuses shows the reason, and succeeds when the runtime recovers', async () => {
  const { sandboxes, faults, pass } = await running();
  faults.plan(...Array.from({ length: 3 }, () => ({ call: 'start', what: 'unavailable' as const, when: 'before' as const })));
  const { id } = await sandboxes.start('me', { specId: null });
  await pass(0);
  expect(await sandboxes.get('me', id)).toMatchObject({ status: 'STARTING', statusReason: { code: 'failure', failure: 'runtime_unavailable' } });
  for (let seconds = 0; seconds < 8; seconds += 1) await pass(1000);
  expect(await sandboxes.get('me', id)).toMatchObject({ status: 'RUNNING', statusReason: null });
});

test('a failed removal is retried with back-off', async () => {
  const { sandboxes, faults, id, pass } = await running();
  faults.plan(...Array.from({ length: 50 }, () => ({ call: 'remove', what: 'unavailable' as const, when: 'before' as const })));
  await sandboxes.delete('me', id);
  for (let seconds = 0; seconds < 60; seconds += 1) await pass(1000);
  expect(50 - faults.planned.length).toBeLessThanOrEqual(8);
});

describe('changes outside Skep', () => {
  test('an engine restart leaves running and frozen sandboxes PAUSED, and they can be resumed', async () => {
    const { sandboxes, engine, sweeper, id } = await running();
    const frozen = await sandboxes.start('me', { specId: null });
    await calm();
    await sandboxes.pause('me', frozen.id, 'freeze');
    engine.restart();
    await sweeper.sweep();
    await calm();
    for (const [one, code] of [[id, 'ended_outside'], [frozen.id, 'ended_while_frozen']] as const) {
      const statusReason = { code, cause: { code: 'host_restarted' } };
      expect(await sandboxes.get('me', one)).toMatchObject({ status: 'PAUSED', pauseKind: 'stop', statusReason });
      expect(await sandboxes.resume('me', one)).toMatchObject({ status: 'RUNNING' });
      expect(engine.inspect(one).state).toBe('running');
    }
  });

  test('a sandbox that a person froze is PAUSED, and a sandbox in ERROR keeps its reason', async () => {
    const { sandboxes, engine, sweeper, id } = await running();
    engine.freezeFromOutside(id);
    await calm();
    expect(await sandboxes.get('me', id)).toMatchObject({ status: 'PAUSED', pauseKind: 'freeze', statusReason: { code: 'frozen_outside' } });
    await sandboxes.resume('me', id);
    engine.crash(id);
    await calm();
    engine.restart();
    await sweeper.sweep();
    await calm();
    expect(await sandboxes.get('me', id)).toMatchObject({ status: 'ERROR', statusReason: { code: 'process_exited', exitCode: 3 } });
  });
});
