import { deepEqual, equal } from 'node:assert/strict';
import { explained } from '../../src/domain/reason.ts';
import { type Conversation, conversationStartStatuses, agentStatuses } from '../../src/domain/conversation.ts';
import { permissionPolicies } from '../../src/domain/permission.ts';
import { unlimited } from '../../src/domain/admission-limits.ts';
import type { ContractCase } from './contract.ts';
import { conversationChangeCases, someChanges } from './conversation-store-changes.ts';
import { conversationClaimCases } from './conversation-store-claims.ts';
import { conversationSearchCases } from './conversation-store-search.ts';
import { hostileTexts, nextVersion, someConversation, someMessage, someSandbox, someTime } from './records.ts';
import { closedCases, idsOf, purgeAll, race, storeCase, type StoreHarness } from './store.ts';

const claim = { ownerId: 'ann', key: 'key-1', fingerprint: 'request-1' };

/** The contract of every `ConversationStore`. */
export function conversationStoreContract(harness: StoreHarness): ContractCase[] {
  return [
    ...recordCases(harness),
    ...replaceCases(harness),
    ...conversationClaimCases(harness),
    ...conversationSearchCases(harness),
    ...sweepCases(harness),
    ...conversationChangeCases(harness),
    ...closedCases(harness, {
      insert: ({ conversations }) => conversations.insert(someConversation('one')),
      replace: ({ conversations }) => conversations.replace(someConversation('one', { version: 2 })),
      undoInsert: ({ conversations }) => conversations.undoInsert('one'),
      find: ({ conversations }) => conversations.find('one'),
      search: ({ conversations }) => conversations.search('ann', {}, 'CREATED_AT', { after: null, limit: 1 }),
      findUsing: ({ conversations }) => conversations.findUsing('one'),
      scanUnsettled: ({ conversations }) => conversations.scanUnsettled(null, 1),
      keepChanges: ({ conversations }) => conversations.keepChanges('one', someChanges),
      findKeptChanges: ({ conversations }) => conversations.findKeptChanges('one'),
      purge: ({ conversations }) => conversations.purge(someTime),
    }),
  ];
}

function recordCases(harness: StoreHarness): ContractCase[] {
  return [
    storeCase(harness, 'returns a record with all its fields', async ([{ conversations }]) => {
      const full = someConversation('full', {
        startStatus: 'READY',
        executionStatus: 'running',
        statusReason: explained('it works'),
        startsSandbox: false, endsSandbox: false,
        queue: [someMessage('m2'), someMessage('m3', '')],
        turn: { ...someMessage('m1'), cancelled: true, cancelledBy: 'root' },
        permission: {
          permissionId: 'p',
          toolCallId: 't',
          title: 'Edit a file?',
          options: [{ optionId: 'o', name: 'Yes', kind: 'allow_always' }],
        },
        permissionPolicy: 'deny',
        agentSessionId: 'session-1',
        microagents: [{ path: '.skep/microagents/deploy.md', blobId: '5e1f', triggers: ['deploy'], isSettled: true }],
        updatedAt: someTime + 1,
        deletedAt: someTime + 2,
        removedAt: someTime + 3,
      });
      const bare = someConversation('bare', {
        title: null,
        selectedRepository: null,
        selectedBranch: null,
        gitProvider: null,
        repositoryPath: null,
      });
      for (const conversation of [full, bare]) {
        deepEqual(await conversations.insert(conversation), { kind: 'inserted' });
        deepEqual(await conversations.find(conversation.id), conversation);
      }
      equal(await conversations.find('nobody'), null);
    }),
    storeCase(harness, 'stores every status', async ([{ conversations }]) => {
      for (const startStatus of conversationStartStatuses) {
        for (const executionStatus of agentStatuses) {
          const conversation = someConversation(`${startStatus}-${executionStatus}`, { startStatus, executionStatus });
          await conversations.insert(conversation);
          deepEqual(await conversations.find(conversation.id), conversation);
        }
      }
    }),
    storeCase(harness, 'stores every permission policy and an empty list of microagents', async ([{ conversations }]) => {
      for (const permissionPolicy of permissionPolicies) {
        const conversation = someConversation(permissionPolicy, { permissionPolicy, microagents: [] });
        await conversations.insert(conversation);
        deepEqual(await conversations.find(permissionPolicy), conversation);
      }
    }),
    storeCase(harness, 'stores special characters and SQL in texts unchanged', async ([{ conversations }]) => {
      for (const [index, text] of hostileTexts.entries()) {
        const conversation = someConversation(`hostile-${index}`, {
          ownerId: `owner ${text}`,
          title: text,
          sandboxId: `sandbox ${text}`,
          selectedRepository: text,
          selectedBranch: text,
          queue: [someMessage(text, text)],
          turn: someMessage(text, text),
          permission: { permissionId: text, toolCallId: text, title: text, options: [{ optionId: text, name: text, kind: 'allow_once' }] },
          agentSessionId: text,
          microagents: [{ path: text, blobId: text, triggers: [text], isSettled: false }],
        });
        await conversations.insert(conversation, { ownerId: text, key: text, fingerprint: text });
        deepEqual(await conversations.find(conversation.id), conversation);
        const filter = { titleContains: text, sandboxId: `sandbox ${text}` };
        const { items } = await conversations.search(`owner ${text}`, filter, 'CREATED_AT', { after: null, limit: 9 });
        deepEqual(items, [conversation]);
      }
    }),
    storeCase(harness, 'keeps the existing record if it is inserted again', async ([{ conversations }]) => {
      const conversation = someConversation('one');
      await conversations.insert(conversation, claim);
      deepEqual(await conversations.insert({ ...conversation, title: 'other' }, claim), { kind: 'inserted' });
      deepEqual(await conversations.find('one'), conversation);
    }),
    storeCase(harness, 'never exceeds a limit with 20 concurrent inserts, and names the reached limit', async (connections) => {
      const limits = { conversationsPerOwner: 3, conversations: 9, conversationsPerSandbox: 2 };
      const insert = (id: string, changes: Partial<Conversation>) =>
        connections[0].conversations.insert(someConversation(id, changes), undefined, [], limits);
      await connections[0].conversations.insert(someConversation('ended', { ownerId: 'ann', sandboxId: 'shared', deletedAt: someTime }));
      const outcomes = await race(connections, 20, ({ conversations }, turn) =>
        conversations.insert(someConversation(`c${turn}`, { ownerId: `owner ${turn % 5}` }), undefined, [], limits));
      equal(outcomes.filter(({ kind }) => kind === 'inserted').length, 9);
      deepEqual(await insert('more', { ownerId: 'zoe' }), { kind: 'limit', reached: { limit: 'conversations', max: 9 } });
      deepEqual(await insert('c0', {}), { kind: 'inserted' });
      const { items } = await connections[0].conversations.search('owner 0', {}, 'CREATED_AT', { after: null, limit: 9 });
      equal(items.length <= 3, true);
    }),
    storeCase(harness, 'limits the conversations per owner and per sandbox', async ([{ conversations }]) => {
      const limits = { conversationsPerOwner: 2, conversations: null, conversationsPerSandbox: 1 };
      const insert = (id: string, ownerId: string, sandboxId: string) =>
        conversations.insert(someConversation(id, { ownerId, sandboxId }), undefined, [], limits);
      deepEqual(await insert('a', 'ann', 'sb-1'), { kind: 'inserted' });
      deepEqual(await insert('b', 'ann', 'sb-1'), { kind: 'limit', reached: { limit: 'conversations_per_sandbox', max: 1 } });
      deepEqual(await insert('b', 'ann', 'sb-2'), { kind: 'inserted' });
      deepEqual(await insert('c', 'ann', 'sb-3'), { kind: 'limit', reached: { limit: 'conversations_per_owner', max: 2 } });
      deepEqual(await insert('c', 'bob', 'sb-3'), { kind: 'inserted' });
    }),
    storeCase(harness, 'undoes an insert with its idempotency key, and can be repeated', async ([{ conversations }]) => {
      await conversations.insert(someConversation('one'), claim);
      await conversations.insert(someConversation('two'), { ...claim, key: 'key-2' });
      await conversations.undoInsert('one');
      await conversations.undoInsert('one');
      await conversations.undoInsert('nobody');
      await conversations.replace(nextVersion(someConversation('two')));
      await conversations.undoInsert('two');
      equal(await conversations.find('one'), null);
      equal((await conversations.find('two'))?.id, 'two');
      deepEqual(await conversations.insert(someConversation('three'), { ...claim, fingerprint: 'other' }), { kind: 'inserted' });
    }),
    storeCase(harness, 'finds the conversations that use a sandbox, without deleted and released ones', async ([{ conversations }]) => {
      await conversations.insert(someConversation('a', { sandboxId: 'shared' }));
      await conversations.insert(someConversation('b', { sandboxId: 'shared', ownerId: 'bob' }));
      await conversations.insert(someConversation('c', { sandboxId: 'shared', deletedAt: someTime }));
      const archived = someConversation('d', { archivedAt: someTime });
      await conversations.insert(archived);
      deepEqual(idsOf(await conversations.findUsing('shared')).toSorted(), ['a', 'b']);
      deepEqual(await conversations.findUsing('sandbox-of-d'), [archived]);
      await conversations.replace(nextVersion(archived, { releasedAt: someTime }));
      deepEqual(await conversations.findUsing('sandbox-of-d'), []);
    }),
  ];
}

function replaceCases(harness: StoreHarness): ContractCase[] {
  return [
    storeCase(harness, 'replaces a record only if it is one version older', async ([{ conversations }]) => {
      const conversation = someConversation('one', { version: 5 });
      await conversations.insert(conversation);
      for (const version of [1, 4, 5, 7]) {
        deepEqual(await conversations.replace({ ...conversation, title: 'late', version }), { kind: 'stale' });
      }
      deepEqual(await conversations.replace(someConversation('nobody', { version: 2 })), { kind: 'stale' });
      deepEqual(await conversations.find('one'), conversation);
      const renamed = nextVersion(conversation, { title: 'Other', startStatus: 'READY', updatedAt: someTime + 1 });
      deepEqual(await conversations.replace(renamed), { kind: 'replaced' });
      deepEqual(await conversations.find('one'), renamed);
      const { items } = await conversations.search('ann', { titleContains: 'other' }, 'CREATED_AT', { after: null, limit: 9 });
      deepEqual(items, [renamed]);
    }),
    storeCase(harness, "records the sandbox's activity with a replacement, and fails if the sandbox is not RUNNING", async ([{ conversations, sandboxes }]) => {
      const running = someSandbox('sandbox', { status: 'RUNNING' });
      await sandboxes.insert(running, unlimited);
      await conversations.insert(someConversation('one', { sandboxId: 'sandbox' }));
      const second = nextVersion(someConversation('one', { sandboxId: 'sandbox' }), { title: 'second' });
      deepEqual(await conversations.replace(second, [], undefined, someTime + 100), { kind: 'replaced' });
      const third = nextVersion(second, { title: 'third' });
      deepEqual(await conversations.replace(third, [], undefined, someTime + 50), { kind: 'replaced' });
      const active = { ...running, lastActiveAt: someTime + 100 };
      deepEqual(await sandboxes.find('sandbox'), active);
      const paused = nextVersion(active, { status: 'PAUSED', pauseKind: 'freeze' });
      await sandboxes.replace(paused);
      deepEqual(await conversations.replace(nextVersion(third), [], undefined, someTime + 200), { kind: 'sandbox_not_running' });
      deepEqual([await conversations.find('one'), await sandboxes.find('sandbox')], [third, paused]);
    }),
    storeCase(harness, 'lets one of 30 concurrent replacements of a version succeed', async (connections) => {
      const conversation = someConversation('one');
      await connections[0].conversations.insert(conversation);
      const outcomes = await race(connections, 30, (store, turn) =>
        store.conversations.replace(nextVersion(conversation, { title: `title ${turn}` })),
      );
      const winners = outcomes.flatMap(({ kind }, turn) => (kind === 'replaced' ? [turn] : []));
      equal(winners.length, 1);
      equal((await connections[0].conversations.find('one'))?.title, `title ${winners[0]}`);
    }),
  ];
}

function sweepCases(harness: StoreHarness): ContractCase[] {
  return [
    storeCase(harness, 'scans conversations that are starting or being deleted, ordered by id', async ([{ conversations }]) => {
      for (const startStatus of conversationStartStatuses) {
        const id = startStatus.toLowerCase().replaceAll('_', '-');
        await conversations.insert(someConversation(id, { startStatus, ownerId: id }));
        await conversations.insert(someConversation(`x-${id}`, { startStatus, deletedAt: someTime }));
        await conversations.insert(someConversation(`y-${id}`, { startStatus, deletedAt: someTime, removedAt: someTime }));
      }
      const starting = [
        'listing-microagents', 'preparing-repository', 'running-setup-script', 'starting-agent', 'waiting-for-sandbox', 'working',
      ];
      const ending = [...starting, 'error', 'ready'].map((id) => `x-${id}`).toSorted();
      deepEqual(idsOf(await conversations.scanUnsettled(null, 100)), [...starting, ...ending]);
      deepEqual(idsOf(await conversations.scanUnsettled('working', 2)), ['x-error', 'x-listing-microagents']);
      await conversations.replace(nextVersion(someConversation('listing-microagents', { startStatus: 'READY' })));
      deepEqual(idsOf(await conversations.scanUnsettled(null, 2)), ['preparing-repository', 'running-setup-script']);
    }),
    storeCase(harness, 'scans conversations with a queued message or a turn until they have none', async ([{ conversations }]) => {
      const ready = { startStatus: 'READY', executionStatus: 'idle' } as const;
      await conversations.insert(someConversation('a', ready));
      await conversations.insert(someConversation('b', { ...ready, queue: [someMessage('m')] }));
      await conversations.insert(someConversation('c', { ...ready, turn: someMessage('m') }));
      deepEqual(idsOf(await conversations.scanUnsettled(null, 9)), ['b', 'c']);
      await conversations.replace(nextVersion(someConversation('a', ready), { queue: [someMessage('m')] }));
      await conversations.replace(nextVersion(someConversation('b', ready), { turn: someMessage('m') }));
      await conversations.replace(nextVersion(someConversation('c', ready)));
      deepEqual(idsOf(await conversations.scanUnsettled(null, 9)), ['a', 'b']);
    }),
    storeCase(harness, 'purges records that were removed before the given time, and their idempotency keys', async ([store]) => {
      const { conversations } = store;
      await conversations.insert(someConversation('kept'));
      await conversations.insert(someConversation('deleted', { deletedAt: someTime }));
      await conversations.insert(someConversation('at', { deletedAt: 1, removedAt: someTime }));
      await conversations.insert(someConversation('before', { deletedAt: 1, removedAt: someTime - 1 }), claim);
      await purgeAll(conversations, someTime);
      for (const id of ['kept', 'deleted', 'at']) equal((await conversations.find(id))?.id, id);
      equal(await conversations.find('before'), null);
      deepEqual(await conversations.insert(someConversation('new'), { ...claim, fingerprint: 'other' }), { kind: 'inserted' });
    }),
  ];
}
