import { deepEqual, equal } from 'node:assert/strict';
import type { EventActor } from '../../src/domain/event.ts';
import { explained } from '../../src/domain/reason.ts';
import { unlimited } from '../../src/domain/admission-limits.ts';
import { sandboxSpec } from '../../src/domain/sandbox-spec.ts';
import { sandboxStatuses } from '../../src/domain/sandbox.ts';
import type { ContractCase } from './contract.ts';
import { hostileTexts, nextVersion, somePooled, someSandbox, someSpec, someTime } from './records.ts';
import { sandboxAdmissionCases } from './sandbox-store-admission.ts';
import { sandboxPoolCases } from './sandbox-store-pool.ts';
import { sandboxSearchCases } from './sandbox-store-search.ts';
import { closedCases, idsOf, race, storeCase, type StoreHarness } from './store.ts';


/** The contract of every `SandboxStore`. */
export function sandboxStoreContract(harness: StoreHarness): ContractCase[] {
  return [
    ...recordCases(harness),
    ...replaceCases(harness),
    ...touchCases(harness),
    ...sandboxAdmissionCases(harness),
    ...sandboxPoolCases(harness),
    ...sandboxSearchCases(harness),
    ...closedCases(harness, {
      insert: ({ sandboxes }) => sandboxes.insert(someSandbox('one'), unlimited),
      claimFromPool: ({ sandboxes }) => sandboxes.claimFromPool(someSandbox('one'), somePooled('p'), unlimited),
      findClaim: ({ sandboxes }) => sandboxes.findClaim({ ownerId: 'ann', key: 'k', fingerprint: 'f' }),
      insertPooled: ({ sandboxes }) => sandboxes.insertPooled(somePooled('p'), 'f', 1),
      pooled: ({ sandboxes }) => sandboxes.pooled(),
      replace: ({ sandboxes }) => sandboxes.replace(someSandbox('one', { version: 2 })),
      admit: ({ sandboxes }) => sandboxes.admit(someSandbox('one', { version: 2 }), unlimited),
      touch: ({ sandboxes }) => sandboxes.touch('one', someTime),
      find: ({ sandboxes }) => sandboxes.find('one'),
      findMany: ({ sandboxes }) => sandboxes.findMany(['one']),
      findByInstance: ({ sandboxes }) => sandboxes.findByInstance('one'),
      longestIdle: ({ sandboxes }) => sandboxes.longestIdle(null, 1),
      search: ({ sandboxes }) => sandboxes.search('ann', {}, { after: null, limit: 1 }),
      scan: ({ sandboxes }) => sandboxes.scan(null, 1),
      purge: ({ sandboxes }) => sandboxes.purge(someTime),
    }),
  ];
}

function recordCases(harness: StoreHarness): ContractCase[] {
  return [
    storeCase(harness, 'returns a record with all its fields', async ([{ sandboxes }]) => {
      const full = someSandbox('full', {
        instanceId: 'instance-of-full',
        status: 'PAUSED',
        statusReason: { code: 'idle', tier: 'freeze', afterMs: 900_000 },
        pauseKind: 'freeze',
        exposedUrls: [{ name: 'AGENT_SERVER', url: 'http://127.0.0.1:40001', port: 8000 }],
        lastActiveAt: someTime + 1,
        updatedAt: someTime + 2,
        statusSince: someTime + 3,
        startingSince: someTime + 6,
        deletedAt: someTime + 4,
        removedAt: someTime + 5,
      });
      const bare = someSandbox('bare', {
        spec: sandboxSpec({ id: 'bare' }),
      });
      for (const sandbox of [full, bare]) {
        deepEqual(await sandboxes.insert(sandbox, unlimited), { kind: 'inserted' });
        deepEqual(await sandboxes.find(sandbox.id), sandbox);
      }
    }),
    storeCase(harness, 'stores every status', async ([{ sandboxes }]) => {
      for (const status of sandboxStatuses) {
        await sandboxes.insert(someSandbox(status.toLowerCase(), { status }), unlimited);
        equal((await sandboxes.find(status.toLowerCase()))?.status, status);
      }
    }),
    storeCase(harness, 'stores special characters and SQL in texts unchanged', async ([{ sandboxes }]) => {
      for (const [index, text] of hostileTexts.entries()) {
        const sandbox = someSandbox(`hostile-${index}`, {
          ownerId: `owner ${text}`,
          instanceId: `instance ${text}`,
          spec: someSpec({ id: text, initialEnv: { X: text }, command: [text], labels: { x: text } }),
          statusReason: { code: 'noted', text },
          sessionApiKey: text,
        });
        await sandboxes.insert(sandbox, unlimited, { ownerId: text, key: text, fingerprint: text });
        deepEqual(await sandboxes.find(sandbox.id), sandbox);
        deepEqual(await sandboxes.findByInstance(`instance ${text}`), sandbox);
        equal(await sandboxes.find(text), null);
        deepEqual(idsOf((await sandboxes.search(`owner ${text}`, { specId: text }, { after: null, limit: 100 })).items), [sandbox.id]);
      }
    }),
    storeCase(harness, 'returns null for an unknown id', async ([{ sandboxes }]) => {
      equal(await sandboxes.find('nobody'), null);
    }),
    storeCase(harness, 'finds the existing records of many ids, including deleted ones', async ([{ sandboxes }]) => {
      await sandboxes.insert(someSandbox('one'), unlimited);
      await sandboxes.insert(someSandbox('two', { deletedAt: someTime }), unlimited);
      await sandboxes.insert(someSandbox('three'), unlimited);
      const unknown = Array.from({ length: 97 }, (_, index) => `unknown-${index}`);
      deepEqual(idsOf(await sandboxes.findMany(['two', ...unknown, 'one'])).toSorted(), ['one', 'two']);
      deepEqual(await sandboxes.findMany([]), []);
    }),
    storeCase(harness, 'keeps the existing record if it is inserted again', async ([{ sandboxes }]) => {
      const sandbox = someSandbox('one');
      await sandboxes.insert(sandbox, unlimited);
      const full = { ...unlimited, runningPerOwner: 0, running: 0 };
      deepEqual(await sandboxes.insert({ ...sandbox, ownerId: 'bob' }, full), { kind: 'inserted' });
      deepEqual(await sandboxes.find('one'), sandbox);
    }),
  ];
}

function replaceCases(harness: StoreHarness): ContractCase[] {
  return [
    storeCase(harness, 'replaces a record that is one version older', async ([{ sandboxes }]) => {
      const sandbox = someSandbox('one');
      await sandboxes.insert(sandbox, unlimited);
      const exposedUrls = [{ name: 'AGENT_SERVER', url: 'http://127.0.0.1:40001', port: 8000 }];
      const running = nextVersion(sandbox, { status: 'RUNNING', exposedUrls, updatedAt: someTime + 1, lastActiveAt: someTime + 1 });
      deepEqual(await sandboxes.replace(running), { kind: 'replaced' });
      deepEqual(await sandboxes.find('one'), running);
      const deleted = nextVersion(running, { deletedAt: someTime + 2 });
      deepEqual(await sandboxes.replace(deleted), { kind: 'replaced' });
      deepEqual(await sandboxes.find('one'), deleted);
    }),
    storeCase(harness, 'does not replace a record of any other version, or an unknown one', async ([{ sandboxes }]) => {
      const sandbox = someSandbox('one', { version: 5 });
      await sandboxes.insert(sandbox, unlimited);
      for (const version of [1, 4, 5, 7]) {
        deepEqual(await sandboxes.replace({ ...sandbox, status: 'ERROR', version }), { kind: 'stale' });
      }
      deepEqual(await sandboxes.replace(someSandbox('nobody', { version: 2 })), { kind: 'stale' });
      deepEqual(await sandboxes.find('one'), sandbox);
      equal(await sandboxes.find('nobody'), null);
    }),
    storeCase(harness, 'lets one of 20 concurrent replacements of a version succeed', async (connections) => {
      const [{ sandboxes }] = connections;
      let current = someSandbox('one');
      await sandboxes.insert(current, unlimited);
      for (let round = 0; round < 10; round += 1) {
        const rivals = Array.from({ length: 20 }, (_, turn) => nextVersion(current, { statusReason: explained(`${round}/${turn}`) }));
        const outcomes = await race(connections, rivals.length, async (store, turn) => {
          const rival = rivals[turn];
          return rival !== undefined && (await store.sandboxes.replace(rival)).kind === 'replaced';
        });
        const winners = rivals.filter((_, turn) => outcomes[turn]);
        equal(winners.length, 1);
        current = winners[0] ?? current;
        deepEqual(await sandboxes.find('one'), current);
      }
    }),
  ];
}

function touchCases(harness: StoreHarness): ContractCase[] {
  return [
    storeCase(harness, 'touch records activity without a new version, and never sets an earlier time', async ([{ sandboxes }]) => {
      const sandbox = someSandbox('one');
      await sandboxes.insert(sandbox, unlimited);
      await sandboxes.touch('one', someTime + 100);
      deepEqual(await sandboxes.find('one'), { ...sandbox, lastActiveAt: someTime + 100 });
      await sandboxes.touch('one', someTime + 50);
      deepEqual(await sandboxes.find('one'), { ...sandbox, lastActiveAt: someTime + 100 });
    }),
    storeCase(harness, 'keeps activity that was recorded during a replacement', async ([{ sandboxes }]) => {
      const sandbox = someSandbox('one');
      await sandboxes.insert(sandbox, unlimited);
      await sandboxes.touch('one', someTime + 100);
      await sandboxes.replace(nextVersion(sandbox, { statusReason: explained('written with the older time') }));
      equal((await sandboxes.find('one'))?.lastActiveAt, someTime + 100);
    }),
    storeCase(harness, "returns stale for a pause by the idle policy after newer activity, but not for a user's pause", async ([{ sandboxes }]) => {
      const running = someSandbox('one', { status: 'RUNNING' });
      await sandboxes.insert(running, unlimited);
      await sandboxes.touch('one', someTime + 100);
      const pausedBy = (actor: EventActor) => ({ actor, reason: null, version: running.version + 1 });
      const pausing = nextVersion(running, { status: 'PAUSING', pauseKind: 'freeze', pausedBy: pausedBy('skep') });
      const active = { ...running, lastActiveAt: someTime + 100 };
      deepEqual(await sandboxes.replace(pausing), { kind: 'stale' });
      deepEqual(await sandboxes.find('one'), active);
      deepEqual(await sandboxes.replace({ ...pausing, pausedBy: pausedBy('user') }), { kind: 'replaced' });
      await sandboxes.replace(nextVersion(pausing, { ...active, version: running.version + 2 }));
      deepEqual(await sandboxes.replace({ ...pausing, version: running.version + 3, lastActiveAt: someTime + 100 }), { kind: 'replaced' });
    }),
    storeCase(harness, 'keeps the latest time of 30 concurrent touches', async (connections) => {
      await connections[0].sandboxes.insert(someSandbox('one'), unlimited);
      await race(connections, 30, ({ sandboxes }, turn) => sandboxes.touch('one', someTime + ((turn * 7) % 30)));
      equal((await connections[0].sandboxes.find('one'))?.lastActiveAt, someTime + 29);
    }),
    storeCase(harness, 'ignores a touch of an unknown sandbox', async ([{ sandboxes }]) => {
      await sandboxes.touch('nobody', someTime);
      equal(await sandboxes.find('nobody'), null);
    }),
  ];
}
