import { deepEqual, equal } from 'node:assert/strict';
import { quarantineOwner } from '../../src/domain/quarantine.ts';
import { unlimited } from '../../src/domain/admission-limits.ts';
import { runningStatuses } from '../../src/domain/sandbox-lifecycle.ts';
import { type Sandbox, sandboxStatuses } from '../../src/domain/sandbox.ts';
import type { ContractCase } from './contract.ts';
import { nextVersion, someConversation, someSandbox, someTime } from './records.ts';
import { purgeAll, race, storeCase, type StoreHarness } from './store.ts';

const claim = { ownerId: 'ann', key: 'key-1', fingerprint: 'request-1' };

/** Admission: limits and claims. */
export function sandboxAdmissionCases(harness: StoreHarness): ContractCase[] {
  return [...limitCases(harness), ...admitCases(harness), ...claimCases(harness)];
}

function limitCases(harness: StoreHarness): ContractCase[] {
  return [
    storeCase(harness, 'refuses an insert over a limit, and names the limit', async ([{ sandboxes }]) => {
      const limits = { ...unlimited, runningPerOwner: 1, running: 2 };
      deepEqual(await sandboxes.insert(someSandbox('a1'), limits), { kind: 'inserted' });
      deepEqual(await sandboxes.insert(someSandbox('a2'), limits), {
        kind: 'limit',
        reached: { limit: 'running_per_owner', max: 1 },
      });
      deepEqual(await sandboxes.insert(someSandbox('b1', { ownerId: 'bob' }), limits), { kind: 'inserted' });
      deepEqual(await sandboxes.insert(someSandbox('c1', { ownerId: 'cyd' }), limits), {
        kind: 'limit',
        reached: { limit: 'running', max: 2 },
      });
      equal(await sandboxes.find('a2'), null);
      equal(await sandboxes.find('c1'), null);
    }),
    storeCase(harness, 'refuses every insert if a limit is 0', async ([{ sandboxes }]) => {
      for (const limit of ['runningPerOwner', 'running', 'existingPerOwner', 'existing'] as const) {
        equal((await sandboxes.insert(someSandbox('one'), { ...unlimited, [limit]: 0 })).kind, 'limit');
      }
    }),
    storeCase(harness, 'counts existing sandboxes in any status until they are deleted', async ([{ sandboxes }]) => {
      const limits = { ...unlimited, existingPerOwner: sandboxStatuses.length, existing: sandboxStatuses.length + 1 };
      for (const status of sandboxStatuses) await sandboxes.insert(someSandbox(status, { status }), unlimited);
      deepEqual(await sandboxes.insert(someSandbox('a'), limits), {
        kind: 'limit',
        reached: { limit: 'existing_per_owner', max: sandboxStatuses.length },
      });
      deepEqual(await sandboxes.insert(someSandbox('b', { ownerId: 'bob' }), limits), { kind: 'inserted' });
      deepEqual(await sandboxes.insert(someSandbox('c', { ownerId: 'cyd' }), limits), {
        kind: 'limit',
        reached: { limit: 'existing', max: sandboxStatuses.length + 1 },
      });
      await sandboxes.replace(nextVersion(someSandbox('ERROR', { status: 'ERROR' }), { deletedAt: someTime }));
      deepEqual(await sandboxes.insert(someSandbox('a'), limits), { kind: 'inserted' });
    }),
    storeCase(harness, 'does not count quarantined sandboxes as existing', async ([{ sandboxes }]) => {
      await sandboxes.insert(someSandbox('stranger', { ownerId: quarantineOwner, status: 'PAUSED' }), unlimited);
      deepEqual(await sandboxes.insert(someSandbox('a'), { ...unlimited, existing: 1 }), { kind: 'inserted' });
    }),
    ...sandboxStatuses.map((status) => {
      const counts = runningStatuses.has(status);
      return storeCase(harness, `${counts ? 'counts' : 'does not count'} a sandbox in ${status} as running`, async ([{ sandboxes }]) => {
        await sandboxes.insert(someSandbox('one', { status }), unlimited);
        const { kind } = await sandboxes.insert(someSandbox('two'), { ...unlimited, runningPerOwner: 1 });
        equal(kind, counts ? 'limit' : 'inserted');
      });
    }),
    storeCase(harness, 'does not count a deleted sandbox as running', async ([{ sandboxes }]) => {
      await sandboxes.insert(someSandbox('one', { status: 'RUNNING', deletedAt: someTime }), unlimited);
      equal((await sandboxes.insert(someSandbox('two'), { ...unlimited, runningPerOwner: 1, running: 1 })).kind, 'inserted');
    }),
    storeCase(harness, 'counts the new status after a replacement', async ([{ sandboxes }]) => {
      const limits = { ...unlimited, runningPerOwner: 1 };
      const sandbox = someSandbox('one', { status: 'PAUSING' });
      await sandboxes.insert(sandbox, unlimited);
      const paused = nextVersion(sandbox, { status: 'PAUSED' });
      await sandboxes.replace(paused);
      equal((await sandboxes.insert(someSandbox('two', { status: 'PAUSED' }), limits)).kind, 'inserted');
      await sandboxes.replace(nextVersion(paused, { status: 'RESUMING' }));
      equal((await sandboxes.insert(someSandbox('three'), limits)).kind, 'limit');
    }),
    storeCase(harness, 'never exceeds a limit with 50 concurrent inserts', async (connections) => {
      const limits = { runningPerOwner: 7, running: null, existingPerOwner: null, existing: 10 };
      const outcomes = await race(connections, 50, ({ sandboxes }, turn) =>
        sandboxes.insert(someSandbox(`s${turn}`, { ownerId: turn < 40 ? 'ann' : 'bob' }), limits),
      );
      equal(outcomes.filter(({ kind }) => kind === 'inserted').length, 10);
      const kept = await connections[0].sandboxes.scan(null, 100);
      equal(kept.length, 10);
      equal(kept.filter(({ ownerId }) => ownerId === 'ann').length <= 7, true);
    }),
  ];
}

function admitCases(harness: StoreHarness): ContractCase[] {
  return [
    storeCase(harness, 'admits a sandbox only if the limit has room', async ([{ sandboxes }]) => {
      const limits = { ...unlimited, runningPerOwner: 1 };
      await sandboxes.insert(paused('one'), unlimited);
      await sandboxes.insert(paused('two'), unlimited);
      const resuming = nextVersion(paused('one'), { status: 'RESUMING' });
      deepEqual(await sandboxes.admit(resuming, limits), { kind: 'replaced' });
      deepEqual(await sandboxes.find('one'), resuming);
      deepEqual(await sandboxes.admit(nextVersion(paused('two'), { status: 'RESUMING' }), limits), {
        kind: 'limit',
        reached: { limit: 'running_per_owner', max: 1 },
      });
      deepEqual(await sandboxes.find('two'), paused('two'));
    }),
    storeCase(harness, 'admits an existing sandbox at the limit of existing sandboxes', async ([{ sandboxes }]) => {
      await sandboxes.insert(paused('one'), unlimited);
      const limits = { ...unlimited, existingPerOwner: 1, existing: 1, fullDisk: { limitPercent: 90 } };
      deepEqual(await sandboxes.admit(nextVersion(paused('one'), { status: 'RESUMING' }), limits), { kind: 'replaced' });
    }),
    storeCase(harness, 'returns stale for a different version, with and without a limit', async ([{ sandboxes }]) => {
      await sandboxes.insert(paused('one'), unlimited);
      for (const limits of [unlimited, { ...unlimited, runningPerOwner: 0, running: 0 }]) {
        deepEqual(await sandboxes.admit(paused('one'), limits), { kind: 'stale' });
        deepEqual(await sandboxes.admit({ ...paused('one'), version: 3 }, limits), { kind: 'stale' });
        deepEqual(await sandboxes.admit({ ...paused('nobody'), version: 2 }, limits), { kind: 'stale' });
      }
    }),
    storeCase(harness, 'admits a RUNNING sandbox at the limit of running sandboxes', async ([{ sandboxes }]) => {
      const running = someSandbox('one', { status: 'RUNNING' });
      await sandboxes.insert(running, unlimited);
      deepEqual(await sandboxes.admit(nextVersion(running), { ...unlimited, runningPerOwner: 1, running: 1 }), { kind: 'replaced' });
    }),
    storeCase(harness, 'never exceeds a limit with concurrent admissions and inserts', async (connections) => {
      const limits = { ...unlimited, runningPerOwner: 5 };
      for (let turn = 0; turn < 30; turn += 1) await connections[0].sandboxes.insert(paused(`p${turn}`), unlimited);
      const outcomes = await race(connections, 60, async ({ sandboxes }, turn): Promise<{ readonly kind: string }> =>
        turn % 2 === 0
          ? sandboxes.admit(nextVersion(paused(`p${turn / 2}`), { status: 'RESUMING' }), limits)
          : sandboxes.insert(someSandbox(`n${turn}`), limits),
      );
      equal(outcomes.filter(({ kind }) => kind === 'replaced' || kind === 'inserted').length, 5);
      const kept = await connections[0].sandboxes.scan(null, 100);
      equal(kept.filter(({ status }) => runningStatuses.has(status)).length, 5);
    }),
  ];
}

function paused(id: string): Sandbox {
  return someSandbox(id, { status: 'PAUSED', pauseKind: 'freeze' });
}

function claimCases(harness: StoreHarness): ContractCase[] {
  return [
    storeCase(harness, 'distinguishes a repeated request from a conflicting one', async ([{ sandboxes }]) => {
      deepEqual(await sandboxes.insert(someSandbox('one'), unlimited, claim), { kind: 'inserted' });
      deepEqual(await sandboxes.insert(someSandbox('two'), unlimited, claim), { kind: 'repeated', id: 'one' });
      deepEqual(await sandboxes.insert(someSandbox('two'), unlimited, { ...claim, fingerprint: 'other' }), { kind: 'conflict' });
      equal(await sandboxes.find('two'), null);
      deepEqual(await sandboxes.findClaim(claim), { kind: 'repeated', id: 'one' });
      deepEqual(await sandboxes.findClaim({ ...claim, fingerprint: 'other' }), { kind: 'conflict' });
      equal(await sandboxes.findClaim({ ...claim, key: 'key-2' }), null);
    }),
    storeCase(harness, 'recognizes a repeated request at the limit', async ([{ sandboxes }]) => {
      const limits = { ...unlimited, runningPerOwner: 1, running: 1 };
      await sandboxes.insert(someSandbox('one'), limits, claim);
      deepEqual(await sandboxes.insert(someSandbox('two'), limits, claim), { kind: 'repeated', id: 'one' });
    }),
    storeCase(harness, 'stores no idempotency key if a limit refuses the request', async ([{ sandboxes }]) => {
      equal((await sandboxes.insert(someSandbox('one'), { ...unlimited, runningPerOwner: 0 }, claim)).kind, 'limit');
      deepEqual(await sandboxes.insert(someSandbox('two'), unlimited, { ...claim, fingerprint: 'other' }), { kind: 'inserted' });
    }),
    storeCase(harness, 'does not mix up idempotency keys of different owners or kinds of records', async ([store]) => {
      const { sandboxes, conversations } = store;
      await sandboxes.insert(someSandbox('one'), unlimited, claim);
      deepEqual(await sandboxes.insert(someSandbox('two'), unlimited, { ...claim, ownerId: 'bob' }), { kind: 'inserted' });
      deepEqual(await sandboxes.insert(someSandbox('three'), unlimited, { ...claim, key: 'key-2' }), { kind: 'inserted' });
      deepEqual(await conversations.insert(someConversation('four'), claim), { kind: 'inserted' });
    }),
    storeCase(harness, 'inserts one record for 30 concurrent requests with one idempotency key', async (connections) => {
      const outcomes = await race(connections, 30, ({ sandboxes }, turn) => sandboxes.insert(someSandbox(`s${turn}`), unlimited, claim));
      const [kept, ...others] = await connections[0].sandboxes.scan(null, 100);
      deepEqual(others, []);
      equal(outcomes.filter(({ kind }) => kind === 'inserted').length, 1);
      equal(outcomes.filter((outcome) => outcome.kind === 'repeated' && outcome.id === kept?.id).length, 29);
    }),
    storeCase(harness, 'purges an idempotency key together with its record', async ([{ sandboxes }]) => {
      await sandboxes.insert(someSandbox('one', { deletedAt: someTime, removedAt: someTime }), unlimited, claim);
      await purgeAll(sandboxes, someTime);
      deepEqual(await sandboxes.insert(someSandbox('two'), unlimited, claim), { kind: 'repeated', id: 'one' });
      await purgeAll(sandboxes, someTime + 1);
      deepEqual(await sandboxes.insert(someSandbox('two'), unlimited, { ...claim, fingerprint: 'other' }), { kind: 'inserted' });
    }),
  ];
}
