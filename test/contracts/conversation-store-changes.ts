import { deepEqual, equal } from 'node:assert/strict';
import type { KeptChanges } from '../../src/domain/change.ts';
import type { ContractCase } from './contract.ts';
import { eventOf, someConversation, someTime } from './records.ts';
import { purgeAll, storeCase, type StoreHarness } from './store.ts';

export const someChanges: KeptChanges = {
  keptAt: someTime,
  tree: '7ee',
  list: {
    head: '6a',
    complete: true,
    commits: [{ commit: '6a', authorName: 'Änn', authorEmail: 'ann@example.com', committedAt: someTime, subject: 'First' }],
    files: [
      { path: 'a\n"b', status: 'renamed', oldPath: 'c', oldMode: '100644', mode: '100755', binary: false, added: 1, removed: 0, committed: true },
      { path: 'd', status: 'deleted', oldPath: null, oldMode: '100644', mode: null, binary: true, added: null, removed: null, committed: false },
    ],
  },
  patch: Uint8Array.from([0, 255, 10, 13, 128]),
};

/** Converts the patch to an array, so that a comparison ignores its class. */
const plain = (kept: KeptChanges | null): unknown => (kept === null ? null : { ...kept, patch: kept.patch === null ? null : [...kept.patch] });

export function conversationChangeCases(harness: StoreHarness): ContractCase[] {
  return [
    storeCase(harness, 'keeps the latest changes of a conversation until its record is purged', async ([{ conversations, events }]) => {
      const removed = someConversation('one', { deletedAt: 1, removedAt: someTime });
      await conversations.insert(removed);
      await conversations.insert(someConversation('two'));
      equal(await conversations.findKeptChanges('one'), null);
      await conversations.keepChanges('one', someChanges);
      await conversations.keepChanges('two', someChanges);
      deepEqual(plain(await conversations.findKeptChanges('one')), plain(someChanges));
      const bare: KeptChanges = { keptAt: someTime + 1, tree: '8', list: null, patch: null };
      await conversations.keepChanges('two', bare, [eventOf('work_tree_changed', { files: 1, linesAdded: 2, linesRemoved: 3 })]);
      deepEqual(plain(await conversations.findKeptChanges('two')), bare);
      deepEqual((await events.read({ ownerId: 'ann' }, 0, 9)).map(({ kind }) => kind), ['work_tree_changed']);
      await purgeAll(conversations, someTime + 1);
      deepEqual([await conversations.findKeptChanges('one'), plain(await conversations.findKeptChanges('two'))], [null, bare]);
    }),
  ];
}
