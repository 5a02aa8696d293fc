import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { conversationSortOrders, conversationStartStatuses, agentStatuses } from '../../../../src/domain/conversation.ts';
import { unlimited } from '../../../../src/domain/admission-limits.ts';
import { sandboxStatuses } from '../../../../src/domain/sandbox.ts';
import type { ConversationFilter } from '../../../../src/ports/conversation-store.ts';
import type { EventFilter } from '../../../../src/ports/event-store.ts';
import { eventOf, someConversation, someEvent, someMessage, somePooled, someSandbox, someSpec } from '../../../contracts/records.ts';
import { purgeAll } from '../../../contracts/store.ts';
import { createReferenceStore, type ReferenceStore } from '../reference/store.ts';
import { sqliteHarness } from './harness.ts';

type Call = (store: ReferenceStore) => Promise<unknown>;

const few = (prefix: string): fc.Arbitrary<string> => fc.constantFrom('1', '2', '3', '4', '5').map((n) => prefix + n);
const time = fc.integer({ min: 1, max: 6 });
const perhaps = <T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | null> => fc.option(arbitrary, { freq: 3 });
const owner = fc.constantFrom('ann', 'bob');
const title = fc.constantFrom('Alpha', 'ALPHABET', 'étude', 'E\u0301TUDE', '100%', 'a_b', '');
const limits = fc.record({
  runningPerOwner: perhaps(fc.nat(3)),
  running: perhaps(fc.nat(4)),
  existingPerOwner: perhaps(fc.nat(4)),
  existing: perhaps(fc.nat(5)),
});
const claim = fc.record({ ownerId: owner, key: few('k'), fingerprint: fc.constantFrom('f', 'g') });
const page = fc.record({ after: perhaps(fc.record({ value: time, id: few('s') })), limit: fc.integer({ min: 1, max: 4 }) });

const sandbox = fc
  .record({
    id: few('s'),
    ownerId: owner,
    instanceId: few('i'),
    specId: few('spec'),
    status: fc.constantFrom(...sandboxStatuses),
    version: fc.integer({ min: 1, max: 4 }),
    createdAt: time,
    lastActiveAt: time,
    deletedAt: perhaps(time),
    removedAt: perhaps(time),
  })
  .map(({ id, specId, ...rest }) => someSandbox(id, { ...rest, spec: someSpec({ id: specId }) }));

const pooled = fc
  .record({
    id: fc.constantFrom('p1', 'p2'),
    status: fc.constantFrom('RUNNING', 'RUNNING', 'RUNNING', 'STARTING', 'ERROR'),
    version: fc.constantFrom(1, 1, 2),
    createdAt: time,
    deletedAt: fc.constantFrom(null, null, null, 3),
  })
  .map(({ id, ...rest }) => somePooled(id, rest));

const conversation = fc
  .record({
    id: few('s'),
    ownerId: owner,
    title: perhaps(title),
    sandboxId: few('s'),
    startStatus: fc.constantFrom(...conversationStartStatuses),
    executionStatus: perhaps(fc.constantFrom(...agentStatuses)),
    queue: fc.array(few('m').map((id) => someMessage(id)), { maxLength: 2 }),
    turn: perhaps(few('m').map((id) => someMessage(id))),
    version: fc.integer({ min: 1, max: 4 }),
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

const place = fc.record({ ownerId: owner, conversationId: perhaps(few('s')), sandboxId: perhaps(few('s')), at: time });
const event = fc.oneof(
  place.map((where) => someEvent('text', where)),
  place.map((where) => eventOf('turn_started', { messageId: 'm' }, where)),
  place.map((where) => eventOf('conversation_deleted', {}, where)),
);
const events = fc.array(event, { maxLength: 3, size: 'max' });
const kinds = fc.array(fc.constantFrom('message', 'turn_started', 'conversation_deleted', 'plan'), { minLength: 1, maxLength: 3 });
const eventFilter: fc.Arbitrary<EventFilter> = fc
  .tuple(owner, fc.record({ conversationId: few('s'), sandboxId: few('s'), kinds }, { requiredKeys: [] }))
  .map(([ownerId, others]) => ({ ownerId, ...others }));

const fillPool = fc
  .tuple(pooled, few('f'), fc.nat(3))
  .map(([one, fingerprint, size]): Call => (s) => s.sandboxes.insertPooled(one, fingerprint, size));

const claimFromPool = fc
  .tuple(sandbox, pooled, fc.oneof(fc.constant(unlimited), limits), fc.option(claim, { nil: undefined }), events)
  .map(([one, member, room, made, told]): Call => (s) =>
    s.sandboxes.claimFromPool({ ...one, instanceId: member.id }, member, room, made, told));

const readEvents = fc
  .tuple(eventFilter, fc.constantFrom(0, 0, 1, 4, 9), fc.integer({ min: 1, max: 5 }))
  .map(([which, after, limit]): Call => (s) => s.events.read(which, after, limit));

const call: fc.Arbitrary<Call> = fc.oneof(
  fc
    .tuple(sandbox, limits, fc.option(claim, { nil: undefined }), events)
    .map(([one, room, made, told]): Call => (s) => s.sandboxes.insert(one, room, made, told)),
  fc.tuple(sandbox, events).map(([one, told]): Call => (s) => s.sandboxes.replace(one, told)),
  fc.tuple(sandbox, limits, events).map(([one, room, told]): Call => (s) => s.sandboxes.admit(one, room, told)),
  { weight: 3, arbitrary: fillPool },
  { weight: 3, arbitrary: claimFromPool },
  pooled.map((one): Call => (s) => s.sandboxes.replace(one)),
  fc.constant((s: ReferenceStore) => s.sandboxes.pooled()),
  fc.oneof(few('i'), few('p')).map((id): Call => (s) => s.sandboxes.findByInstance(id)),
  fc.tuple(perhaps(owner), fc.integer({ min: 1, max: 4 })).map(([who, limit]): Call => (s) => s.sandboxes.longestIdle(who, limit)),
  fc.tuple(few('s'), time).map(([id, at]): Call => (s) => s.sandboxes.touch(id, at)),
  few('s').map((id): Call => (s) => s.sandboxes.find(id)),
  fc
    .tuple(owner, perhaps(fc.constantFrom(...sandboxStatuses)), perhaps(few('spec')), fc.boolean(), page)
    .map(([who, status, specId, oldestFirst, where]): Call => (s) =>
      s.sandboxes.search(who, { ...(status !== null && { status }), ...(specId !== null && { specId }), oldestFirst }, where)),
  fc.tuple(perhaps(few('s')), fc.integer({ min: 1, max: 4 })).map(([after, limit]): Call => (s) => s.sandboxes.scan(after, limit)),
  time.map((before): Call => (s) => purgeAll(s.sandboxes, before)),
  fc
    .tuple(conversation, fc.option(claim, { nil: undefined }), events)
    .map(([one, made, told]): Call => (s) => s.conversations.insert(one, made, told)),
  fc
    .tuple(conversation, events, fc.option(claim, { nil: undefined }))
    .map(([one, told, made]): Call => (s) => s.conversations.replace(one, told, made)),
  few('s').map((id): Call => (s) => s.conversations.undoInsert(id)),
  few('s').map((id): Call => (s) => s.conversations.findUsing(id).then((found) => found.toSorted((a, b) => (a.id < b.id ? -1 : 1)))),
  fc
    .tuple(owner, filter, fc.constantFrom(...conversationSortOrders), page)
    .map(([who, which, order, where]): Call => (s) => s.conversations.search(who, which, order, where)),
  perhaps(few('s')).map((after): Call => (s) => s.conversations.scanUnsettled(after, 3)),
  time.map((before): Call => (s) => purgeAll(s.conversations, before)),
  { weight: 3, arbitrary: events.map((told): Call => (s) => s.events.append(told)) },
  { weight: 3, arbitrary: readEvents },
  fc.tuple(time, fc.integer({ min: 1, max: 3 })).map(([before, limit]): Call => (s) => s.events.purge(before, limit)),
  fc.constant((s: ReferenceStore) => s.events.latest()),
);

test('SQLite returns the same as the reference store for random sequences of calls', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(call, { minLength: 40, maxLength: 80 }), async (calls) => {
      const open = await sqliteHarness.open();
      const reference = createReferenceStore();
      try {
        for (const [turn, make] of calls.entries()) {
          const store = open.connections[turn % open.connections.length] ?? open.connections[0];
          expect(await make(store)).toEqual(await make(reference));
        }
      } finally {
        await open.dispose();
      }
    }),
    { numRuns: 60 },
  );
});
