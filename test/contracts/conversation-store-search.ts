import { deepEqual, equal } from 'node:assert/strict';
import { type Conversation, conversationSortOrders } from '../../src/domain/conversation.ts';
import type { ConversationFilter, ConversationStore } from '../../src/ports/conversation-store.ts';
import type { ContractCase } from './contract.ts';
import { nextVersion, someConversation, someTime } from './records.ts';
import { allPages, idsOf, numbers, storeCase, type StoreHarness } from './store.ts';

/** Searches: orders, filters and pages. */
export function conversationSearchCases(harness: StoreHarness): ContractCase[] {
  return [...orderCases(harness), ...countCases(harness), ...filterCases(harness), ...pagingCases(harness)];
}

function countCases(harness: StoreHarness): ContractCase[] {
  return [
    storeCase(harness, "counts each owner's conversations by status", async ([{ conversations }]) => {
      await fill(conversations, [
        someConversation('a', { startStatus: 'READY', executionStatus: 'idle' }),
        someConversation('b', { startStatus: 'READY', executionStatus: 'idle' }),
        someConversation('c', { startStatus: 'ERROR', executionStatus: null }),
        someConversation('archived', { startStatus: 'READY', executionStatus: 'idle', archivedAt: someTime }),
        someConversation('gone', { startStatus: 'READY', executionStatus: 'idle', deletedAt: someTime }),
        someConversation('bobs', { startStatus: 'READY', executionStatus: null, ownerId: 'bob' }),
      ]);
      const sorted = async (scope: string | null): Promise<string[]> =>
        (await conversations.countByStatus(scope)).map((one) => `${one.ownerId} ${one.startStatus} ${one.executionStatus} ${one.count}`).toSorted();
      deepEqual(await sorted(null), ['ann ERROR null 1', 'ann READY idle 2', 'bob READY null 1']);
      deepEqual(await sorted('bob'), ['bob READY null 1']);
    }),
    storeCase(harness, 'lists failed conversations and slow starts, the latest change first', async ([{ conversations }]) => {
      await fill(conversations, [
        someConversation('failed', { startStatus: 'ERROR', updatedAt: someTime + 5, createdAt: someTime + 5 }),
        someConversation('broken', { startStatus: 'READY', executionStatus: 'error', updatedAt: someTime + 9 }),
        someConversation('slow', { startStatus: 'PREPARING_REPOSITORY', createdAt: someTime, updatedAt: someTime + 7 }),
        someConversation('quick', { startStatus: 'WORKING', createdAt: someTime + 3, updatedAt: someTime + 3 }),
        someConversation('fine', { startStatus: 'READY', executionStatus: 'idle', createdAt: someTime }),
        someConversation('archived', { startStatus: 'ERROR', archivedAt: someTime }),
        someConversation('gone', { startStatus: 'ERROR', deletedAt: someTime }),
        someConversation('bobs', { startStatus: 'ERROR', updatedAt: someTime + 8, ownerId: 'bob' }),
      ]);
      const found = async (scope: string | null, limit: number): Promise<string[]> => idsOf(await conversations.findFailedOrSlow(scope, someTime + 3, limit));
      deepEqual(await found('ann', 100), ['broken', 'slow', 'failed']);
      deepEqual(await found(null, 2), ['broken', 'bobs']);
    }),
  ];
}

function orderCases(harness: StoreHarness): ContractCase[] {
  const rows = [
    someConversation('a', { createdAt: someTime + 1, updatedAt: someTime + 30 }),
    someConversation('b', { createdAt: someTime + 2, updatedAt: someTime + 10 }),
    someConversation('c', { createdAt: someTime + 2, updatedAt: someTime + 20 }),
    someConversation('d', { createdAt: someTime + 3, updatedAt: someTime + 10 }),
    someConversation('gone', { deletedAt: someTime }),
    someConversation('bobs', { ownerId: 'bob' }),
  ];
  const expected = {
    CREATED_AT: ['a', 'b', 'c', 'd'],
    CREATED_AT_DESC: ['d', 'c', 'b', 'a'],
    UPDATED_AT: ['b', 'd', 'c', 'a'],
    UPDATED_AT_DESC: ['a', 'c', 'd', 'b'],
  };
  return conversationSortOrders.map((order) =>
    storeCase(harness, `lists an owner's conversations in the order ${order}, without deleted ones`, async ([{ conversations }]) => {
      await fill(conversations, rows);
      for (const limit of [1, 2, 3, 4, 100]) {
        const seen = await allPages((after) => conversations.search('ann', {}, order, { after, limit }));
        deepEqual(idsOf(seen), expected[order]);
        deepEqual(seen.find(({ id }) => id === 'a'), rows[0]);
      }
      deepEqual(await conversations.search('cyd', {}, order, { after: null, limit: 9 }), { items: [], next: null });
      const everybodys = await allPages((after) => conversations.search(null, {}, order, { after, limit: 3 }));
      equal(new Set(everybodys.map(({ ownerId }) => ownerId)).size, 2);
      equal((await conversations.search('ann', {}, order, { after: null, limit: 4 })).next, null);
    }),
  );
}

function filterCases(harness: StoreHarness): ContractCase[] {
  return [
    filterCase(harness, "filters by ids, only among the owner's own conversations", [
      [{ ids: ['r1', 'r3', 'nobody', 'bobs', 'gone'] }, ['r1', 'r3']],
      [{ ids: [] }, []],
    ]),
    filterCase(harness, 'filters by sandbox', [
      [{ sandboxId: 'shared' }, ['r2', 'r4']],
      [{ sandboxId: 'none' }, []],
    ]),
    filterCase(harness, 'filters by times, including the first and excluding the last', [
      [{ createdFrom: someTime + 3 }, ['r3', 'r4', 'r5']],
      [{ createdBefore: someTime + 3 }, ['r1', 'r2']],
      [{ createdFrom: someTime + 2, createdBefore: someTime + 4 }, ['r2', 'r3']],
      [{ createdFrom: someTime + 4, createdBefore: someTime + 2 }, []],
      [{ updatedFrom: someTime + 104 }, ['r1', 'r2']],
      [{ updatedBefore: someTime + 103 }, ['r4', 'r5']],
      [{ updatedFrom: someTime + 102, updatedBefore: someTime + 104, createdFrom: someTime + 4 }, ['r4']],
    ]),
    filterCase(harness, 'combines several filters', [
      [{ ids: ['r2', 'r3', 'r4'], sandboxId: 'shared', titleContains: 'deploy' }, ['r2']],
      [{ sandboxId: 'shared', createdFrom: someTime + 3 }, ['r4']],
    ]),
    filterCase(harness, 'finds a part of a title in upper and lower case', [
      [{ titleContains: 'deploy' }, ['r1', 'r2']],
      [{ titleContains: 'DEPLOY THE' }, ['r1']],
      [{ titleContains: 'ÜBER' }, ['r3']],
      [{ titleContains: 'σίσυφος' }, ['r3']],
      [{ titleContains: 'straße' }, ['r4']],
      [{ titleContains: 'nothing like it' }, []],
      [{ titleContains: '' }, ['r1', 'r2', 'r3', 'r4', 'r5']],
    ]),
    filterCase(harness, 'finds a part of a title with and without accents', [
      [{ titleContains: 'cafe an' }, ['r4']],
      [{ titleContains: 'UBER' }, ['r3']],
      [{ titleContains: 'σισυφος' }, ['r3']],
      [{ titleContains: 'dèploy' }, ['r1', 'r2']],
    ]),
    filterCase(harness, 'finds an accent in composed and decomposed form', [
      [{ titleContains: 'cafe\u0301' }, ['r4']],
      [{ titleContains: 'CAF\u00c9' }, ['r4']],
    ]),
    filterCase(harness, 'matches wildcard characters in a title literally', [
      [{ titleContains: '%' }, ['r1']],
      [{ titleContains: '_' }, ['r2']],
      [{ titleContains: '\\' }, ['r2']],
      [{ titleContains: '*' }, []],
      [{ titleContains: `'` }, []],
    ]),
    storeCase(harness, 'applies filters in every order and on every page', async ([{ conversations }]) => {
      await fill(
        conversations,
        Array.from({ length: 40 }, (_, n) =>
          someConversation(`c${n}`, { title: n % 3 === 0 ? 'Fix it' : 'Other', createdAt: someTime + n, updatedAt: someTime - n }),
        ),
      );
      for (const order of conversationSortOrders) {
        const filter = { titleContains: 'fix', createdFrom: someTime + 3, createdBefore: someTime + 36, updatedFrom: someTime - 33 };
        const seen = await allPages((after) => conversations.search('ann', filter, order, { after, limit: 3 }));
        const up = ['c3', 'c6', 'c9', 'c12', 'c15', 'c18', 'c21', 'c24', 'c27', 'c30', 'c33'];
        deepEqual(idsOf(seen), order === 'CREATED_AT' || order === 'UPDATED_AT_DESC' ? up : up.toReversed());
      }
    }),
  ];
}

const filtered = [
  someConversation('r1', { createdAt: someTime + 1, updatedAt: someTime + 105, title: 'Deploy the shop 100%' }),
  someConversation('r2', { createdAt: someTime + 2, updatedAt: someTime + 104, title: 'Re-deploy snake_case \\o/', sandboxId: 'shared' }),
  someConversation('r3', { createdAt: someTime + 3, updatedAt: someTime + 103, title: 'über ΣΊΣΥΦΟΣ' }),
  someConversation('r4', { createdAt: someTime + 4, updatedAt: someTime + 102, title: 'Caf\u00e9 an der STRASSE', sandboxId: 'shared' }),
  someConversation('r5', { createdAt: someTime + 5, updatedAt: someTime + 101, title: null }),
  someConversation('gone', { title: 'Deploy', sandboxId: 'shared', deletedAt: someTime }),
  someConversation('bobs', { title: 'Deploy', sandboxId: 'shared', ownerId: 'bob' }),
];

function filterCase(
  harness: StoreHarness,
  name: string,
  expectations: readonly (readonly [ConversationFilter, readonly string[]])[],
): ContractCase {
  return storeCase(harness, name, async ([{ conversations }]) => {
    await fill(conversations, filtered);
    for (const [filter, ids] of expectations) {
      for (const order of ['CREATED_AT', 'UPDATED_AT_DESC'] as const) {
        const { items } = await conversations.search('ann', filter, order, { after: null, limit: 100 });
        deepEqual(idsOf(items), ids, `${JSON.stringify(filter)} in the order ${order}`);
      }
    }
  });
}

function pagingCases(harness: StoreHarness): ContractCase[] {
  return conversationSortOrders.map((order, seed) =>
    storeCase(harness, `lists each unchanged row exactly once in the order ${order} while others are added and deleted`, async ([store]) => {
      const { conversations } = store;
      const below = numbers(seed + 1);
      const row = (id: string): Conversation =>
        someConversation(id, { createdAt: someTime + below(12), updatedAt: someTime + below(12) });
      const stay = Array.from({ length: 60 }, (_, n) => row(`stay-${n}`));
      const leave = Array.from({ length: 60 }, (_, n) => row(`leave-${n}`));
      await fill(conversations, [...stay, ...leave]);
      let come = 0;
      const seen = await allPages(
        (after) => conversations.search('ann', {}, order, { after, limit: 1 + below(9) }),
        async () => {
          for (let n = below(4); n > 0; n -= 1) await fill(conversations, [row(`come-${(come += 1)}`)]);
          const [deleted] = leave.splice(below(leave.length), 1);
          const [undone] = leave.splice(below(leave.length), 1);
          if (deleted !== undefined) await conversations.replace(nextVersion(deleted, { deletedAt: someTime }));
          if (undone !== undefined) await conversations.undoInsert(undone.id);
        },
      );
      const shown = new Set(idsOf(seen));
      equal(shown.size, seen.length, 'a row is shown twice');
      deepEqual(idsOf([...stay, ...leave]).filter((id) => !shown.has(id)), []);
    }),
  );
}

async function fill(conversations: ConversationStore, rows: readonly Conversation[]): Promise<void> {
  for (const row of rows) await conversations.insert(row);
}
