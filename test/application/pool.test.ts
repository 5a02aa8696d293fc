import { describe, expect, test, vi } from 'vitest';
import { newPoolMember, poolFingerprint } from '../../src/domain/pool-plan.ts';
import { countsAsRunning } from '../../src/domain/sandbox-lifecycle.ts';
import type { Sandbox } from '../../src/domain/sandbox.ts';
import { sandboxSpec } from '../../src/domain/sandbox-spec.ts';
import { codeOf } from './code-of.ts';
import { calm, createWorld, type WorldOptions } from './world.ts';

const warm = sandboxSpec({ id: 'warm', ports: [{ name: 'HTTP', port: 80 }], pool: { size: 2 }, rest: { freezeAfterMs: 20_000, stopAfterMs: null, deleteAfterMs: null, maxLifeMs: 30_000 } });

async function filled(options: WorldOptions = {}) {
  const world = createWorld({ specs: [warm], ...options });
  const skep = world.boot();
  await skep.sweeper.start();
  await calm();
  const members = async () => (await world.store.sandboxes.pooled()).map(({ sandbox }) => sandbox);
  const start = (owner = 'me') => skep.sandboxes.start(owner, { specId: null });
  return { ...world, ...skep, members, start };
}

describe('a pool', () => {
  test('is filled at the start, and no caller sees its members', async () => {
    const { members, sandboxes, engine, clock } = await filled();
    const all = await members();
    expect(all.map(({ status }) => status)).toEqual(['RUNNING', 'RUNNING']);
    expect(engine.list()).toHaveLength(2);
    expect((await sandboxes.search('', {}, { after: null, limit: 10 })).items.length + (await sandboxes.search('me', {}, { after: null, limit: 10 })).items.length).toBe(2);
    expect(await codeOf(sandboxes.get('me', all[0]?.id ?? ''))).toBe('sandbox_not_found');
    expect(await codeOf(sandboxes.delete('me', all[0]?.id ?? ''))).toBe('sandbox_not_found');
    clock.advance(60_000);
    await calm();
    expect((await members()).map(({ id }) => id)).toEqual(all.map(({ id }) => id));
  });

  test('gives a RUNNING member to a start, with its key and URLs, and is filled again', async () => {
    const { members, start, engine, clock, store } = await filled();
    const before = await members();
    clock.advance(5000);
    await calm();
    const { ...calls } = engine.calls;
    const started = start();
    const mine = await started;
    expect(engine.calls.start).toBe(calls.start);
    const member = before.find(({ id }) => id === mine.instanceId);
    expect(mine).toMatchObject({ ownerId: 'me', status: 'RUNNING', sessionApiKey: member?.sessionApiKey, exposedUrls: member?.exposedUrls, createdAt: clock.now() });
    expect(mine.id).not.toBe(member?.id);
    expect(await store.sandboxes.find(member?.id ?? '')).toBeNull();
    await calm();
    expect((await members()).map(({ status }) => status)).toEqual(['RUNNING', 'RUNNING']);
    expect(engine.list()).toHaveLength(3);
  });

  test('has members that can be paused, resumed and deleted like any other sandbox after a claim', async () => {
    const { start, sandboxes, engine, members, pass } = await filled();
    const mine = await start();
    expect(await sandboxes.pause('me', mine.id, 'stop')).toMatchObject({ status: 'PAUSED' });
    expect(engine.inspect(mine.instanceId).state).toBe('stopped');
    expect(await sandboxes.resume('me', mine.id)).toMatchObject({ status: 'RUNNING' });
    await pass(20);
    expect(await sandboxes.get('me', mine.id)).toMatchObject({ status: 'PAUSED', pauseKind: 'freeze' });
    const other = await start();
    engine.crash(other.instanceId);
    await calm();
    expect(await sandboxes.get('me', other.id)).toMatchObject({ status: 'ERROR' });
    await sandboxes.delete('me', other.id);
    expect(engine.inspect(other.instanceId).state).toBe('absent');
    await pass(10);
    expect(await codeOf(sandboxes.get('me', mine.id))).toBe('sandbox_not_found');
    expect(engine.list().map(({ id }) => id).toSorted()).toEqual((await members()).map(({ id }) => id).toSorted());
  });

  test('gives each member to one start only, and the other starts are cold', async () => {
    const { start, writes, engine } = await filled();
    const all = await Promise.all(Array.from({ length: 5 }, () => start()));
    expect(all.filter(({ status }) => status === 'RUNNING')).toHaveLength(2);
    expect(new Set(all.map(({ instanceId }) => instanceId)).size).toBe(5);
    await calm();
    expect(writes.filter(({ member }) => member !== null)).toHaveLength(2);
    expect(engine.list().filter(({ state }) => state === 'running')).toHaveLength(7);
  });

  test('gives away no member that has crashed, even if the runtime did not report it', async () => {
    const { start, engine, members, pass } = await filled();
    engine.isMute = true;
    for (const { id } of await members()) engine.crash(id);
    const mine = await start();
    expect(mine.status).toBe('STARTING');
    await pass(2);
    expect((await members()).map(({ status }) => status)).toEqual(['RUNNING', 'RUNNING']);
    expect(engine.list().map(({ state }) => state)).toEqual(['running', 'running', 'running']);
  });

  test('gives away no member that is not RUNNING or has another version of the spec', async () => {
    const { store, boot, engine } = createWorld({ specs: [warm] });
    const fingerprint = poolFingerprint(warm);
    const members = [['a', 'other', 'RUNNING'], ['b', fingerprint, 'STARTING'], ['c', fingerprint, 'ERROR']] as const;
    for (const [id, content, status] of members) {
      await store.sandboxes.insertPooled({ ...newPoolMember({ id, spec: warm, sessionApiKey: 'k', now: 0 }), status }, content, 9);
    }
    const { sandboxes } = boot();
    expect(await sandboxes.start('me', { specId: null })).toMatchObject({ status: 'STARTING' });
    expect(engine.calls.inspect).toBe(0);
  });

  test('is skipped if the runtime does not answer', async () => {
    const { start, faults } = await filled();
    faults.plan({ call: 'inspect', what: 'timeout', when: 'before' });
    expect(await start()).toMatchObject({ status: 'STARTING' });
  });

  test('is skipped after a short time if the runtime hangs', async () => {
    const { start, runtime, members, pass } = await filled();
    vi.spyOn(runtime, 'inspect').mockReturnValue(new Promise(() => {}));
    const started = vi.fn();
    void start().then(started);
    await calm();
    await pass(2);
    expect(started).toHaveBeenCalledExactlyOnceWith(expect.objectContaining({ ownerId: 'me', status: 'STARTING' }));
    expect(await members()).toHaveLength(2);
  });

  test('replaces members that were frozen or removed by hand, or whose engine restarted', async () => {
    const { engine, members, sweeper } = await filled();
    const before = new Set((await members()).map(({ id }) => id));
    engine.restart();
    await sweeper.sweep();
    await calm();
    const after = await members();
    expect(after.map(({ status }) => status)).toEqual(['RUNNING', 'RUNNING']);
    expect(after.some(({ id }) => before.has(id))).toBe(false);
    engine.freezeFromOutside(after[0]?.id ?? '');
    engine.vanish(after[1]?.id ?? '');
    await calm();
    expect((await members()).filter(({ status }) => status === 'RUNNING')).toHaveLength(2);
    expect(engine.list()).toHaveLength(2);
  });

  test('replaces its members if the spec changes in a way that matters, and removes them without a pool', async () => {
    const { boot, shutdown, members, engine, clock } = await filled();
    const grow = () => clock.advance(60_000);
    const before = (await members()).map(({ id }) => id);
    await shutdown();
    const same = boot([{ ...warm, description: 'other words', rest: { ...warm.rest, freezeAfterMs: 1 } }]);
    await same.sweeper.start();
    await calm();
    expect((await members()).map(({ id }) => id)).toEqual(before);
    await same.shutdown();
    grow();
    const changed = boot([{ ...warm, initialEnv: { NEW: '1' } }]);
    expect((await changed.sandboxes.start('me', { specId: null })).status).toBe('STARTING');
    await changed.sweeper.start();
    await calm();
    expect((await members()).some(({ id }) => before.includes(id))).toBe(false);
    expect(await members()).toHaveLength(2);
    await changed.shutdown();
    grow();
    const none = boot([{ ...warm, pool: { size: 0 } }]);
    await none.sweeper.start();
    await calm();
    expect(await members()).toEqual([]);
    expect(engine.list()).toEqual([]);
  });

  test('does not remove a member that a start claims at the same time', async () => {
    const { boot, members, start, engine, store, clock, logged, sandboxes } = await filled();
    const before = (await members()).map(({ id }) => id);
    clock.advance(60_000);
    await calm();
    const pooled = store.sandboxes.pooled.bind(store.sandboxes);
    let mine: Promise<Sandbox> | null = null;
    store.sandboxes.pooled = async () => {
      const seen = await pooled();
      if (mine === null) await (mine = start());
      return seen;
    };
    const without = boot([{ ...warm, pool: { size: 0 } }]);
    await without.sweeper.start();
    await calm();
    const { id, instanceId } = await (mine ?? start());
    expect(before).toContain(instanceId);
    expect(await sandboxes.get('me', id)).toMatchObject({ status: 'RUNNING' });
    expect(before.map((member) => engine.inspect(member).state)).toEqual(before.map((member) => (member === instanceId ? 'running' : 'absent')));
    expect(logged.filter((words) => words === 'a pool member was removed')).toHaveLength(1);
  });

  test('gives away its last member after another process has claimed all others', async () => {
    const many = { ...warm, pool: { size: 10 } };
    const { boot, members, start, pass } = await filled({ specs: [many] });
    await pass(5);
    expect((await members()).map(({ status }) => status)).toEqual(Array.from({ length: 10 }, () => 'RUNNING'));
    const other = boot();
    other.pool.open();
    for (let count = 0; count < 9; count += 1) expect((await other.sandboxes.start('you', { specId: null })).status).toBe('RUNNING');
    expect((await start()).status).toBe('RUNNING');
  });

  test('backs off while starts fail, and is filled when they succeed again', async () => {
    const { engine, members, pass, start } = await filled();
    engine.refused.add('warm');
    await Promise.all([start(), start()]);
    const before = engine.calls.provide;
    await pass(63);
    const tries = engine.calls.provide - before;
    expect(tries).toBeGreaterThanOrEqual(5);
    expect(tries).toBeLessThanOrEqual(14);
    engine.refused.clear();
    await pass(130);
    expect((await members()).map(({ status }) => status)).toEqual(['RUNNING', 'RUNNING']);
    expect(engine.list().filter(({ state }) => state === 'running').length).toBe(2);
  });

  test('counts against no limit until a member is claimed', async () => {
    const { start, writes, sandboxes } = await filled({ limits: { runningPerOwner: 1, running: 2, existing: 2 } });
    const mine = await start();
    expect(mine.status).toBe('RUNNING');
    await expect(start()).rejects.toMatchObject({ context: { limit: 'running_per_owner' } });
    await start('you');
    await expect(start('them')).rejects.toMatchObject({ context: { limit: 'running' } });
    await sandboxes.delete('me', mine.id);
    await start('them');
    expect(writes.filter(({ member }) => member !== null)).toHaveLength(3);
  });

  test('is not overfilled by several processes', async () => {
    const { boot, members, store } = await filled();
    const others = [boot(), boot()];
    await Promise.all(others.map(({ sweeper }) => sweeper.start()));
    await calm();
    await Promise.all(others.map(({ sandboxes }) => sandboxes.start('me', { specId: null })));
    await calm();
    expect(await members()).toHaveLength(2);
    expect((await store.sandboxes.scan(null, 100)).filter(countsAsRunning)).toHaveLength(4);
  });

  test('is filled separately by two processes with different versions of the spec', async () => {
    const { boot, members, writes, pass, shutdown } = await filled();
    const other = boot([{ ...warm, initialEnv: { NEW: '1' }, pool: { size: 1 } }]);
    await other.sweeper.start();
    await calm();
    const contents = async () => (await members()).map(({ spec }) => spec.initialEnv.NEW ?? '').toSorted();
    expect(await contents()).toEqual(['', '', '1']);
    const before = writes.length;
    await pass(30);
    expect(writes.length).toBe(before);
    await shutdown();
    await pass(35);
    expect(await contents()).toEqual(['1']);
  });
});
