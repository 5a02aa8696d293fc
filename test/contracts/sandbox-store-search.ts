import { deepEqual, equal } from 'node:assert/strict';
import { unlimited } from '../../src/domain/admission-limits.ts';
import { type Sandbox, sandboxStatuses } from '../../src/domain/sandbox.ts';
import type { SandboxStore } from '../../src/ports/sandbox-store.ts';
import type { ContractCase } from './contract.ts';
import { nextVersion, somePooled, someSandbox, someSpec, someTime } from './records.ts';
import { allPages, idsOf, numbers, purgeAll, storeCase, type StoreHarness } from './store.ts';


/** Searches: pages, filters, the sweep and the purge. */
export function sandboxSearchCases(harness: StoreHarness): ContractCase[] {
  return [...searchCases(harness), ...countCases(harness), ...idleCases(harness), ...pagingCases(harness), ...sweepCases(harness)];
}

function countCases(harness: StoreHarness): ContractCase[] {
  return [
    storeCase(harness, "counts each owner's sandboxes by status", async ([{ sandboxes }]) => {
      await fill(sandboxes, [
        someSandbox('a', { status: 'RUNNING' }),
        someSandbox('b', { status: 'RUNNING' }),
        someSandbox('c', { status: 'ERROR' }),
        someSandbox('gone', { status: 'ERROR', deletedAt: someTime }),
        someSandbox('bobs', { status: 'RUNNING', ownerId: 'bob' }),
      ]);
      await sandboxes.insertPooled(somePooled('pooled'), 'f', 9);
      const sorted = async (scope: string | null): Promise<string[]> =>
        (await sandboxes.countByStatus(scope)).map(({ ownerId, status, count }) => `${ownerId} ${status} ${count}`).toSorted();
      deepEqual(await sorted(null), ['ann ERROR 1', 'ann RUNNING 2', 'bob RUNNING 1']);
      deepEqual(await sorted('bob'), ['bob RUNNING 1']);
      deepEqual(await sandboxes.countByStatus('cyd'), []);
    }),
    storeCase(harness, 'lists failed sandboxes and slow starts, the latest status first', async ([{ sandboxes }]) => {
      await fill(sandboxes, [
        someSandbox('failed', { status: 'ERROR', statusSince: someTime + 5 }),
        someSandbox('lost', { status: 'MISSING', statusSince: someTime + 9 }),
        someSandbox('slow', { status: 'STARTING', statusSince: someTime + 1 }),
        someSandbox('late', { status: 'RESUMING', statusSince: someTime + 2 }),
        someSandbox('quick', { status: 'STARTING', statusSince: someTime + 3 }),
        someSandbox('fine', { status: 'RUNNING', statusSince: someTime }),
        someSandbox('gone', { status: 'ERROR', deletedAt: someTime }),
        someSandbox('bobs', { status: 'ERROR', statusSince: someTime + 7, ownerId: 'bob' }),
      ]);
      await sandboxes.insertPooled(somePooled('pooled', { status: 'ERROR' }), 'f', 9);
      const found = async (scope: string | null, limit: number): Promise<string[]> => idsOf(await sandboxes.findFailedOrSlow(scope, someTime + 3, limit));
      deepEqual(await found('ann', 100), ['lost', 'failed', 'late', 'slow']);
      deepEqual(await found(null, 2), ['lost', 'bobs']);
      deepEqual(await found('cyd', 100), []);
    }),
  ];
}

function searchCases(harness: StoreHarness): ContractCase[] {
  return [
    storeCase(harness, "lists an owner's sandboxes newest first, without deleted ones", async ([{ sandboxes }]) => {
      await fill(sandboxes, [
        someSandbox('old', { createdAt: someTime }),
        someSandbox('new', { createdAt: someTime + 2 }),
        someSandbox('mid', { createdAt: someTime + 1 }),
        someSandbox('gone', { deletedAt: someTime }),
        someSandbox('bobs', { ownerId: 'bob' }),
      ]);
      const page = await sandboxes.search('ann', {}, { after: null, limit: 100 });
      deepEqual(idsOf(page.items), ['new', 'mid', 'old']);
      equal(page.next, null);
      deepEqual(page.items[2], someSandbox('old', { createdAt: someTime }));
      deepEqual(await sandboxes.search('cyd', {}, { after: null, limit: 100 }), { items: [], next: null });
      const owners = new Set((await sandboxes.search(null, {}, { after: null, limit: 100 })).items.map(({ ownerId }) => ownerId));
      deepEqual(owners, new Set(['ann', 'bob']));
    }),
    storeCase(harness, 'filters by status and spec', async ([{ sandboxes }]) => {
      const python = someSpec({ id: 'python' });
      await fill(sandboxes, [
        someSandbox('a', { status: 'RUNNING' }),
        someSandbox('b', { status: 'PAUSED' }),
        someSandbox('c', { status: 'RUNNING', spec: python }),
        someSandbox('d', { status: 'PAUSED', spec: python }),
        someSandbox('e', { status: 'PAUSED', spec: python, deletedAt: someTime }),
      ]);
      const found = async (filter: Parameters<SandboxStore['search']>[1]): Promise<string[]> =>
        idsOf((await sandboxes.search('ann', filter, { after: null, limit: 100 })).items);
      deepEqual(await found({ status: 'PAUSED' }), ['d', 'b']);
      deepEqual(await found({ specId: 'python' }), ['d', 'c']);
      deepEqual(await found({ specId: 'python', status: 'RUNNING' }), ['c']);
      deepEqual(await found({ specId: 'none' }), []);
      deepEqual(await found({ status: 'MISSING' }), []);
    }),
    storeCase(harness, 'filters by metadata, and requires every pair to match exactly', async ([{ sandboxes }]) => {
      const hostile = { [`it's "quoted" $.a[0]`]: '%_\\\u{1f600}', '0': '1' };
      await fill(sandboxes, [
        someSandbox('a', { metadata: { task: '7', user: 'ann' }, status: 'RUNNING' }),
        someSandbox('b', { metadata: { task: '7', user: 'Ann' } }),
        someSandbox('c', { metadata: hostile }),
        someSandbox('d', { metadata: { user: 'task', other: '7' } }),
        someSandbox('e'),
        someSandbox('f', { metadata: { task: '7' }, deletedAt: someTime }),
        someSandbox('bobs', { metadata: { task: '7' }, ownerId: 'bob' }),
      ]);
      const found = async (filter: Parameters<SandboxStore['search']>[1], scope: string | null = 'ann'): Promise<string[]> =>
        idsOf((await sandboxes.search(scope, filter, { after: null, limit: 100 })).items).toSorted();
      deepEqual(await found({ metadata: { task: '7' } }), ['a', 'b']);
      deepEqual(await found({ metadata: { task: '7', user: 'ann' } }), ['a']);
      deepEqual(await found({ metadata: { task: '7' }, status: 'RUNNING', specId: 'node' }), ['a']);
      deepEqual(await found({ metadata: { task: '7' } }, null), ['a', 'b', 'bobs']);
      deepEqual(await found({ metadata: hostile }), ['c']);
      deepEqual(await found({ metadata: { task: '' } }), []);
      deepEqual(await found({ metadata: {} }), ['a', 'b', 'c', 'd', 'e']);
      deepEqual((await sandboxes.find('c'))?.metadata, hostile);
      const first = await sandboxes.search('ann', { metadata: { task: '7' } }, { after: null, limit: 1 });
      const second = await sandboxes.search('ann', { metadata: { task: '7' } }, { after: first.next, limit: 1 });
      deepEqual([...idsOf(first.items), ...idsOf(second.items)], ['b', 'a']);
    }),
    storeCase(harness, 'returns the current state after a change through another connection', async (connections) => {
      const [{ sandboxes }] = connections;
      const other = connections.at(-1)?.sandboxes ?? sandboxes;
      const search = async (): Promise<readonly Sandbox[]> => (await sandboxes.search('ann', {}, { after: null, limit: 100 })).items;
      const sandbox = someSandbox('one');
      await fill(sandboxes, [sandbox]);
      deepEqual(await search(), [sandbox]);
      const running = nextVersion(sandbox, { status: 'RUNNING', updatedAt: someTime + 1 });
      await other.replace(running);
      deepEqual(await search(), [running]);
      await other.touch('one', someTime + 9);
      deepEqual(await search(), [{ ...running, lastActiveAt: someTime + 9 }]);
      await other.replace(nextVersion(running, { deletedAt: someTime + 10 }));
      deepEqual(await search(), []);
    }),
  ];
}

function idle(id: string, lastActiveAt: number, changes: Partial<Sandbox> = {}): Sandbox {
  return someSandbox(id, { status: 'RUNNING', lastActiveAt: someTime + lastActiveAt, ...changes });
}

function idleCases(harness: StoreHarness): ContractCase[] {
  return [
    storeCase(harness, 'returns the RUNNING sandboxes that have been idle longest', async ([{ sandboxes }]) => {
      await fill(sandboxes, [
        idle('c', 2),
        idle('b', 1),
        idle('a', 2),
        idle('bobs', 0, { ownerId: 'bob' }),
        idle('gone', 0, { deletedAt: someTime }),
        ...sandboxStatuses.flatMap((status) => (status === 'RUNNING' ? [] : idle(status, 0, { status }))),
      ]);
      await sandboxes.insertPooled(somePooled('p', { lastActiveAt: someTime }), 'f', 1);
      deepEqual(idsOf(await sandboxes.longestIdle('ann', 9)), ['b', 'a', 'c']);
      deepEqual(idsOf(await sandboxes.longestIdle('ann', 2)), ['b', 'a']);
      deepEqual(idsOf(await sandboxes.longestIdle(null, 2)), ['bobs', 'b']);
      deepEqual(await sandboxes.longestIdle('cyd', 9), []);
      await sandboxes.touch('b', someTime + 9);
      deepEqual(idsOf(await sandboxes.longestIdle('ann', 9)), ['a', 'c', 'b']);
    }),
  ];
}

function pagingCases(harness: StoreHarness): ContractCase[] {
  return [
    ...[1, 2, 3, 7, 10, 11, 100].map((limit) =>
      storeCase(harness, `lists rows with equal times once in pages of ${limit}`, async ([{ sandboxes }]) => {
        const rows = Array.from({ length: 10 }, (_, n) => someSandbox(`s${n}`, { createdAt: someTime + Math.floor(n / 4) }));
        await fill(sandboxes, rows.toReversed());
        const seen = await allPages((after) => sandboxes.search('ann', {}, { after, limit }));
        deepEqual(idsOf(seen), ['s9', 's8', 's7', 's6', 's5', 's4', 's3', 's2', 's1', 's0']);
        const oldestFirst = await allPages((after) => sandboxes.search('ann', { oldestFirst: true }, { after, limit }));
        deepEqual(idsOf(oldestFirst), idsOf(seen).toReversed());
      }),
    ),
    storeCase(harness, 'returns no next page if the last page is exactly full', async ([{ sandboxes }]) => {
      await fill(sandboxes, [someSandbox('one'), someSandbox('two')]);
      equal((await sandboxes.search('ann', {}, { after: null, limit: 2 })).next, null);
    }),
    ...[1, 2, 3].map((seed) =>
      storeCase(harness, `lists each unchanged row exactly once while others are added and deleted (${seed})`, async ([{ sandboxes }]) => {
        const below = numbers(seed);
        const row = (id: string): Sandbox => someSandbox(id, { createdAt: someTime + below(12) });
        const stay = Array.from({ length: 60 }, (_, n) => row(`stay-${n}`));
        const leave = Array.from({ length: 60 }, (_, n) => row(`leave-${n}`));
        await fill(sandboxes, [...stay, ...leave]);
        let come = 0;
        const seen = await allPages(
          (after) => sandboxes.search('ann', {}, { after, limit: 1 + below(9) }),
          async () => {
            for (let n = below(4); n > 0; n -= 1) await fill(sandboxes, [row(`come-${(come += 1)}`)]);
            const [left] = leave.splice(below(leave.length), 1);
            if (left !== undefined) await sandboxes.replace(nextVersion(left, { deletedAt: someTime }));
          },
        );
        equal(new Set(idsOf(seen)).size, seen.length, 'a row is shown twice');
        const shown = new Set(idsOf(seen));
        deepEqual(idsOf([...stay, ...leave]).filter((id) => !shown.has(id)), []);
      }),
    ),
  ];
}

function sweepCases(harness: StoreHarness): ContractCase[] {
  return [
    storeCase(harness, 'scans all records that are not removed, ordered by id', async ([{ sandboxes }]) => {
      await fill(sandboxes, [
        someSandbox('d', { status: 'ERROR' }),
        someSandbox('b', { deletedAt: someTime }),
        someSandbox('c', { deletedAt: someTime, removedAt: someTime }),
        someSandbox('a', { ownerId: 'bob', status: 'RUNNING' }),
      ]);
      deepEqual(idsOf(await sandboxes.scan(null, 100)), ['a', 'b', 'd']);
      deepEqual(idsOf(await sandboxes.scan(null, 2)), ['a', 'b']);
      deepEqual(idsOf(await sandboxes.scan('b', 2)), ['d']);
      deepEqual(idsOf(await sandboxes.scan('bb', 2)), ['d']);
      deepEqual(await sandboxes.scan('d', 2), []);
    }),
    storeCase(harness, 'purges only records that were removed before the given time', async ([{ sandboxes }]) => {
      await fill(sandboxes, [
        someSandbox('kept'),
        someSandbox('deleted', { deletedAt: someTime - 9 }),
        someSandbox('at', { deletedAt: someTime - 9, removedAt: someTime }),
        someSandbox('before', { deletedAt: someTime - 9, removedAt: someTime - 1 }),
      ]);
      await purgeAll(sandboxes, someTime);
      deepEqual(idsOf(await sandboxes.findMany(['kept', 'deleted', 'at', 'before'])).toSorted(), ['at', 'deleted', 'kept']);
    }),
    storeCase(harness, 'purges 450 records at once', async ([{ sandboxes }]) => {
      const rows = Array.from({ length: 450 }, (_, n) => someSandbox(`s${n}`, { deletedAt: someTime, removedAt: someTime }));
      await fill(sandboxes, [...rows, someSandbox('kept')]);
      await purgeAll(sandboxes, someTime + 1);
      equal(await sandboxes.find('s0'), null);
      equal(await sandboxes.find('s449'), null);
      deepEqual(idsOf(await sandboxes.scan(null, 100)), ['kept']);
    }),
  ];
}

async function fill(sandboxes: SandboxStore, rows: readonly Sandbox[]): Promise<void> {
  for (const row of rows) await sandboxes.insert(row, unlimited);
}
