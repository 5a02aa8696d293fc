import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { createMemoryStore } from '../../../src/adapters/memory/index.ts';
import { conversationSortOrders, conversationStartStatuses } from '../../../src/domain/conversation.ts';
import { sandboxStatuses } from '../../../src/domain/sandbox.ts';
import type { ConversationFilter } from '../../../src/ports/conversation-store.ts';
import type { Store } from '../../../src/ports/store.ts';
import { someConversation, someSandbox, someSpec } from '../../contracts/records.ts';
import { sqliteHarness } from './harness.ts';

type Call = (store: Store) => Promise<unknown>;

const few = (prefix: string): fc.Arbitrary<string> => fc.constantFrom('1', '2', '3', '4', '5').map((n) => prefix + n);
const time = fc.integer({ min: 1, max: 6 });
const perhaps = <T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | null> => fc.option(arbitrary, { freq: 3 });
const owner = fc.constantFrom('ann', 'bob');
const title = fc.constantFrom('Alpha', 'ALPHABET', 'étude', 'E\u0301TUDE', '100%', 'a_b', '');
const limits = fc.record({ runningPerOwner: perhaps(fc.nat(3)), running: perhaps(fc.nat(4)) });
const claim = fc.record({ ownerId: owner, key: few('k'), fingerprint: fc.constantFrom('f', 'g') });
const page = fc.record({ after: perhaps(fc.record({ value: time, id: few('s') })), limit: fc.integer({ min: 1, max: 4 }) });

const sandbox = fc
  .record({
    id: few('s'),
    ownerId: owner,
    specId: few('spec'),
    status: fc.constantFrom(...sandboxStatuses),
    generation: fc.integer({ min: 1, max: 4 }),
    createdAt: time,
    lastActiveAt: time,
    deletedAt: perhaps(time),
    removedAt: perhaps(time),
  })
  .map(({ id, specId, ...rest }) => someSandbox(id, { ...rest, spec: someSpec({ id: specId }) }));

const conversation = fc
  .record({
    id: few('s'),
    ownerId: owner,
    title: perhaps(title),
    sandboxId: few('s'),
    startStatus: fc.constantFrom(...conversationStartStatuses),
    generation: fc.integer({ min: 1, max: 4 }),
    createdAt: time,
    updatedAt: time,
    deletedAt: perhaps(time),
    removedAt: perhaps(time),
  })
  .map(({ id, ...rest }) => someConversation(id, rest));

const filter: fc.Arbitrary<ConversationFilter> = fc.record(
  {
    ids: fc.array(few('s'), { maxLength: 4 }),
    titleContains: fc.constantFrom('ALPHA', 'étu', 'E\u0301', '%', '_', 'b'),
    createdFrom: time,
    createdBefore: time,
    updatedFrom: time,
    updatedBefore: time,
    sandboxId: few('s'),
  },
  { requiredKeys: [] },
);

const call: fc.Arbitrary<Call> = fc.oneof(
  fc.tuple(sandbox, limits, fc.option(claim, { nil: undefined })).map(([one, room, made]): Call => (s) => s.sandboxes.insert(one, room, made)),
  sandbox.map((one): Call => (s) => s.sandboxes.replace(one)),
  fc.tuple(sandbox, limits).map(([one, room]): Call => (s) => s.sandboxes.admit(one, room)),
  fc.tuple(few('s'), time).map(([id, at]): Call => (s) => s.sandboxes.touch(id, at)),
  few('s').map((id): Call => (s) => s.sandboxes.find(id)),
  fc
    .tuple(owner, perhaps(fc.constantFrom(...sandboxStatuses)), perhaps(few('spec')), page)
    .map(([who, status, specId, where]): Call => (s) =>
      s.sandboxes.search(who, { ...(status !== null && { status }), ...(specId !== null && { specId }) }, where)),
  fc.tuple(perhaps(few('s')), fc.integer({ min: 1, max: 4 })).map(([after, limit]): Call => (s) => s.sandboxes.scan(after, limit)),
  time.map((before): Call => (s) => s.sandboxes.purge(before)),
  fc.tuple(conversation, fc.option(claim, { nil: undefined })).map(([one, made]): Call => (s) => s.conversations.insert(one, made)),
  conversation.map((one): Call => (s) => s.conversations.replace(one)),
  few('s').map((id): Call => (s) => s.conversations.withdraw(id)),
  few('s').map((id): Call => (s) => s.conversations.countUsing(id)),
  fc
    .tuple(owner, filter, fc.constantFrom(...conversationSortOrders), page)
    .map(([who, which, order, where]): Call => (s) => s.conversations.search(who, which, order, where)),
  perhaps(few('s')).map((after): Call => (s) => s.conversations.scanUnsettled(after, 3)),
  time.map((before): Call => (s) => s.conversations.purge(before)),
);

test('answers every sequence of calls as the store in memory does', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(call, { minLength: 20, maxLength: 80 }), async (calls) => {
      const open = await sqliteHarness.open();
      const memory = createMemoryStore();
      try {
        for (const [turn, make] of calls.entries()) {
          const store = open.connections[turn % open.connections.length] ?? open.connections[0];
          expect(await make(store)).toEqual(await make(memory));
        }
      } finally {
        await open.dispose();
      }
    }),
    { numRuns: 60 },
  );
}, 120_000);
