import { describe, expect, test } from 'vitest';
import type { SandboxLimits } from '../../src/domain/admission-limits.ts';
import { codeOf } from './code-of.ts';
import { someConversation } from '../contracts/records.ts';
import { calm, createWorld, type WorldOptions } from './world.ts';

const minIdleMs = 5 * 60_000;

async function full(limits: Partial<SandboxLimits>, whenFull: WorldOptions['whenFull'] & string, owners: readonly string[] = ['me', 'me']) {
  const world = createWorld({ limits, whenFull });
  const skep = world.boot();
  await skep.sweeper.start();
  const ids: string[] = [];
  for (const owner of owners) {
    world.clock.advance(10);
    ids.push((await skep.sandboxes.start(owner, { specId: null })).id);
    await calm();
  }
  if (whenFull === 'pause_idle') world.clock.advance(minIdleMs);
  const running = async () => (await world.store.sandboxes.scan(null, 100)).filter(({ status, deletedAt }) => deletedAt === null && status === 'RUNNING').length;
  return { ...world, ...skep, ids, running };
}

describe('a full deployment', () => {
  test.each([
    ['running_per_owner', { runningPerOwner: 2 }],
    ['running', { running: 2 }],
    ['existing_per_owner', { existingPerOwner: 2 }],
    ['existing', { existing: 2 }],
  ] as const)('refuses a start by default and names the limit %s', async (limit, limits) => {
    const { sandboxes, running } = await full(limits, 'refuse');
    await expect(sandboxes.start('me', { specId: null })).rejects.toMatchObject({ code: 'sandbox_limit_reached', context: { limit, max: 2 } });
    expect(await running()).toBe(2);
  });

  test('with `pause_idle` freezes the owner\'s longest idle sandbox, and the reason names the new one', async () => {
    const { sandboxes, ids, clock } = await full({ runningPerOwner: 2 }, 'pause_idle', ['you', 'me', 'me']);
    clock.advance(10);
    await sandboxes.resume('me', ids[1] ?? '');
    clock.advance(10);
    const third = await sandboxes.start('me', { specId: null });
    await calm();
    expect(await sandboxes.get('me', ids[2] ?? '')).toMatchObject({ status: 'PAUSED', pauseKind: 'freeze', statusReason: { code: 'made_room', forSandbox: third.id } });
    expect(await sandboxes.get('me', ids[1] ?? '')).toMatchObject({ status: 'RUNNING' });
    expect(await sandboxes.get('you', ids[0] ?? '')).toMatchObject({ status: 'RUNNING' });
    clock.advance(minIdleMs);
    expect(await sandboxes.resume('me', ids[2] ?? '')).toMatchObject({ status: 'RUNNING' });
    expect(await sandboxes.get('me', ids[1] ?? '')).toMatchObject({ status: 'PAUSED' });
  });

  test('pauses only one sandbox for a start, even if the freeze takes long', async () => {
    const { sandboxes, engine, store, pass } = await full({ running: 4 }, 'pause_idle', ['a', 'b', 'c', 'd']);
    engine.close('freeze');
    const refused = codeOf(sandboxes.start('me', { specId: null }));
    await pass(30);
    expect(await refused).toBe('sandbox_limit_reached');
    engine.open('freeze');
    await calm();
    const statuses = (await store.sandboxes.scan(null, 100)).map(({ status }) => status);
    expect(statuses.toSorted()).toEqual(['PAUSED', 'RUNNING', 'RUNNING', 'RUNNING']);
  });

  test('freezes the longest idle sandbox of all owners if the limit is for all owners', async () => {
    const { sandboxes, ids } = await full({ running: 2 }, 'pause_idle', ['you', 'me']);
    await sandboxes.start('me', { specId: null });
    expect(await sandboxes.get('you', ids[0] ?? '')).toMatchObject({ status: 'PAUSED' });
  });

  test('freezes an idle sandbox also after the clock was set back, but not one that was resumed since then', async () => {
    const { sandboxes, clock, ids: [resumed = '', idle = ''] } = await full({ running: 2 }, 'pause_idle');
    clock.jump(-60 * 60_000);
    await sandboxes.pause('me', resumed);
    await sandboxes.resume('me', resumed);
    await sandboxes.start('me', { specId: null });
    expect(await sandboxes.get('me', resumed)).toMatchObject({ status: 'RUNNING' });
    expect(await sandboxes.get('me', idle)).toMatchObject({ status: 'PAUSED', statusReason: { code: 'made_room' } });
  });

  test('does not freeze a sandbox that was active recently, or whose agent is working', async () => {
    const { sandboxes, store, clock, ids } = await full({ running: 2 }, 'pause_idle', ['you', 'me']);
    const [yours = '', mine = ''] = ids;
    await store.sandboxes.touch(mine, clock.now() - minIdleMs + 1);
    const turn = { messageId: 'm', message: { content: [] }, sandboxVersion: 0 };
    const working = someConversation('conv', { ownerId: 'you', sandboxId: yours, startStatus: 'READY', executionStatus: 'running', turn });
    await store.conversations.insert(working);
    expect(await codeOf(sandboxes.start('me', { specId: null }))).toBe('sandbox_limit_reached');
    clock.advance(1);
    expect(await codeOf(sandboxes.start('me', { specId: null }))).toBeNull();
    expect(await sandboxes.get('me', mine)).toMatchObject({ status: 'PAUSED' });
    expect(await sandboxes.get('you', yours)).toMatchObject({ status: 'RUNNING' });
  });

  test('refuses a start at a limit of existing sandboxes, or if the runtime refuses to freeze', async () => {
    for (const limits of [{ existing: 2 }, { existingPerOwner: 2 }]) {
      const existing = await full(limits, 'pause_idle');
      expect(await codeOf(existing.sandboxes.start('me', { specId: null }))).toBe('sandbox_limit_reached');
      expect(await existing.running()).toBe(2);
    }
    const stuck = await full({ running: 2 }, 'pause_idle');
    stuck.faults.plan(...Array.from({ length: 2 }, () => ({ call: 'freeze', what: 'unavailable' as const, when: 'before' as const })));
    expect(await codeOf(stuck.sandboxes.start('me', { specId: null }))).toBe('sandbox_limit_reached');
    expect(await stuck.running()).toBe(2);
  });

  test('starts the new sandbox if another caller pauses the chosen one first', async () => {
    const { sandboxes, store, ids } = await full({ running: 2 }, 'pause_idle');
    const longestIdle = store.sandboxes.longestIdle.bind(store.sandboxes);
    let quicker = true;
    store.sandboxes.longestIdle = async (...asked) => {
      const idle = await longestIdle(...asked);
      if (quicker) await sandboxes.pause('me', idle[0]?.id ?? '', 'stop');
      quicker = false;
      return idle;
    };
    const third = await sandboxes.start('me', { specId: null });
    await calm();
    expect(await Promise.all([...ids, third.id].map(async (id) => (await sandboxes.get('me', id)).status))).toEqual(['PAUSED', 'RUNNING', 'RUNNING']);
  });

  test('resumes a sandbox even if the limit of existing sandboxes is reached', async () => {
    const { sandboxes, ids } = await full({ existing: 2, existingPerOwner: 2 }, 'refuse');
    await sandboxes.pause('me', ids[0] ?? '', 'stop');
    expect(await sandboxes.resume('me', ids[0] ?? '')).toMatchObject({ status: 'RUNNING' });
  });

  test('never runs more sandboxes than the limit, even with many starts at once', async () => {
    for (const whenFull of ['refuse', 'pause_idle'] as const) {
      const { sandboxes, writes, running } = await full({ running: 3 }, whenFull);
      const before = writes.length;
      const starts = await Promise.all(Array.from({ length: 10 }, () => codeOf(sandboxes.start('me', { specId: null }))));
      await calm();
      expect(await running()).toBeLessThanOrEqual(3);
      expect(starts.filter((code) => code === null).length).toBeGreaterThan(0);
      expect(writes.length).toBeGreaterThan(before);
    }
  });
});
