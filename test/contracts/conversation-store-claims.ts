import { deepEqual, equal } from 'node:assert/strict';
import type { ContractCase } from './contract.ts';
import { nextVersion, someConversation, someMessage } from './records.ts';
import { race, storeCase, type StoreHarness } from './store.ts';

const claim = { ownerId: 'ann', key: 'key-1', fingerprint: 'request-1' };

/** Repeated requests: the store recognises them, and they have no second effect. */
export function conversationClaimCases(harness: StoreHarness): ContractCase[] {
  return [
    storeCase(harness, 'distinguishes a repeated request from a conflicting one', async ([{ conversations }]) => {
      deepEqual(await conversations.insert(someConversation('one'), claim), { kind: 'inserted' });
      deepEqual(await conversations.insert(someConversation('two'), claim), { kind: 'repeated', id: 'one' });
      deepEqual(await conversations.insert(someConversation('two'), { ...claim, fingerprint: 'other' }), { kind: 'conflict' });
      deepEqual(await conversations.insert(someConversation('bobs'), { ...claim, ownerId: 'bob' }), { kind: 'inserted' });
      equal(await conversations.find('two'), null);
      deepEqual(await conversations.findClaim(claim), { kind: 'repeated', id: 'one' });
      deepEqual(await conversations.findClaim({ ...claim, fingerprint: 'other' }), { kind: 'conflict' });
      equal(await conversations.findClaim({ ...claim, key: 'key-2' }), null);
    }),
    storeCase(harness, 'replaces a record once per idempotency key', async ([{ conversations }]) => {
      const conversation = someConversation('one');
      await conversations.insert(conversation);
      const queued = nextVersion(conversation, { queue: [someMessage('m')] });
      deepEqual(await conversations.replace(queued, [], claim), { kind: 'replaced' });
      const again = nextVersion(queued, { queue: [someMessage('m'), someMessage('n')] });
      deepEqual(await conversations.replace(again, [], claim), { kind: 'repeated', id: 'one' });
      deepEqual(await conversations.replace(queued, [], claim), { kind: 'repeated', id: 'one' });
      deepEqual(await conversations.replace(again, [], { ...claim, fingerprint: 'other' }), { kind: 'conflict' });
      deepEqual(await conversations.find('one'), queued);
      deepEqual(await conversations.replace(again, [], { ...claim, key: 'key-2' }), { kind: 'replaced' });
      deepEqual(await conversations.replace(nextVersion(again), [], undefined), { kind: 'replaced' });
    }),
    storeCase(harness, 'stores no idempotency key if the replacement is stale', async ([{ conversations }]) => {
      const conversation = someConversation('one');
      await conversations.insert(conversation);
      deepEqual(await conversations.replace(conversation, [], claim), { kind: 'stale' });
      deepEqual(await conversations.replace(nextVersion(conversation), [], { ...claim, fingerprint: 'other' }), { kind: 'replaced' });
    }),
    storeCase(harness, 'replaces a record once for 20 concurrent requests with one idempotency key', async (connections) => {
      const conversation = someConversation('one');
      await connections[0].conversations.insert(conversation);
      // After another write, tries again with the new record, as callers do.
      const outcomes = await race(connections, 20, async ({ conversations }, turn) => {
        for (;;) {
          const stored = (await conversations.find('one')) ?? conversation;
          const queue = [...stored.queue, someMessage(`m${turn}`)];
          const { kind } = await conversations.replace(nextVersion(stored, { queue }), [], claim);
          if (kind !== 'stale') return kind;
        }
      });
      equal(outcomes.filter((kind) => kind === 'replaced').length, 1);
      equal(outcomes.filter((kind) => kind === 'repeated').length, 19);
      equal((await connections[0].conversations.find('one'))?.queue.length, 1);
    }),
    storeCase(harness, 'inserts one record for 30 concurrent requests with one idempotency key', async (connections) => {
      const outcomes = await race(connections, 30, ({ conversations }, turn) =>
        conversations.insert(someConversation(`c${turn}`), claim),
      );
      const [kept, ...others] = await connections[0].conversations.scanUnsettled(null, 100);
      deepEqual(others, []);
      equal(outcomes.filter(({ kind }) => kind === 'inserted').length, 1);
      equal(outcomes.filter((outcome) => outcome.kind === 'repeated' && outcome.id === kept?.id).length, 29);
    }),
  ];
}
