import { describe, expect, test } from 'vitest';
import { sandboxSpec } from '../../src/domain/sandbox-spec.ts';
import { someConversation } from '../contracts/records.ts';
import { codeOf } from './code-of.ts';
import { calm, createWorld, damageConversationsOf, type WorldOptions } from './world.ts';

const minute = 60_000;
const rest = { freezeAfterMs: null, stopAfterMs: null, deleteAfterMs: 14_400 * minute, maxLifeMs: null };
const kept = sandboxSpec({ id: 'kept', rest: { ...rest, deleteAfterMs: null } });
const spec = sandboxSpec({ id: 'plain', rest });
const warm = sandboxSpec({ id: 'warm', pool: { size: 2 } });
const used = (percent: number) => ({ totalBytes: 100, freeBytes: 100 - percent });

async function world(options: WorldOptions = {}) {
  const created = createWorld({ specs: [spec, kept, warm], ...options });
  const skep = created.boot();
  created.engine.disk = used(90);
  await skep.sweeper.start();
  const { sandboxes, store, clock, engine } = { ...created, ...skep };
  /** Starts `count` sandboxes and stops them, one minute apart. */
  const stopped = async (count: number, specId = 'plain'): Promise<string[]> => {
    const ids: string[] = [];
    for (let n = 0; n < count; n += 1) {
      clock.advance(minute);
      const { id } = await sandboxes.start('me', { specId });
      await calm();
      await sandboxes.pause('me', id, 'stop');
      ids.push(id);
    }
    return ids;
  };
  /** Lets them be idle for long enough. */
  const rests = async (): Promise<void> => {
    clock.advance(10 * minute);
    await calm();
  };
  /** Lets one sweep pass. */
  const sweep = async (): Promise<void> => {
    await skep.sweeper.sweep();
    await calm();
  };
  const existing = async () => (await sandboxes.search('me', {}, { after: null, limit: 100 })).items.map(({ id }) => id).toReversed();
  const members = async () => (await store.sandboxes.pooled()).length;
  return { ...created, ...skep, sandboxes, store, clock, engine, stopped, rests, sweep, existing, members };
}

const withoutPools = { specs: [spec, kept] };

describe('under disk pressure', () => {
  test('each sweep deletes the 3 longest idle sandboxes with a reason, until there is space', async () => {
    const { engine, store, stopped, rests, sweep, existing } = await world(withoutPools);
    const ids = await stopped(6);
    await rests();
    await sweep();
    expect(await existing(), 'at the limit nothing is deleted').toEqual(ids);
    engine.disk = used(93);
    await sweep();
    expect(await existing()).toEqual(ids.slice(3));
    for (const id of ids.slice(0, 3)) {
      const reason = { code: 'disk_pressure', usedPercent: 93, limitPercent: 90 };
      expect(await store.sandboxes.find(id)).toMatchObject({ statusReason: reason });
      expect(engine.inspect(id).state).toBe('absent');
      const events = await store.events.read({ ownerId: 'me' }, 0, 1000);
      expect(events.findLast(({ sandboxId }) => sandboxId === id)).toMatchObject({ actor: 'skep', reason, data: { from: 'PAUSED', to: null } });
    }
    engine.disk = used(80);
    await sweep();
    expect(await existing()).toEqual(ids.slice(3));
  });

  test('a sweep deletes no more while the runtime has not removed those deleted before', async () => {
    const { engine, clock, faults, stopped, rests, sweep, existing } = await world(withoutPools);
    const ids = await stopped(5);
    await rests();
    faults.plan(...Array.from({ length: 3 }, () => ({ call: 'remove', what: 'unavailable' as const, when: 'before' as const })));
    engine.disk = used(93);
    await sweep();
    expect(await existing()).toEqual(ids.slice(3));
    await sweep();
    expect(await existing()).toEqual(ids.slice(3));
    clock.advance(1000);
    await calm();
    await sweep();
    expect(await existing()).toEqual([]);
  });

  test('two sweeps at once in two processes delete no more than one sweep', async () => {
    const { boot, sweeper, engine, stopped, rests, existing } = await world(withoutPools);
    const ids = await stopped(6);
    await rests();
    const other = boot();
    engine.disk = used(93);
    await Promise.all([sweeper.sweep(), other.sweeper.sweep()]);
    await calm();
    expect(await existing()).toEqual(ids.slice(3));
  });

  test('sandboxes that run, have a waiting message, or have no delete rule are kept', async () => {
    const { engine, sandboxes, store, stopped, rests, sweep, existing } = await world(withoutPools);
    const [forGood = ''] = await stopped(1, 'kept');
    const [awaited = '', gone = ''] = await stopped(2);
    const { id: running } = await sandboxes.start('me', { specId: 'plain' });
    await calm();
    const queue = [{ messageId: 'm', message: { content: [] }, sandboxVersion: 0 }];
    await store.conversations.insert(
      someConversation('conv', { ownerId: 'me', sandboxId: awaited, startStatus: 'READY', executionStatus: 'idle', queue }),
    );
    await rests();
    engine.disk = used(93);
    for (let sweeps = 0; sweeps < 3; sweeps += 1) await sweep();
    expect(await existing()).toEqual([forGood, awaited, running]);
    expect(engine.inspect(gone).state).toBe('absent');
  });

  test('a sandbox with a damaged conversation is kept, and does not keep the sweep from the others', async () => {
    const { engine, store, logged, stopped, rests, sweep, existing } = await world(withoutPools);
    const [damaged = '', intact = ''] = await stopped(2);
    damageConversationsOf(store, damaged);
    await rests();
    engine.disk = used(93);
    await sweep();
    expect(await existing()).toEqual([damaged]);
    expect(engine.inspect(intact).state).toBe('absent');
    await sweep();
    const warning = 'a sandbox has a damaged conversation, so it counts as in use, and its changes are not kept; restore it from a backup';
    expect(logged.filter((line) => line === warning)).toHaveLength(1);
  });

  test('new starts are refused, but a repeated start is answered and a stopped sandbox resumes', async () => {
    const { engine, sandboxes, stopped, sweep } = await world({ ...withoutPools, whenFull: 'pause_idle' });
    const [id = ''] = await stopped(1);
    const claim = { ownerId: 'me', key: 'k', fingerprint: 'f' };
    const first = await sandboxes.start('me', { specId: null, claim });
    engine.disk = used(91);
    await sweep();
    await expect(sandboxes.start('me', { specId: null })).rejects.toMatchObject({ code: 'sandbox_limit_reached', context: { limit: 'disk', max: 90 } });
    expect((await sandboxes.start('me', { specId: null, claim })).id).toBe(first.id);
    expect(await sandboxes.resume('me', id)).toMatchObject({ status: 'RUNNING' });
    engine.disk = used(90);
    await sweep();
    expect(await codeOf(sandboxes.start('me', { specId: null }))).toBeNull();
  });

  test('pool members are deleted first, and pools are filled again after five minutes with space', async () => {
    const { engine, sandboxes, clock, stopped, rests, sweep, existing, members } = await world();
    await calm();
    expect(await members()).toBe(2);
    const ids = await stopped(1);
    await rests();
    engine.disk = used(93);
    await sweep();
    expect(await members()).toBe(0);
    expect(await existing()).toEqual(ids);
    expect(engine.list()).toHaveLength(1);
    expect(await codeOf(sandboxes.start('me', { specId: 'warm' }))).toBe('sandbox_limit_reached');
    engine.disk = used(50);
    await sweep();
    clock.advance(5 * minute - 1);
    await sweep();
    expect(await members()).toBe(0);
    clock.advance(1);
    await sweep();
    expect(await members()).toBe(2);
    expect(await existing()).toEqual(ids);
  });

  test('pools are filled again at once if the clock was set back after the pressure', async () => {
    const { engine, clock, sweep, members } = await world();
    await calm();
    engine.disk = used(93);
    await sweep();
    clock.jump(-60 * minute);
    await sweep();
    expect(await members(), 'under pressure').toBe(0);
    engine.disk = used(50);
    clock.jump(-60 * minute);
    await sweep();
    expect(await members()).toBe(2);
  });

  test('nothing is deleted or refused if the runtime does not report its disk usage', async () => {
    const { engine, sandboxes, faults, logged, stopped, rests, sweep, existing } = await world(withoutPools);
    const ids = await stopped(1);
    await rests();
    engine.disk = null;
    await sweep();
    engine.disk = used(99);
    faults.plan({ call: 'diskSpace', what: 'unavailable', when: 'before' });
    await sweep();
    expect(faults.planned).toEqual([]);
    expect(logged).toContain('the disk usage could not be read from the runtime');
    expect(await codeOf(sandboxes.start('me', { specId: null }))).toBeNull();
    expect((await existing())[0]).toBe(ids[0]);
  });
});
