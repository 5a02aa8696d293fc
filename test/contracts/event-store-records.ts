import { deepEqual, equal, ok } from 'node:assert/strict';
import { unlimited } from '../../src/domain/admission-limits.ts';
import type { Store } from '../../src/ports/store.ts';
import type { ContractCase } from './contract.ts';
import { eventOf, nextVersion, someConversation, someEvent, somePooled, someSandbox } from './records.ts';
import { purgeAll, race, storeCase, type StoreHarness, textsOf } from './store.ts';

const noRoom = { ...unlimited, running: 0 };
const claim = { ownerId: 'ann', key: 'key-1', fingerprint: 'request-1' };

/** Events of a record's write: they are written together with the record, or not at all. */
export function eventRecordCases(harness: StoreHarness): ContractCase[] {
  return [
    storeCase(harness, "writes the events of a record's write, and notifies the listeners", async ([store]) => {
      const { sandboxes, conversations, events } = store;
      const woken: string[] = [];
      events.subscribe(({ conversationIds }) => woken.push(...conversationIds));
      const paused = someSandbox('s', { status: 'PAUSED' });
      const made = someConversation('c');
      await sandboxes.insertPooled(somePooled('p'), 'f', 1);
      const outcomes = [
        await sandboxes.insert(paused, unlimited, undefined, note('insert')),
        await sandboxes.admit(nextVersion(paused, { status: 'RESUMING' }), unlimited, note('admit')),
        await sandboxes.replace({ ...paused, status: 'RUNNING', version: 3 }, note('replace')),
        await sandboxes.claimFromPool(someSandbox('h', { instanceId: 'p' }), somePooled('p'), unlimited, undefined, note('claimFromPool')),
        await conversations.insert(made, undefined, note('insert 2')),
        await conversations.replace(nextVersion(made), note('replace 2')),
        await conversations.replace({ ...made, version: 3 }, note('replace 3'), claim),
      ].map(({ kind }) => kind);
      deepEqual(outcomes, ['inserted', 'replaced', 'replaced', 'inserted', 'inserted', 'replaced', 'replaced']);
      const written = ['insert', 'admit', 'replace', 'claimFromPool', 'insert 2', 'replace 2', 'replace 3'];
      deepEqual(await texts(store), written);
      ok((await store.events.read({ ownerId: 'ann' }, 0, 1000)).every(({ userId }) => userId === 'root'));
      deepEqual(woken, written);
    }),
    storeCase(harness, 'writes no event and notifies nobody if the record is not written', async ([store]) => {
      const { sandboxes, conversations, events } = store;
      const sandbox = someSandbox('s', { status: 'PAUSED' });
      const conversation = someConversation('c');
      await sandboxes.insert(sandbox, unlimited, claim);
      await conversations.insert(conversation, claim);
      await sandboxes.insertPooled(somePooled('p'), 'f', 1);
      events.subscribe(() => {
        throw new Error('nothing was written');
      });
      const other = { ...claim, fingerprint: 'other' };
      const outcomes = [
        await sandboxes.insert(sandbox, unlimited, undefined, note('again')),
        await sandboxes.insert(someSandbox('t'), noRoom, undefined, note('no room')),
        await sandboxes.insert(someSandbox('t'), unlimited, claim, note('repeated')),
        await sandboxes.insert(someSandbox('t'), unlimited, other, note('conflict')),
        await sandboxes.claimFromPool(someSandbox('t'), { id: 'p', version: 7 }, unlimited, undefined, note('stale')),
        await sandboxes.claimFromPool(someSandbox('t'), somePooled('p'), noRoom, undefined, note('no room')),
        await sandboxes.claimFromPool(someSandbox('t'), somePooled('p'), unlimited, claim, note('repeated')),
        await sandboxes.replace(sandbox, note('stale')),
        await sandboxes.admit(sandbox, unlimited, note('stale')),
        await sandboxes.admit(nextVersion(sandbox, { status: 'RESUMING' }), noRoom, note('no room')),
        await conversations.insert(conversation, undefined, note('again')),
        await conversations.insert(someConversation('d'), claim, note('repeated')),
        await conversations.replace(conversation, note('stale')),
        await conversations.replace(nextVersion(conversation), note('repeated'), claim),
        await conversations.replace(nextVersion(conversation), note('conflict'), other),
      ].map(({ kind }) => kind);
      const ofSandboxes = ['inserted', 'limit', 'repeated', 'conflict', 'stale', 'limit', 'repeated', 'stale', 'stale', 'limit'];
      deepEqual(outcomes, [...ofSandboxes, 'inserted', 'repeated', 'stale', 'repeated', 'conflict']);
      deepEqual(await texts(store), []);
    }),
    storeCase(harness, 'writes only the events of the replacement that succeeds among 20 concurrent ones', async (connections) => {
      const conversation = someConversation('c');
      const sandbox = someSandbox('s');
      await connections[0].conversations.insert(conversation);
      await connections[0].sandboxes.insert(sandbox, unlimited);
      const winners = await race(connections, 20, async (store, turn) => [
        (await store.conversations.replace(nextVersion(conversation), note(`c${turn}`))).kind === 'replaced' ? [`c${turn}`] : [],
        (await store.sandboxes.replace(nextVersion(sandbox), note(`s${turn}`))).kind === 'replaced' ? [`s${turn}`] : [],
      ]);
      const expected = winners.flat(2);
      equal(expected.length, 2);
      deepEqual((await texts(connections[0])).toSorted(), expected.toSorted());
    }),
    storeCase(harness, 'deletes the events of a conversation whose insert is undone, and no others', async ([store]) => {
      const { conversations, events } = store;
      await conversations.insert(someConversation('one'), undefined, note('one'));
      await conversations.insert(someConversation('two'), undefined, note('two'));
      await events.append([...note('one'), someEvent('sandbox', { conversationId: null })]);
      await conversations.undoInsert('one');
      await conversations.undoInsert('one');
      deepEqual(await texts(store), ['two', 'sandbox']);
    }),
    storeCase(harness, 'keeps the events of purged sandboxes, and of purged conversations only the changes of their status', async ([store]) => {
      const removed = { deletedAt: 1, removedAt: 1 };
      const ended = eventOf('conversation_deleted', {}, { conversationId: 'one' });
      await store.conversations.insert(someConversation('one', removed), undefined, [...note('one'), ended]);
      await store.conversations.insert(someConversation('other'), undefined, note('other'));
      await store.sandboxes.insert(someSandbox('two', removed), unlimited, undefined, note('two'));
      // More than are deleted at once.
      await store.events.append(Array.from({ length: 2500 }, () => note('one')).flat());
      await purgeAll(store.conversations, 2);
      await purgeAll(store.sandboxes, 2);
      const kept = await store.events.read({ ownerId: 'ann' }, 0, 5000);
      deepEqual(kept.map(({ kind, conversationId }) => [kind, conversationId]), [
        ['conversation_deleted', 'one'], ['message', 'other'], ['message', 'two'],
      ]);
      equal(await store.conversations.find('one'), null);
    }),
  ];
}

/** Returns one event. Its text identifies it, and is also its conversation's id. */
function note(text: string) {
  return [someEvent(text, { conversationId: text, userId: 'root' })];
}

async function texts({ events }: Store): Promise<string[]> {
  return textsOf(await events.read({ ownerId: 'ann' }, 0, 1000));
}
