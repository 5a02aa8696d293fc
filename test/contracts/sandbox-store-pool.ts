import { deepEqual, equal } from 'node:assert/strict';
import { unlimited } from '../../src/domain/admission-limits.ts';
import { sandboxStatuses } from '../../src/domain/sandbox.ts';
import type { ContractCase } from './contract.ts';
import { nextVersion, somePooled, someSandbox, someTime } from './records.ts';
import { idsOf, purgeAll, race, storeCase, type StoreHarness } from './store.ts';

const claim = { ownerId: 'ann', key: 'key-1', fingerprint: 'request-1' };
const handed = someSandbox('one', { instanceId: 'p', status: 'RUNNING' });

/** Pools: how they are filled, and how owners claim their members. */
export function sandboxPoolCases(harness: StoreHarness): ContractCase[] {
  return [...fillCases(harness), ...claimFromPoolCases(harness), ...apartCases(harness)];
}

function fillCases(harness: StoreHarness): ContractCase[] {
  return [
    storeCase(harness, 'fills a pool up to its size, separately for each version of the spec', async ([{ sandboxes }]) => {
      deepEqual(await sandboxes.insertPooled(somePooled('b', { createdAt: 2 }), 'f', 2), { kind: 'inserted' });
      deepEqual(await sandboxes.insertPooled(somePooled('a', { createdAt: 2, status: 'STARTING' }), 'f', 2), { kind: 'inserted' });
      deepEqual(await sandboxes.insertPooled(somePooled('c'), 'f', 2), { kind: 'full' });
      deepEqual(await sandboxes.insertPooled(somePooled('c', { createdAt: 1 }), 'g', 1), { kind: 'inserted' });
      deepEqual(await sandboxes.insertPooled(somePooled('d'), 'h', 0), { kind: 'full' });
      const members = (await sandboxes.pooled()).map(({ sandbox, fingerprint }) => [sandbox.id, fingerprint]);
      deepEqual(members, [['c', 'g'], ['a', 'f'], ['b', 'f']]);
      deepEqual((await sandboxes.pooled())[2]?.sandbox, somePooled('b', { createdAt: 2 }));
    }),
    storeCase(harness, 'adds a member once, even if the pool is full', async ([{ sandboxes }]) => {
      await sandboxes.insertPooled(somePooled('p'), 'f', 1);
      deepEqual(await sandboxes.insertPooled(somePooled('p', { status: 'ERROR' }), 'g', 1), { kind: 'inserted' });
      deepEqual(await sandboxes.pooled(), [{ sandbox: somePooled('p'), fingerprint: 'f' }]);
    }),
    storeCase(harness, "keeps a member's fingerprint, and frees its place when it is deleted", async ([{ sandboxes }]) => {
      await sandboxes.insertPooled(somePooled('p', { status: 'STARTING' }), 'f', 1);
      const running = nextVersion(somePooled('p', { status: 'RUNNING' }));
      await sandboxes.replace(running);
      deepEqual(await sandboxes.pooled(), [{ sandbox: running, fingerprint: 'f' }]);
      await sandboxes.replace(nextVersion(running, { deletedAt: someTime }));
      deepEqual(await sandboxes.pooled(), []);
      deepEqual(await sandboxes.insertPooled(somePooled('q'), 'f', 1), { kind: 'inserted' });
    }),
    storeCase(harness, 'never exceeds the size of a pool with 40 concurrent inserts', async (connections) => {
      const outcomes = await race(connections, 40, ({ sandboxes }, turn) => sandboxes.insertPooled(somePooled(`p${turn}`), 'f', 3));
      equal(outcomes.filter(({ kind }) => kind === 'inserted').length, 3);
      equal((await connections[0].sandboxes.pooled()).length, 3);
    }),
  ];
}

function claimFromPoolCases(harness: StoreHarness): ContractCase[] {
  return [
    storeCase(harness, "claimFromPool replaces the pool member by the owner's sandbox", async ([{ sandboxes }]) => {
      await sandboxes.insertPooled(somePooled('p'), 'f', 1);
      equal((await sandboxes.findByInstance('p'))?.id, 'p');
      deepEqual(await sandboxes.claimFromPool(handed, somePooled('p'), unlimited, claim), { kind: 'inserted' });
      deepEqual(await sandboxes.find('one'), handed);
      deepEqual(await sandboxes.findByInstance('p'), handed);
      equal(await sandboxes.find('p'), null);
      equal(await sandboxes.findByInstance('one'), null);
      deepEqual(await sandboxes.pooled(), []);
      deepEqual(idsOf((await sandboxes.search('ann', {}, { after: null, limit: 9 })).items), ['one']);
      deepEqual(await sandboxes.insertPooled(somePooled('q'), 'f', 1), { kind: 'inserted' });
    }),
    storeCase(harness, "claimFromPool returns stale and writes nothing if the member's state or version differs", async ([{ sandboxes }]) => {
      for (const status of sandboxStatuses) {
        if (status !== 'RUNNING') await sandboxes.insertPooled(somePooled(status.toLowerCase(), { status }), status, 1);
      }
      await sandboxes.insertPooled(somePooled('deleted', { deletedAt: someTime }), 'f', 1);
      await sandboxes.insertPooled(somePooled('p', { version: 3 }), 'f', 1);
      await sandboxes.insert(someSandbox('owned', { ownerId: 'bob', status: 'RUNNING' }), unlimited);
      const before = await sandboxes.scan(null, 100);
      for (const id of [...before.map((one) => one.id), 'nobody']) {
        for (const version of id === 'p' ? [1, 2, 4] : [1]) {
          deepEqual(await sandboxes.claimFromPool(handed, { id, version }, { ...unlimited, running: 0 }, claim), { kind: 'stale' });
        }
      }
      deepEqual(await sandboxes.scan(null, 100), before);
      deepEqual(await sandboxes.insert(someSandbox('two'), unlimited, { ...claim, fingerprint: 'other' }), { kind: 'inserted' });
    }),
    storeCase(harness, 'claimFromPool applies limits and idempotency keys', async ([{ sandboxes }]) => {
      await sandboxes.insertPooled(somePooled('p'), 'f', 1);
      for (const limit of ['runningPerOwner', 'running', 'existingPerOwner', 'existing'] as const) {
        equal((await sandboxes.claimFromPool(handed, somePooled('p'), { ...unlimited, [limit]: 0 }, claim)).kind, 'limit');
      }
      deepEqual(await sandboxes.pooled(), [{ sandbox: somePooled('p'), fingerprint: 'f' }]);
      await sandboxes.claimFromPool(handed, somePooled('p'), { ...unlimited, running: 1, existing: 1 }, claim);
      // The answer was lost, and the request is repeated, with the same id or with a new one.
      deepEqual(await sandboxes.claimFromPool(handed, somePooled('p'), unlimited, claim), { kind: 'inserted' });
      const anew = { ...handed, id: 'two' };
      deepEqual(await sandboxes.claimFromPool(anew, somePooled('p'), unlimited, claim), { kind: 'repeated', id: 'one' });
      deepEqual(await sandboxes.claimFromPool(anew, somePooled('p'), unlimited, { ...claim, fingerprint: 'other' }), { kind: 'conflict' });
      deepEqual(await sandboxes.claimFromPool(anew, somePooled('p'), unlimited), { kind: 'stale' });
      deepEqual(idsOf(await sandboxes.scan(null, 9)), ['one']);
    }),
    storeCase(harness, 'claimFromPool succeeds for one of 50 concurrent callers', async (connections) => {
      const [{ sandboxes }] = connections;
      for (let round = 0; round < 5; round += 1) {
        await sandboxes.insertPooled(somePooled(`p${round}`), 'f', 1);
        const outcomes = await race(connections, 50, (store, turn) =>
          store.sandboxes.claimFromPool(someSandbox(`s${round}-${turn}`, { instanceId: `p${round}` }), somePooled(`p${round}`), unlimited),
        );
        const winners = outcomes.flatMap(({ kind }, turn) => (kind === 'inserted' ? [`s${round}-${turn}`] : []));
        equal(winners.length, 1);
        equal((await sandboxes.findByInstance(`p${round}`))?.id, winners[0]);
      }
      equal((await sandboxes.scan(null, 100)).length, 5);
    }),
  ];
}

function apartCases(harness: StoreHarness): ContractCase[] {
  return [
    storeCase(harness, 'does not count pool members towards limits, and lists them for no owner', async ([{ sandboxes }]) => {
      for (let n = 0; n < 4; n += 1) await sandboxes.insertPooled(somePooled(`p${n}`), 'f', 4);
      const limits = { runningPerOwner: 1, running: 1, existingPerOwner: 1, existing: 1 };
      deepEqual(await sandboxes.insert(someSandbox('one', { status: 'RUNNING' }), limits), { kind: 'inserted' });
      deepEqual(idsOf((await sandboxes.search('ann', {}, { after: null, limit: 9 })).items), ['one']);
      deepEqual(idsOf(await sandboxes.longestIdle(null, 9)), ['one']);
      deepEqual(await sandboxes.insertPooled(somePooled('p5'), 'g', 1), { kind: 'inserted' });
      equal((await sandboxes.scan(null, 9)).length, 6);
    }),
    storeCase(harness, 'finds a record by its instance id until it is purged', async ([{ sandboxes }]) => {
      const sandbox = someSandbox('one', { instanceId: 'i', deletedAt: someTime });
      await sandboxes.insert(sandbox, unlimited);
      deepEqual(await sandboxes.findByInstance('i'), sandbox);
      await sandboxes.replace(nextVersion(sandbox, { removedAt: someTime }));
      equal((await sandboxes.findByInstance('i'))?.removedAt, someTime);
      await purgeAll(sandboxes, someTime + 1);
      equal(await sandboxes.findByInstance('i'), null);
    }),
  ];
}
