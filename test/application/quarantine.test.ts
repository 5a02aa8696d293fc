import { describe, expect, test } from 'vitest';
import { newPoolMember, poolFingerprint } from '../../src/domain/pool-plan.ts';
import { quarantineOwner } from '../../src/domain/quarantine.ts';
import { nextVersion } from '../../src/domain/sandbox-lifecycle.ts';
import { sandboxSpec } from '../../src/domain/sandbox-spec.ts';
import { codeOf } from './code-of.ts';
import { calm, createWorld, type WorldOptions } from './world.ts';

const plain = sandboxSpec({ id: 'plain', ready: { probe: { kind: 'none' }, withinMs: 10_000 } });
const pooled = sandboxSpec({ id: 'pooled', ready: { probe: { kind: 'none' }, withinMs: 10_000 }, pool: { size: 1 } });
const hour = 3_600_000;
const stray = { id: 'sb-stray', spec: plain, sessionApiKey: 'key-of-the-stray', ownerId: 'ann' };
const root = { userId: 'root', access: 'admin' } as const;
const asKnown = { ownerId: null, specId: null };
const problem = (argument: string, reason: object) => ({ code: 'invalid_request', context: { problems: [{ argument, reason }] } });

/** A world whose runtime has sandboxes that the store does not know, after the grace period. */
async function withStrays(
  ids: readonly string[] = [stray.id], options: WorldOptions = {}, beforeStop: (world: ReturnType<typeof createWorld>) => void = () => {},
) {
  const world = createWorld({ specs: [plain, pooled], ...options });
  const skep = world.boot([plain]);
  for (const id of ids) world.engine.run({ ...stray, id });
  await skep.sweeper.sweep();
  beforeStop(world);
  world.clock.advance(2000);
  await skep.sweeper.sweep();
  await calm();
  const quarantine = async () => (await world.store.sandboxes.search(quarantineOwner, {}, { after: null, limit: 10 })).items;
  return { ...world, ...skep, quarantine };
}

describe('a sandbox that the store does not know', () => {
  test('is stopped, and its record has the spec and the owner that the runtime knows', async () => {
    const { engine, quarantine } = await withStrays();
    expect(engine.inspect(stray.id).state).toBe('stopped');
    expect(await quarantine()).toMatchObject([
      { id: stray.id, status: 'PAUSED', statusReason: { code: 'quarantined', keptForMs: 24 * hour, specId: 'plain', ownerId: 'ann' } },
    ]);
  });

  test('is not found by its owner, and is removed after a day', async () => {
    const { engine, sweeper, clock, sandboxes } = await withStrays();
    expect(await codeOf(sandboxes.get('ann', stray.id))).toBe('sandbox_not_found');
    clock.advance(24 * hour - 10_000);
    await sweeper.sweep();
    await calm();
    expect(engine.inspect(stray.id).state).toBe('stopped');
    clock.advance(20_000);
    await sweeper.sweep();
    await calm();
    expect(engine.inspect(stray.id).state).toBe('absent');
  });

  test('is kept for the configured time, also across a restart of the server', async () => {
    const { engine, boot, clock, mortal, quarantine } = await withStrays([stray.id], { quarantineForMs: 3 * hour });
    mortal.die();
    const next = boot([plain]);
    clock.advance(3 * hour - 10_000);
    await next.sweeper.sweep();
    await calm();
    expect(engine.inspect(stray.id).state).toBe('stopped');
    clock.advance(20_000);
    await next.sweeper.sweep();
    await calm();
    expect([engine.inspect(stray.id).state, await quarantine()]).toEqual(['absent', []]);
  });

  test('has a new grace period if the clock is set back', async () => {
    const { quarantine, clock, sweeper } = await withStrays([stray.id], {}, (world) => world.clock.jump(-hour));
    expect(await quarantine()).toEqual([]);
    clock.advance(2000);
    await sweeper.sweep();
    expect(await quarantine()).toMatchObject([{ id: stray.id }]);
  });

  test('is removed after the grace period if the quarantine time is 0', async () => {
    const { engine, quarantine } = await withStrays([stray.id], { quarantineForMs: 0 });
    expect([engine.inspect(stray.id).state, await quarantine()]).toEqual(['absent', []]);
  });

  test('enters quarantine in a later sweep if the runtime does not answer, without delaying others', async () => {
    const world = createWorld({ specs: [plain] });
    const { sweeper } = world.boot();
    for (const id of ['sb-stray-1', 'sb-stray-2']) world.engine.run({ ...stray, id });
    await sweeper.sweep();
    world.clock.advance(2000);
    world.faults.plan({ call: 'keptLaunch', what: 'timeout', when: 'before' });
    const ids = async () => (await world.store.sandboxes.search(quarantineOwner, {}, { after: null, limit: 10 })).items.map(({ id }) => id).toSorted();
    await sweeper.sweep();
    expect(await ids()).toEqual(['sb-stray-2']);
    await sweeper.sweep();
    expect(await ids()).toEqual(['sb-stray-1', 'sb-stray-2']);
  });
});

describe('quarantine', () => {
  test('stops a sandbox later if the runtime refuses the first stop', async () => {
    const w = await withStrays([stray.id], {}, ({ faults }) => faults.plan({ call: 'stop', what: 'unavailable', when: 'before' }));
    expect(w.engine.inspect(stray.id).state).toBe('running');
    for (let minutes = 0; minutes < 10; minutes += 1) {
      w.clock.advance(60_000);
      await calm();
    }
    expect(w.engine.inspect(stray.id).state).toBe('stopped');
    expect(await w.sandboxes.adopt(root, stray.id, asKnown)).toMatchObject({ status: 'PAUSED' });
  });

  test('drops a sandbox that vanishes before it is stopped, and never reports it as RUNNING', async () => {
    const w = await withStrays([stray.id], {}, ({ engine, store }) => {
      const insert = store.sandboxes.insert.bind(store.sandboxes);
      store.sandboxes.insert = async (...given) => {
        engine.vanish(stray.id);
        return await insert(...given);
      };
    });
    await calm();
    expect(await w.quarantine()).toEqual([]);
    const log = await w.store.events.read({ ownerId: quarantineOwner }, 0, 100);
    expect(log.map(({ data }) => data)).toMatchObject([{ to: 'PAUSING' }, { to: 'MISSING' }, { to: null }]);
  });

  test('does not count toward the maximum life of an adopted sandbox', async () => {
    const rest = { freezeAfterMs: null, stopAfterMs: null, deleteAfterMs: null, maxLifeMs: 8 * hour };
    const brief = sandboxSpec({ ...plain, id: 'brief', rest });
    const world = createWorld({ specs: [brief] });
    const { sweeper, sandboxes } = world.boot([brief]);
    world.engine.run(stray);
    const look = async (ms: number) => {
      world.clock.advance(ms);
      await sweeper.sweep();
      await calm();
    };
    await look(0);
    await look(2000);
    await look(10 * hour);
    await sandboxes.adopt(root, stray.id, { ownerId: 'me', specId: 'brief' });
    await look(7 * hour);
    expect(world.engine.inspect(stray.id).state).toBe('stopped');
    await look(2 * hour);
    expect(world.engine.inspect(stray.id).state).toBe('absent');
  });
});

describe('adoption', () => {
  test('is required before a resume, also for an administrator', async () => {
    const { sandboxes, engine } = await withStrays();
    expect(await codeOf(sandboxes.resume(root, stray.id))).toBe('sandbox_in_quarantine');
    expect(engine.inspect(stray.id).state).toBe('stopped');
    await sandboxes.adopt(root, stray.id, asKnown);
    expect(await sandboxes.resume(root, stray.id)).toMatchObject({ ownerId: 'ann', spec: plain, status: 'RUNNING' });
  });

  test('restores the owner, the spec and the key that the runtime knows', async () => {
    const { sandboxes, engine, store, sweeper, clock } = await withStrays();
    expect(await sandboxes.adopt(root, stray.id, asKnown)).toMatchObject({
      id: stray.id, ownerId: 'ann', spec: plain, status: 'PAUSED', pauseKind: 'stop', statusReason: { code: 'adopted' }, sessionApiKey: stray.sessionApiKey,
    });
    clock.advance(30 * hour);
    await sweeper.sweep();
    await calm();
    expect(await sandboxes.resume('ann', stray.id)).toMatchObject({ status: 'RUNNING' });
    expect(engine.inspect(stray.id).state).toBe('running');
    expect((await store.events.read({ ownerId: 'ann' }, 0, 10))[0]).toMatchObject({ kind: 'sandbox_moved', reason: { code: 'adopted' }, data: { to: 'PAUSED' } });
  });

  test('uses the given owner and spec, and requires them if the runtime does not know them', async () => {
    const { sandboxes, runtime } = await withStrays();
    runtime.keptLaunch = async () => ({ specId: null, ownerId: null, fixedEnv: {} });
    await expect(sandboxes.adopt(root, stray.id, asKnown)).rejects.toMatchObject(problem('ownerId', { code: 'not_known_to_runtime' }));
    await expect(sandboxes.adopt(root, stray.id, { ownerId: 'bob', specId: null })).rejects.toMatchObject(problem('sandboxSpecId', { code: 'not_known_to_runtime' }));
    expect(await codeOf(sandboxes.adopt(root, stray.id, { ownerId: 'bob', specId: 'none' }))).toBe('invalid_request');
    expect(await sandboxes.adopt(root, stray.id, { ownerId: 'bob', specId: 'plain' })).toMatchObject({ ownerId: 'bob', spec: plain });
  });

  test('succeeds only once, and fails for a sandbox that is not in quarantine', async () => {
    const { sandboxes } = await withStrays();
    const { id } = await sandboxes.start('me', { specId: null });
    await expect(sandboxes.adopt(root, id, { ownerId: 'you', specId: null })).rejects.toMatchObject(problem('id', { code: 'not_in_quarantine' }));
    expect(await codeOf(sandboxes.adopt('me', stray.id, asKnown)), 'by no administrator').toBe('sandbox_not_found');
    const both = await Promise.allSettled([sandboxes.adopt(root, stray.id, asKnown), sandboxes.adopt(root, stray.id, { ownerId: 'bob', specId: null })]);
    expect(both.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected']);
  });
});

/** A server that filled its pool and died. */
async function withPool() {
  const world = createWorld({ specs: [pooled] });
  const first = world.boot();
  await first.sweeper.sweep();
  await calm();
  const [pool] = await world.store.sandboxes.pooled();
  if (pool === undefined) throw new Error('the pool is empty');
  first.mortal.die();
  return { ...world, instanceId: pool.sandbox.instanceId };
}

describe('a pool of an earlier process', () => {
  test('gives away no member if the runtime has sandboxes that the store does not know', async () => {
    const { boot, engine, store, instanceId } = await withPool();
    engine.run({ ...stray, spec: pooled });
    const next = boot();
    await next.sweeper.sweep();
    const started = await next.sandboxes.start('bob', { specId: null });
    await calm();
    expect(started.instanceId).not.toBe(instanceId);
    expect(await store.sandboxes.findByInstance(instanceId)).toMatchObject({ ownerId: quarantineOwner, status: 'PAUSED' });
    expect(engine.inspect(instanceId).state).toBe('stopped');
  });

  test('gives away no member before the first sweep, because the store may be older than the runtime', async () => {
    const { boot, instanceId } = await withPool();
    const next = boot();
    expect((await next.sandboxes.start('bob', { specId: null })).instanceId).not.toBe(instanceId);
  });

  test('gives away no member that the reconciler writes while it is put in quarantine', async () => {
    const { boot, engine, store, instanceId } = await withPool();
    engine.run({ ...stray, spec: pooled });
    const next = boot();
    const replace = store.sandboxes.replace.bind(store.sandboxes);
    store.sandboxes.replace = async (sandbox, events) => {
      store.sandboxes.replace = replace;
      const member = await store.sandboxes.find(sandbox.id);
      if (member !== null) await replace(nextVersion(member, member.updatedAt, {}));
      return await replace(sandbox, events);
    };
    await next.sweeper.sweep();
    expect((await next.sandboxes.start('bob', { specId: null })).instanceId).not.toBe(instanceId);
    await calm();
    expect(await store.sandboxes.findByInstance(instanceId)).toMatchObject({ ownerId: quarantineOwner });
  });

  test('opens while another process adds members all the time', async () => {
    const { boot, engine, store, clock, instanceId } = await withPool();
    engine.run({ ...stray, spec: pooled });
    const next = boot();
    const replace = store.sandboxes.replace.bind(store.sandboxes);
    let added = 0;
    store.sandboxes.replace = async (sandbox, events) => {
      const outcome = await replace(sandbox, events);
      if (sandbox.ownerId !== quarantineOwner || sandbox.status !== 'PAUSING' || added === 20) return outcome;
      const member = newPoolMember({ id: `sb-new-${(added += 1)}`, spec: pooled, sessionApiKey: 'key', now: clock.now() });
      await store.sandboxes.insertPooled(member, poolFingerprint(pooled), 1);
      return outcome;
    };
    await next.sweeper.sweep();
    expect([next.pool.isOpen, added]).toEqual([true, 1]);
    expect(await store.sandboxes.findByInstance(instanceId)).toMatchObject({ ownerId: quarantineOwner });
  });

  test('gives away its members if the store knows all sandboxes', async () => {
    const { boot, instanceId } = await withPool();
    const next = boot();
    await next.sweeper.sweep();
    expect((await next.sandboxes.start('bob', { specId: null })).instanceId).toBe(instanceId);
  });
});
