import { beforeAll, describe, expect, test } from 'vitest';
import { createConversationStore } from '../../../../src/adapters/store/conversation-store.ts';
import { createEventLog } from '../../../../src/adapters/store/event-store.ts';
import { createExecutionStore } from '../../../../src/adapters/store/execution-store.ts';
import { createListingCache } from '../../../../src/adapters/store/listing-cache.ts';
import { createSandboxStore } from '../../../../src/adapters/store/sandbox-store.ts';
import { migrate } from '../../../../src/adapters/store/sqlite/migrate.ts';
import { conversationSortOrders } from '../../../../src/domain/conversation.ts';
import { eventKinds } from '../../../../src/domain/event.ts';
import { newExecution } from '../../../../src/domain/execution.ts';
import { unlimited } from '../../../../src/domain/admission-limits.ts';
import type { ConversationFilter } from '../../../../src/ports/conversation-store.ts';
import type { EventFilter } from '../../../../src/ports/event-store.ts';
import type { SandboxFilter } from '../../../../src/ports/sandbox-store.ts';
import { nextVersion, someConversation, someEvent, somePooled, someSandbox } from '../../../contracts/records.ts';
import { openDb } from './harness.ts';

const statements: string[] = [];
const { sqlite, db } = openDb(':memory:', ({ query }) => statements.push(query.sql));
migrate(sqlite);
const events = createEventLog(db);
const sandboxes = createSandboxStore(db, events);
const conversations = createConversationStore(db, events);
const executions = createExecutionStore(db);
const cache = createListingCache(db, { maxBytes: 10, now: () => 100_000 });

const someExecution = newExecution({ id: 'e', sandboxId: 'sb', command: ['ls'], stdin: false, tty: false, timeoutMs: null, now: 5 });
const gone = { deletedAt: 1, removedAt: 1 };
beforeAll(async () => {
  await sandboxes.insert(someSandbox('gone', gone), unlimited);
  await conversations.insert(someConversation('gone', gone));
});

function planOf(statement: string): string {
  return sqlite.prepare(`EXPLAIN QUERY PLAN ${statement}`).all().map(({ detail }) => String(detail)).join('; ');
}

/** Returns the plans of the statements that the call ran, as kysely compiled them. */
async function plansOf(call: () => Promise<unknown>): Promise<string[]> {
  statements.length = 0;
  await call();
  return statements.map(planOf).filter((plan) => plan !== '');
}

const limits = { runningPerOwner: 2, running: 3, existingPerOwner: 4, existing: 5 };
const claim = { ownerId: 'ann', key: 'k', fingerprint: 'f' };
const otherClaim = { ...claim, key: 'other' };
const page = { after: null, limit: 20 };
const next = { after: { value: 5, id: 'x' }, limit: 20 };

/** Each statement reads only the rows that it returns, however many others there are. */
describe('The query plan', () => {
  test.each<[string, () => Promise<unknown>]>([
    ['sandboxes.insert', () => sandboxes.insert(someSandbox('one'), limits, claim, [someEvent('told')])],
    ['sandboxes.insertPooled', () => sandboxes.insertPooled(somePooled('p'), 'f', 9)],
    ['sandboxes.claimFromPool', () => sandboxes.claimFromPool(someSandbox('two', { ownerId: 'bob' }), somePooled('p'), limits, otherClaim)],
    ['sandboxes.pooled', () => sandboxes.pooled()],
    ['sandboxes.replace', () => sandboxes.replace(nextVersion(someSandbox('one')), [someEvent('told')])],
    ['sandboxes.admit', () => sandboxes.admit(nextVersion(someSandbox('one', { version: 2 })), limits)],
    ['sandboxes.touch', () => sandboxes.touch('one', 1)],
    ['sandboxes.find', () => sandboxes.find('one')],
    ['sandboxes.findMany', () => sandboxes.findMany(['one', 'two'])],
    ['sandboxes.findByInstance', () => sandboxes.findByInstance('one')],
    ['sandboxes.longestIdle', () => sandboxes.longestIdle(null, 5)],
    ['sandboxes.longestIdle of an owner', () => sandboxes.longestIdle('ann', 5)],
    ['sandboxes.findFailedOrSlow', () => sandboxes.findFailedOrSlow(null, 5, 5)],
    ['sandboxes.findFailedOrSlow of an owner', () => sandboxes.findFailedOrSlow('ann', 5, 5)],
    ['sandboxes.countByStatus', () => sandboxes.countByStatus(null)],
    ['sandboxes.countByStatus of an owner', () => sandboxes.countByStatus('ann')],
    ['conversations.findFailedOrSlow', () => conversations.findFailedOrSlow(null, 5, 5)],
    ['conversations.findFailedOrSlow of an owner', () => conversations.findFailedOrSlow('ann', 5, 5)],
    ['conversations.countByStatus', () => conversations.countByStatus(null)],
    ['conversations.countByStatus of an owner', () => conversations.countByStatus('ann')],
    ['sandboxes.scan', () => sandboxes.scan('one', 5)],
    ['sandboxes.purge', () => sandboxes.purge(5)],
    ['conversations.insert', () => conversations.insert(someConversation('one'), claim, [someEvent('told')])],
    ['conversations.replace', () => conversations.replace(nextVersion(someConversation('one')), [], claim)],
    ['conversations.undoInsert', () => conversations.undoInsert('one')],
    ['conversations.find', () => conversations.find('one')],
    ['conversations.findUsing', () => conversations.findUsing('one')],
    ['conversations.scanUnsettled', () => conversations.scanUnsettled('one', 5)],
    ['conversations.purge', () => conversations.purge(5)],
    ['executions.insert', () => executions.insert(someExecution, { executionsPerSandbox: 5 }, claim)],
    ['executions.replace', () => executions.replace({ ...someExecution, version: 2 })],
    ['executions.undoInsert', () => executions.undoInsert('e')],
    ['executions.find', () => executions.find('e')],
    ['executions.list', () => executions.list('sb', next)],
    ['executions.running', () => executions.running('sb')],
    ['executions.endedBeyondNewest', () => executions.endedBeyondNewest('sb', 5)],
    ['executions.scanUnsettled', () => executions.scanUnsettled('e', 5)],
    ['executions.purge', () => executions.purge(5)],
    ['events.purge', () => events.purge(5, 5)],
    ['listingCache.put', () => cache.put('s', 'k', 'v')],
    ['listingCache.put that replaces another entry', () => cache.put('s', 'other', 'longer')],
    ['listingCache.get', () => cache.get('s', 'other')],
  ])('of %s scans no whole table', async (_, call) => {
    const plans = await plansOf(call);
    expect(statements.length).toBeGreaterThan(0);
    // Skep scans these indexes on purpose. They hold only the rows that are counted, or that are returned in this order.
    const meant = '(?! USING (COVERING INDEX (sandboxes_running|sandboxes_counted|conversations_counted|listing_cache_by_use)|INDEX (sandboxes_idle|sandboxes_troubled|conversations_troubled)))';
    const whole = new RegExp(`SCAN (sandboxes|conversations|executions|events|claims|listing_cache\\b)${meant}|TEMP B-TREE`);
    for (const plan of plans) expect(plan).not.toMatch(whole);
  });

  test('of a limit counts in an index alone', async () => {
    const plans = await plansOf(() => sandboxes.insert(someSandbox('three'), limits));
    const byId = 'USING COVERING INDEX sqlite_autoindex_sandboxes_1 (id=?)';
    const counts = plans.filter((plan) => !plan.includes(byId) && (plan.includes('CO-ROUTINE') || plan.includes('COVERING')));
    expect(counts).toHaveLength(4);
    for (const plan of counts) expect(plan).toMatch(/USING COVERING INDEX sandboxes_(existing|running)/);
  });

  test.each<[EventFilter, readonly string[]]>([
    [{ ownerId: 'x' }, ['events_by_owner (owner_id=?']],
    [{ ownerId: 'x', conversationId: 'x' }, ['events_by_conversation (conversation_id=? AND owner_id=?']],
    [{ ownerId: 'x', sandboxId: 'x' }, ['events_by_sandbox (sandbox_id=? AND owner_id=?']],
    [
      { ownerId: 'x', conversationId: 'x', sandboxId: 'x' },
      ['events_by_conversation (conversation_id=? AND owner_id=?', 'events_by_sandbox (sandbox_id=? AND owner_id=?'],
    ],
    [{ ownerId: 'x', kinds: ['plan'] }, ['events_by_owner_and_kind (owner_id=? AND kind=?']],
    [{ ownerId: 'x', kinds: eventKinds }, eventKinds.map(() => 'events_by_owner_and_kind (owner_id=? AND kind=?')],
    [{ ownerId: null, kinds: ['plan', 'usage'] }, ['plan', 'usage'].map(() => 'events_by_kind (kind=?')],
    [
      { ownerId: 'x', conversationId: 'x', sandboxId: 'x', kinds: ['plan', 'usage', 'plan'] },
      [
        ...['plan', 'usage'].map(() => 'events_by_conversation_and_kind (conversation_id=? AND owner_id=? AND kind=?'),
        ...['plan', 'usage'].map(() => 'events_by_sandbox_and_kind (sandbox_id=? AND owner_id=? AND kind=?'),
      ],
    ],
  ])('of events with %j reads one index range for each place and kind, in the order of the log', async (filter, ranges) => {
    const [plan = ''] = await plansOf(() => events.read(filter, 3, 9));
    const steps = plan.split('; ').filter((step) => /SEARCH|SCAN|B-TREE/.test(step));
    expect(steps).toEqual(ranges.map((range) => `SEARCH events USING INDEX ${range} AND rowid>?)`));
  });

  test('of events of a sandbox of any owner reads no other sandbox', async () => {
    const [plan] = await plansOf(() => events.read({ ownerId: null, sandboxId: 'x', kinds: ['plan'] }, 3, 9));
    expect(plan).toContain('events_by_sandbox (sandbox_id=?)');
  });

  test.each<[SandboxFilter, string]>([
    [{}, 'sandboxes_by_owner (owner_id=?'],
    [{ status: 'RUNNING' }, 'sandboxes_by_status (owner_id=? AND status=?'],
    [{ specId: 'x' }, 'sandboxes_by_spec (owner_id=? AND spec_id=?'],
    [{ status: 'RUNNING', specId: 'x' }, 'sandboxes_by_spec_and_status (owner_id=? AND spec_id=? AND status=?'],
    [{ metadata: { task: '7', user: 'x' } }, 'sandboxes_by_owner (owner_id=?'],
    [{ oldestFirst: true }, 'sandboxes_by_owner (owner_id=?'],
  ])('of sandboxes with %j starts in the index where the page starts', async (filter, index) => {
    const range = `${index} AND (created_at,id)${filter.oldestFirst === true ? '>' : '<'}(?,?))`;
    expect(await plansOf(() => sandboxes.search('x', filter, next))).toEqual([expect.stringContaining(range)]);
    expect(await plansOf(() => sandboxes.search('x', filter, page))).toEqual([expect.stringContaining(`${index})`)]);
    for (const plan of statements.map(planOf)) expect(plan).not.toContain('TEMP B-TREE');
  });

  test.each<SandboxFilter>([{}, { status: 'RUNNING' }, { specId: 'x' }, { metadata: { user: 'x' } }, { oldestFirst: true }])(
    'of sandboxes of all owners with %j reads them in their order, from where the page starts',
    async (filter) => {
      const [first] = await plansOf(() => sandboxes.search(null, filter, page));
      expect(first).toContain('SCAN sandboxes USING INDEX sandboxes_of_all');
      const [later] = await plansOf(() => sandboxes.search(null, filter, next));
      expect(later).toContain(`sandboxes_of_all ((created_at,id)${filter.oldestFirst === true ? '>' : '<'}(?,?))`);
      for (const plan of [first, later]) expect(plan).not.toContain('TEMP B-TREE');
    },
  );

  test.each(conversationSortOrders)('of conversations of all owners by %s reads them in their order, from where the page starts', async (order) => {
    const [index, column] = order.startsWith('CREATED') ? ['creation', 'created_at'] : ['update', 'updated_at'];
    const [first] = await plansOf(() => conversations.search(null, {}, order, page));
    expect(first).toContain(`SCAN conversations USING INDEX conversations_of_all_by_${index}`);
    const [later] = await plansOf(() => conversations.search(null, { titleContains: 'x' }, order, next));
    expect(later).toContain(`conversations_of_all_by_${index} ((${column},id)${order.endsWith('DESC') ? '<' : '>'}(?,?))`);
    for (const plan of [first, later]) expect(plan).not.toContain('TEMP B-TREE');
  });

  test.each(conversationSortOrders)('of conversations by %s starts in the index where the page or the time range starts', async (order) => {
    const byCreation = order.startsWith('CREATED');
    const [index, column] = byCreation ? ['creation', 'created_at'] : ['update', 'updated_at'];
    const times = byCreation ? { createdFrom: 1, createdBefore: 9 } : { updatedFrom: 1, updatedBefore: 9 };
    const others = byCreation ? { updatedFrom: 1, updatedBefore: 9 } : { createdFrom: 1, createdBefore: 9 };
    const key = order.endsWith('DESC') ? [`${column}>?`, `(${column},id)<(?,?)`] : [`(${column},id)>(?,?)`, `${column}<?`];
    const expected = [
      [{}, page, 'owner_id=?'],
      [others, page, 'owner_id=?'],
      [times, page, `owner_id=? AND ${column}>? AND ${column}<?`],
      [{ ...times, ...others, titleContains: 'x' }, next, `owner_id=? AND ${key.join(' AND ')}`],
    ] as const;
    for (const [filter, where, range] of expected) {
      const [plan] = await plansOf(() => conversations.search('x', filter, order, where));
      expect(plan).toContain(`conversations_by_${index} (${range})`);
      expect(plan).not.toContain('TEMP B-TREE');
    }
  });

  test.each(conversationSortOrders)('of conversations by %s uses the index of the ids or of the sandbox in the filter', async (order) => {
    const find = async (filter: ConversationFilter) => await plansOf(() => conversations.search('x', filter, order, page));
    expect(await find({ sandboxId: 'x' })).toEqual([expect.stringContaining('conversations_by_sandbox (sandbox_id=?)')]);
    for (const filter of [{ ids: ['x'] }, { ids: ['x'], sandboxId: 'x' }]) {
      expect(await find(filter)).toEqual([expect.stringContaining('sqlite_autoindex_conversations_1 (id=?')]);
    }
  });
});
