import { expect, test } from 'vitest';
import { createInMemoryStore } from '../../../src/adapters/store/sqlite/index.ts';
import { someConversation, someEvent } from '../../contracts/records.ts';

test('A purge deletes a batch of records or of their events, and says whether more may be left', async () => {
  const { conversations, events } = createInMemoryStore();
  const ids = Array.from({ length: 250 }, (_, n) => `c${n}`);
  for (const id of ids) await conversations.insert(someConversation(id, { deletedAt: 1, removedAt: 1 }));
  await events.append([someEvent('told', { conversationId: 'c0' })]);
  const left = async (): Promise<number> => (await Promise.all(ids.map((id) => conversations.find(id)))).filter((found) => found !== null).length;
  expect([await conversations.purge(2), await left(), await events.read({ ownerId: 'ann' }, 0, 9)]).toEqual([true, 250, []]);
  expect([await conversations.purge(2), await left()]).toEqual([true, 50]);
  expect([await conversations.purge(2), await left()]).toEqual([false, 0]);
});
