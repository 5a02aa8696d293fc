import { deepEqual, equal } from 'node:assert/strict';
import { conversationStartStatuses, executionStatuses } from '../../src/domain/conversation.ts';
import type { ContractCase } from './contract.ts';
import { conversationSearchCases } from './conversation-store-search.ts';
import { hostileTexts, nextGeneration, someConversation, someTime } from './records.ts';
import { closedCases, idsOf, race, storeCase, type StoreHarness } from './store.ts';

const claim = { ownerId: 'ann', key: 'key-1', fingerprint: 'request-1' };

/** What every `ConversationStore` must do. */
export function conversationStoreContract(harness: StoreHarness): ContractCase[] {
  return [
    ...recordCases(harness),
    ...replaceCases(harness),
    ...claimCases(harness),
    ...conversationSearchCases(harness),
    ...sweepCases(harness),
    ...closedCases(harness, {
      insert: ({ conversations }) => conversations.insert(someConversation('one')),
      replace: ({ conversations }) => conversations.replace(someConversation('one', { generation: 2 })),
      withdraw: ({ conversations }) => conversations.withdraw('one'),
      find: ({ conversations }) => conversations.find('one'),
      search: ({ conversations }) => conversations.search('ann', {}, 'CREATED_AT', { after: null, limit: 1 }),
      countUsing: ({ conversations }) => conversations.countUsing('one'),
      scanUnsettled: ({ conversations }) => conversations.scanUnsettled(null, 1),
      purge: ({ conversations }) => conversations.purge(someTime),
    }),
  ];
}

function recordCases(harness: StoreHarness): ContractCase[] {
  return [
    storeCase(harness, 'gives a record back as it was written', async ([{ conversations }]) => {
      const full = someConversation('full', {
        startStatus: 'READY',
        executionStatus: 'running',
        statusDetail: 'it works',
        startsSandbox: false,
        updatedAt: someTime + 1,
        deletedAt: someTime + 2,
        removedAt: someTime + 3,
      });
      const bare = someConversation('bare', {
        title: null,
        selectedRepository: null,
        selectedBranch: null,
        gitProvider: null,
        initialMessage: null,
      });
      for (const conversation of [full, bare]) {
        deepEqual(await conversations.insert(conversation), { kind: 'inserted' });
        deepEqual(await conversations.find(conversation.id), conversation);
      }
      equal(await conversations.find('nobody'), null);
    }),
    storeCase(harness, 'keeps every status', async ([{ conversations }]) => {
      for (const startStatus of conversationStartStatuses) {
        for (const executionStatus of executionStatuses) {
          const conversation = someConversation(`${startStatus}-${executionStatus}`, { startStatus, executionStatus });
          await conversations.insert(conversation);
          deepEqual(await conversations.find(conversation.id), conversation);
        }
      }
    }),
    storeCase(harness, 'takes every text for data', async ([{ conversations }]) => {
      for (const [index, text] of hostileTexts.entries()) {
        const conversation = someConversation(`hostile-${index}`, {
          ownerId: `owner ${text}`,
          title: text,
          sandboxId: `sandbox ${text}`,
          selectedRepository: text,
          selectedBranch: text,
          initialMessage: { content: [{ type: 'text', text }] },
        });
        await conversations.insert(conversation, { ownerId: text, key: text, fingerprint: text });
        deepEqual(await conversations.find(conversation.id), conversation);
        const filter = { titleContains: text, sandboxId: `sandbox ${text}` };
        const { items } = await conversations.search(`owner ${text}`, filter, 'CREATED_AT', { after: null, limit: 9 });
        deepEqual(items, [conversation]);
      }
    }),
    storeCase(harness, 'leaves a record that exists as it is when it is inserted again', async ([{ conversations }]) => {
      const conversation = someConversation('one');
      await conversations.insert(conversation, claim);
      deepEqual(await conversations.insert({ ...conversation, title: 'other' }, claim), { kind: 'inserted' });
      deepEqual(await conversations.find('one'), conversation);
    }),
    storeCase(harness, 'takes an insert back with its claim, more than once without harm', async ([{ conversations }]) => {
      await conversations.insert(someConversation('one'), claim);
      await conversations.insert(someConversation('two'), { ...claim, key: 'key-2' });
      await conversations.withdraw('one');
      await conversations.withdraw('one');
      await conversations.withdraw('nobody');
      equal(await conversations.find('one'), null);
      equal((await conversations.find('two'))?.id, 'two');
      deepEqual(await conversations.insert(someConversation('three'), { ...claim, fingerprint: 'other' }), { kind: 'inserted' });
    }),
    storeCase(harness, 'counts the conversations that use a sandbox, deleted ones left out', async ([{ conversations }]) => {
      await conversations.insert(someConversation('a', { sandboxId: 'shared' }));
      await conversations.insert(someConversation('b', { sandboxId: 'shared', ownerId: 'bob' }));
      await conversations.insert(someConversation('c', { sandboxId: 'shared', deletedAt: someTime }));
      await conversations.insert(someConversation('d'));
      equal(await conversations.countUsing('shared'), 2);
      equal(await conversations.countUsing('none'), 0);
    }),
  ];
}

function replaceCases(harness: StoreHarness): ContractCase[] {
  return [
    storeCase(harness, 'replaces a record that is one generation older, and no other', async ([{ conversations }]) => {
      const conversation = someConversation('one', { generation: 5 });
      await conversations.insert(conversation);
      for (const generation of [1, 4, 5, 7]) {
        deepEqual(await conversations.replace({ ...conversation, title: 'late', generation }), { kind: 'stale' });
      }
      deepEqual(await conversations.replace(someConversation('nobody', { generation: 2 })), { kind: 'stale' });
      deepEqual(await conversations.find('one'), conversation);
      const renamed = nextGeneration(conversation, { title: 'Other', startStatus: 'READY', updatedAt: someTime + 1 });
      deepEqual(await conversations.replace(renamed), { kind: 'replaced' });
      deepEqual(await conversations.find('one'), renamed);
      const { items } = await conversations.search('ann', { titleContains: 'other' }, 'CREATED_AT', { after: null, limit: 9 });
      deepEqual(items, [renamed]);
    }),
    storeCase(harness, 'lets one of many replacements of a generation win', async (connections) => {
      const conversation = someConversation('one');
      await connections[0].conversations.insert(conversation);
      const outcomes = await race(connections, 30, (store, turn) =>
        store.conversations.replace(nextGeneration(conversation, { title: `title ${turn}` })),
      );
      const winners = outcomes.flatMap(({ kind }, turn) => (kind === 'replaced' ? [turn] : []));
      equal(winners.length, 1);
      equal((await connections[0].conversations.find('one'))?.title, `title ${winners[0]}`);
    }),
  ];
}

function claimCases(harness: StoreHarness): ContractCase[] {
  return [
    storeCase(harness, 'tells a repeated request from a conflicting one', async ([{ conversations }]) => {
      deepEqual(await conversations.insert(someConversation('one'), claim), { kind: 'inserted' });
      deepEqual(await conversations.insert(someConversation('two'), claim), { kind: 'repeated', id: 'one' });
      deepEqual(await conversations.insert(someConversation('two'), { ...claim, fingerprint: 'other' }), { kind: 'conflict' });
      deepEqual(await conversations.insert(someConversation('bobs'), { ...claim, ownerId: 'bob' }), { kind: 'inserted' });
      equal(await conversations.find('two'), null);
    }),
    storeCase(harness, 'lets one of many requests with one claim make a record', async (connections) => {
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

function sweepCases(harness: StoreHarness): ContractCase[] {
  return [
    storeCase(harness, 'sweeps over those whose start or deletion is under way, by id', async ([{ conversations }]) => {
      for (const startStatus of conversationStartStatuses) {
        const id = startStatus.toLowerCase().replaceAll('_', '-');
        await conversations.insert(someConversation(id, { startStatus, ownerId: id }));
        await conversations.insert(someConversation(`x-${id}`, { startStatus, deletedAt: someTime }));
        await conversations.insert(someConversation(`y-${id}`, { startStatus, deletedAt: someTime, removedAt: someTime }));
      }
      const expected = ['waiting-for-sandbox', 'working', 'x-error', 'x-ready', 'x-waiting-for-sandbox', 'x-working'];
      deepEqual(idsOf(await conversations.scanUnsettled(null, 100)), expected);
      deepEqual(idsOf(await conversations.scanUnsettled('working', 2)), ['x-error', 'x-ready']);
      await conversations.replace(nextGeneration(someConversation('working', { startStatus: 'READY' })));
      deepEqual(idsOf(await conversations.scanUnsettled(null, 2)), ['waiting-for-sandbox', 'x-error']);
    }),
    storeCase(harness, 'forgets the records that were removed before the time with their claims, and no other', async ([store]) => {
      const { conversations } = store;
      await conversations.insert(someConversation('kept'));
      await conversations.insert(someConversation('deleted', { deletedAt: someTime }));
      await conversations.insert(someConversation('at', { deletedAt: 1, removedAt: someTime }));
      await conversations.insert(someConversation('before', { deletedAt: 1, removedAt: someTime - 1 }), claim);
      await conversations.purge(someTime);
      for (const id of ['kept', 'deleted', 'at']) equal((await conversations.find(id))?.id, id);
      equal(await conversations.find('before'), null);
      deepEqual(await conversations.insert(someConversation('new'), { ...claim, fingerprint: 'other' }), { kind: 'inserted' });
    }),
  ];
}
