import { deepEqual, equal } from 'node:assert/strict';
import { type ExecutionRecord, loseExecution, newExecution, observeExecution } from '../../src/domain/execution.ts';
import { unlimited } from '../../src/domain/admission-limits.ts';
import type { ContractCase } from './contract.ts';
import { hostileTexts, nextVersion, someSandbox, someTime } from './records.ts';
import { allPages, closedCases, idsOf, purgeAll, race, storeCase, type StoreHarness } from './store.ts';

const none = { executionsPerSandbox: null };
const claim = { ownerId: 'ann', key: 'key-1', fingerprint: 'request-1' };

function someExecution(id: string, changes: Partial<ExecutionRecord> = {}): ExecutionRecord {
  const made = newExecution({ id, sandboxId: 'sb-1', command: ['ls', '-l'], stdin: true, tty: false, timeoutMs: 1000, now: someTime });
  return { ...made, ...changes };
}

function ended(record: ExecutionRecord): ExecutionRecord {
  const output = { stdout: { oldest: 0, end: 5 }, stderr: { oldest: 0, end: 7 } };
  const observed = { status: 'exited', exitCode: 3, durable: true, ...output, reason: null } as const;
  return nextVersion(observeExecution(record, observed, someTime + 500));
}

/** The contract of every `ExecutionStore`. */
export function executionStoreContract(harness: StoreHarness): ContractCase[] {
  return [
    storeCase(harness, 'returns a record unchanged in every state', async ([{ executions }]) => {
      const one = someExecution('one', { tty: true, stdin: false, deadline: null });
      deepEqual(await executions.insert(one, none), { kind: 'inserted' });
      deepEqual(await executions.find('one'), one);
      const exited = ended(one);
      deepEqual(await executions.replace(exited), { kind: 'replaced' });
      deepEqual(await executions.find('one'), exited);
      const removed = nextVersion(exited, { deletedAt: someTime, removedAt: someTime + 900 });
      deepEqual(await executions.replace(removed), { kind: 'replaced' });
      deepEqual(await executions.find('one'), removed);
      const lost = loseExecution(someExecution('two'), { code: 'execution_vanished' }, someTime + 1);
      await executions.insert(lost, none);
      deepEqual(await executions.find('two'), lost);
      equal(await executions.find('three'), null);
    }),
    storeCase(harness, 'stores special characters and SQL in commands unchanged', async ([{ executions }]) => {
      for (const [index, text] of hostileTexts.entries()) {
        const record = someExecution(`hostile-${index}`, { command: [text, text] });
        await executions.insert(record, none);
        deepEqual(await executions.find(record.id), record);
      }
    }),
    storeCase(harness, 'inserts an id once, and replaces only the version before', async ([{ executions }]) => {
      const one = someExecution('one');
      await executions.insert(one, none);
      deepEqual(await executions.insert(someExecution('one', { command: ['other'] }), { executionsPerSandbox: 0 }), { kind: 'inserted' });
      deepEqual(await executions.find('one'), one);
      deepEqual(await executions.replace(one), { kind: 'stale' });
      deepEqual(await executions.replace({ ...one, version: 3 }), { kind: 'stale' });
      deepEqual(await executions.replace({ ...someExecution('none'), version: 2 }), { kind: 'stale' });
      deepEqual(await executions.replace(ended(one)), { kind: 'replaced' });
      deepEqual(await executions.replace(ended(one)), { kind: 'stale' });
    }),
    storeCase(harness, 'lets one of 20 concurrent replacements succeed', async (connections) => {
      const one = someExecution('one');
      await connections[0].executions.insert(one, none);
      const outcomes = await race(connections, 20, ({ executions }) => executions.replace(ended(one)));
      equal(outcomes.filter(({ kind }) => kind === 'replaced').length, 1);
    }),
    storeCase(harness, 'limits the running executions of a sandbox, also with concurrent inserts', async (connections) => {
      const [{ executions }] = connections;
      await executions.insert(ended(someExecution('ended')), none);
      await executions.insert(someExecution('deleted', { deletedAt: someTime }), none);
      await executions.insert(someExecution('elsewhere', { sandboxId: 'sb-2' }), none);
      const limits = { executionsPerSandbox: 3 };
      const outcomes = await race(connections, 12, (store, turn) => store.executions.insert(someExecution(`e${turn}`), limits));
      equal(outcomes.filter(({ kind }) => kind === 'inserted').length, 3);
      deepEqual(outcomes.find(({ kind }) => kind !== 'inserted'), { kind: 'limit', reached: { limit: 'executions_per_sandbox', max: 3 } });
      const running = await executions.running('sb-1');
      equal(running.length, 3);
      await executions.replace(ended(running[0]!));
      deepEqual(await executions.insert(someExecution('next'), limits), { kind: 'inserted' });
    }),
    storeCase(harness, 'distinguishes a repeated request from a conflicting one until the insert is undone', async (connections) => {
      const [{ executions }] = connections;
      deepEqual(await executions.insert(someExecution('one'), none, claim), { kind: 'inserted' });
      deepEqual(await executions.insert(someExecution('two'), { executionsPerSandbox: 0 }, claim), { kind: 'repeated', id: 'one' });
      deepEqual(await executions.insert(someExecution('two'), none, { ...claim, fingerprint: 'other' }), { kind: 'conflict' });
      deepEqual(await executions.findClaim(claim), { kind: 'repeated', id: 'one' });
      equal(await executions.findClaim({ ...claim, ownerId: 'bob' }), null);
      // The same key for another kind of record is another claim.
      deepEqual(await connections[0].sandboxes.insert(someSandbox('sb-1'), unlimited, claim), { kind: 'inserted' });
      equal(await executions.undoInsert('one'), true);
      equal(await executions.undoInsert('one'), false);
      equal(await executions.find('one'), null);
      equal(await executions.findClaim(claim), null);
      deepEqual(await executions.insert(someExecution('two'), none, claim), { kind: 'inserted' });
      const outcomes = await race(connections, 20, (store, turn) =>
        store.executions.insert(someExecution(`r${turn}`), none, { ...claim, key: 'key-2' }));
      equal(outcomes.filter(({ kind }) => kind === 'inserted').length, 1);
    }),
    storeCase(harness, 'undoes no insert of an execution that was changed', async ([{ executions }]) => {
      await executions.insert(someExecution('one'), none, claim);
      await executions.replace({ ...someExecution('one'), begun: true, version: 2 });
      equal(await executions.undoInsert('one'), false);
      equal((await executions.find('one'))?.version, 2);
      deepEqual(await executions.findClaim(claim), { kind: 'repeated', id: 'one' });
    }),
    storeCase(harness, 'stores no idempotency key if a limit refuses the execution', async ([{ executions }]) => {
      equal((await executions.insert(someExecution('one'), { executionsPerSandbox: 0 }, claim)).kind, 'limit');
      deepEqual(await executions.insert(someExecution('one'), none, { ...claim, fingerprint: 'other' }), { kind: 'inserted' });
    }),
    ...listingCases(harness),
    ...closedCases(harness, {
      insert: ({ executions }) => executions.insert(someExecution('one'), none),
      findClaim: ({ executions }) => executions.findClaim(claim),
      undoInsert: ({ executions }) => executions.undoInsert('one'),
      replace: ({ executions }) => executions.replace(someExecution('one')),
      find: ({ executions }) => executions.find('one'),
      list: ({ executions }) => executions.list('sb-1', { after: null, limit: 10 }),
      running: ({ executions }) => executions.running('sb-1'),
      endedBeyondNewest: ({ executions }) => executions.endedBeyondNewest('sb-1', 0),
      scanUnsettled: ({ executions }) => executions.scanUnsettled(null, 10),
      purge: ({ executions }) => executions.purge(1),
    }),
  ];
}

function listingCases(harness: StoreHarness): ContractCase[] {
  return [
    storeCase(harness, "lists a sandbox's executions newest first, each once while others are added", async ([{ executions }]) => {
      for (let number = 0; number < 7; number += 1) {
        await executions.insert(someExecution(`e${number}`, { startedAt: someTime + Math.floor(number / 2) }), none);
      }
      await executions.insert(someExecution('elsewhere', { sandboxId: 'sb-2' }), none);
      await executions.insert(someExecution('deleted', { deletedAt: someTime }), none);
      let newer = 0;
      const seen = await allPages(
        (after) => executions.list('sb-1', { after, limit: 2 }),
        async () => {
          newer += 1;
          await executions.insert(someExecution(`newer-${newer}`, { startedAt: someTime + 99 }), none);
        },
      );
      deepEqual(idsOf(seen), ['e6', 'e5', 'e4', 'e3', 'e2', 'e1', 'e0']);
    }),
    storeCase(harness, 'returns the ended executions, except the newest ones', async ([{ executions }]) => {
      for (const [index, id] of ['a', 'b', 'c', 'd'].entries()) {
        await executions.insert(ended(someExecution(id, { startedAt: someTime + index })), none);
      }
      await executions.insert(someExecution('runs', { startedAt: someTime - 1 }), none);
      await executions.insert(ended(someExecution('elsewhere', { sandboxId: 'sb-2' })), none);
      deepEqual(idsOf(await executions.endedBeyondNewest('sb-1', 2)), ['b', 'a']);
      deepEqual(await executions.endedBeyondNewest('sb-1', 4), []);
    }),
    storeCase(harness, 'scans executions that are running, or deleted and not yet removed', async ([{ executions }]) => {
      const deleted = { ...ended(someExecution('c')), deletedAt: someTime };
      const removed = { ...ended(someExecution('d')), deletedAt: someTime, removedAt: someTime };
      for (const one of [someExecution('b'), someExecution('a'), ended(someExecution('e')), deleted, removed]) await executions.insert(one, none);
      deepEqual(idsOf(await executions.scanUnsettled(null, 10)), ['a', 'b', 'c']);
      deepEqual(idsOf(await executions.scanUnsettled('a', 1)), ['b']);
    }),
    storeCase(harness, 'purges removed records with their idempotency keys, and the records of purged sandboxes', async ([{ executions, sandboxes }]) => {
      const old = (id: string): ExecutionRecord => someExecution(id, { deletedAt: 1, removedAt: 5 });
      await executions.insert(old('old'), none, claim);
      await executions.insert(old('later'), none);
      await purgeAll(executions, 5);
      equal((await executions.find('old')) !== null, true);
      await executions.replace({ ...old('later'), removedAt: 9, version: 2 });
      await purgeAll(executions, 6);
      equal(await executions.find('old'), null);
      equal(await executions.findClaim(claim), null);
      equal((await executions.find('later')) !== null, true);

      await sandboxes.insert(someSandbox('sb-gone', { deletedAt: 1, removedAt: 2 }), unlimited);
      await executions.insert(someExecution('in-gone', { sandboxId: 'sb-gone' }), none, claim);
      await purgeAll(sandboxes, 3);
      equal(await executions.find('in-gone'), null);
      equal(await executions.findClaim(claim), null);
      equal((await executions.find('later')) !== null, true);
    }),
  ];
}
