import { expect, test } from 'vitest';
import { IdleForecast } from '../../src/application/sandboxes/idle-forecast.ts';
import { StartStatistics } from '../../src/application/sandboxes/start-statistics.ts';
import { unlimitedConversations } from '../../src/domain/conversation-limits.ts';
import { unlimited } from '../../src/domain/admission-limits.ts';
import type { Sandbox } from '../../src/domain/sandbox.ts';
import { someConversation, someSandbox } from '../contracts/records.ts';
import { sandboxSpec } from '../../src/domain/sandbox-spec.ts';
import { createManualClock } from '../doubles/memory/index.ts';
import { calm, createWorld } from './world.ts';

const rest = { freezeAfterMs: 1000, stopAfterMs: 5000, deleteAfterMs: 9000, maxLifeMs: null };
const resting = (id: string, changes: Partial<Sandbox>): Sandbox => someSandbox(id, { spec: { ...someSandbox(id).spec, rest }, ...changes });

function forecastOf(records: readonly Sandbox[], freeze = true) {
  const found = new Map(records.map((record) => [record.id, record]));
  const forecast = new IdleForecast({
    store: { sandboxes: { findMany: async (ids) => ids.flatMap((id) => found.get(id) ?? []) } }, runtime: { capabilities: { freeze } },
  });
  forecast.note(records);
  const shown = async (scope: string | null, limit: number) =>
    (await forecast.next(scope, limit)).map(({ sandbox, action }) => `${sandbox.id} ${action.tier} ${action.at}`);
  return { found, shown };
}

const records = [
  resting('stopped', { status: 'PAUSED', pauseKind: 'stop', statusSince: 10_000 }),
  resting('running', { status: 'RUNNING', lastActiveAt: 10_000 }),
  resting('frozen', { status: 'PAUSED', pauseKind: 'freeze', statusSince: 10_000 }),
  resting('bobs', { status: 'RUNNING', lastActiveAt: 9_000, ownerId: 'bob' }),
  resting('starting', { status: 'STARTING' }),
];

test('the forecast lists the soonest actions first, for one owner or for all owners', async () => {
  const { shown } = forecastOf(records);
  expect(await shown('ann', 9)).toEqual(['running freeze 11000', 'frozen stop 15000', 'stopped delete 19000']);
  expect(await shown(null, 2)).toEqual(['bobs freeze 10000', 'running freeze 11000']);
  expect(await forecastOf(records, false).shown('bob', 9)).toEqual(['bobs stop 10000']);
});

test('the forecast uses the current records', async () => {
  const { found, shown } = forecastOf(records);
  found.set('running', resting('running', { status: 'RUNNING', lastActiveAt: 20_000 }));
  found.set('frozen', resting('frozen', { status: 'PAUSED', pauseKind: 'freeze', deletedAt: 1 }));
  expect(await shown('ann', 9)).toEqual(['stopped delete 19000', 'running freeze 21000']);
});

test('the overview lists a sandbox and a conversation that start for more than 60 seconds', async () => {
  const { clock, store, boot } = createWorld();
  const { overview } = boot();
  const listed = async () => {
    const { failedOrSlowSandboxes: troubledSandboxes, failedOrSlowConversations: troubledConversations } = await overview('ann');
    return [...troubledSandboxes, ...troubledConversations].map(({ id }) => id);
  };
  const now = clock.now();
  await store.sandboxes.insert(someSandbox('sb', { status: 'STARTING', statusSince: now }), unlimited);
  await store.conversations.insert(someConversation('conv', { startStatus: 'WORKING', createdAt: now }), undefined, [], unlimitedConversations);
  clock.advance(60_000);
  expect(await listed()).toEqual([]);
  clock.advance(1);
  expect(await listed()).toEqual(['sb', 'conv']);
});

test('start statistics count by owner for one hour, with percentiles of successful starts', () => {
  const clock = createManualClock();
  const starts = new StartStatistics(clock);
  const begun = clock.now();
  for (let ms = 100; ms <= 2000; ms += 100) {
    const from = someSandbox('sb', { status: 'STARTING', createdAt: clock.now() - ms });
    starts.note(from, { ...from, status: 'RUNNING' });
  }
  const failing = someSandbox('sb', { status: 'STARTING', ownerId: 'bob' });
  starts.note(failing, { ...failing, status: 'ERROR' });
  starts.note(null, someSandbox('sb', { status: 'RUNNING', createdAt: clock.now() - 5, ownerId: 'cyd' }));
  // Neither ends a start: a resume, and a start that begins.
  starts.note(someSandbox('sb', { status: 'RESUMING' }), someSandbox('sb', { status: 'RUNNING' }));
  starts.note(null, someSandbox('sb', { status: 'STARTING' }));
  expect(starts.summary('ann')).toEqual({ since: begun, succeeded: 20, failed: 0, fromPool: 0, p50Ms: 1000, p95Ms: 1900 });
  expect(starts.summary('bob')).toMatchObject({ succeeded: 0, failed: 1, p50Ms: null, p95Ms: null });
  expect(starts.summary('cyd')).toMatchObject({ succeeded: 1, fromPool: 1, p50Ms: 5, p95Ms: 5 });
  expect(starts.summary(null)).toMatchObject({ succeeded: 21, failed: 1 });
  clock.advance(3_600_001);
  expect(starts.summary(null)).toMatchObject({ since: begun + 1, succeeded: 0, failed: 0, p50Ms: null });
});

test('start statistics say since when they count, if there are more starts than they keep', () => {
  const clock = createManualClock();
  const starts = new StartStatistics(clock);
  const begun = clock.now();
  const start = someSandbox('sb', { status: 'RUNNING' });
  for (let count = 1; count <= 2000; count += 1) {
    starts.note(null, start);
    clock.advance(1);
  }
  expect(starts.summary(null)).toMatchObject({ since: begun, succeeded: 2000 });
  starts.note(null, start);
  expect(starts.summary(null)).toMatchObject({ since: begun + 1, succeeded: 2000 });
});

test('a pool report counts hits and misses, and has the last failure of a member', async () => {
  const { engine, boot } = createWorld({ specs: [sandboxSpec({ id: 'warm', pool: { size: 2 } })] });
  const { pool, sweeper, sandboxes } = boot();
  await sweeper.start();
  await calm();
  await Promise.all([1, 2, 3].map(() => sandboxes.start('me', { specId: null })));
  expect(await pool.report()).toMatchObject([{ specId: 'warm', target: 2, hits: 2, misses: 1, lastFailure: null }]);
  await calm();
  expect(await pool.report()).toMatchObject([{ running: 2, starting: 0 }]);
  for (const { id } of engine.list()) engine.crash(id);
  await calm();
  expect((await pool.report())[0]?.lastFailure).not.toBeNull();
});
