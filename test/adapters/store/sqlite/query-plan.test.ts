import { DatabaseSync } from 'node:sqlite';
import { describe, expect, test } from 'vitest';
import { searchFor } from '../../../../src/adapters/store/sqlite/conversation-search.ts';
import * as conversations from '../../../../src/adapters/store/sqlite/conversation-statements.ts';
import { readFor } from '../../../../src/adapters/store/sqlite/event-reading.ts';
import * as events from '../../../../src/adapters/store/sqlite/event-statements.ts';
import { migrate } from '../../../../src/adapters/store/sqlite/migrate.ts';
import { migrations } from '../../../../src/adapters/store/sqlite/migrations.ts';
import * as sandboxes from '../../../../src/adapters/store/sqlite/sandbox-statements.ts';
import { conversationSortOrders } from '../../../../src/domain/conversation.ts';
import { eventKinds } from '../../../../src/domain/event.ts';
import type { EventFilter } from '../../../../src/ports/event-store.ts';

const database = new DatabaseSync(':memory:');
migrate(database, migrations, 7);

function planOf(sql: string): string {
  const plan = database.prepare(`EXPLAIN QUERY PLAN ${sql}`).all();
  return plan.map(({ detail }) => String(detail)).join('; ');
}

/** Each statement reads the rows that it answers with, however many others there are. */
describe('the plan of a statement', () => {
  const { searchSandboxes, ...others } = sandboxes;
  const statements = { ...others, ...conversations, ...events };

  test.each(Object.entries(statements))('%s walks through no whole table', (_, { sql }) => {
    // Those two indexes hold nothing else than what is counted, or shown in their order.
    const meant = '(?! USING (COVERING INDEX sandboxes_running|INDEX sandboxes_idle))';
    expect(planOf(sql)).not.toMatch(new RegExp(`SCAN (sandboxes|conversations|events)${meant}|TEMP B-TREE`));
  });

  const { countExisting, countExistingOf, countRunning, countRunningOf } = sandboxes;
  test.each(Object.entries({ countExisting, countExistingOf, countRunning, countRunningOf }))('%s counts in an index alone', (_, { sql }) => {
    expect(planOf(sql)).toMatch(/USING COVERING INDEX sandboxes_(existing|running)/);
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
    [
      { ownerId: 'x', conversationId: 'x', sandboxId: 'x', kinds: ['plan', 'usage', 'plan'] },
      [
        ...['plan', 'usage'].map(() => 'events_by_conversation_and_kind (conversation_id=? AND owner_id=? AND kind=?'),
        ...['plan', 'usage'].map(() => 'events_by_sandbox_and_kind (sandbox_id=? AND owner_id=? AND kind=?'),
      ],
    ],
  ])('events: %j are a range of an index for each place and kind, in the order of the log', (filter, ranges) => {
    const steps = planOf(readFor(filter)?.sql ?? '').split('; ').filter((step) => /SEARCH|SCAN|B-TREE/.test(step));
    expect(steps).toEqual(ranges.map((range) => `SEARCH events USING INDEX ${range} AND rowid>?)`));
  });

  test.each([
    ['all', 'sandboxes_by_owner (owner_id=?'],
    ['byStatus', 'sandboxes_by_status (owner_id=? AND status=?'],
    ['bySpec', 'sandboxes_by_spec (owner_id=? AND spec_id=?'],
    ['byBoth', 'sandboxes_by_spec_and_status (owner_id=? AND spec_id=? AND status=?'],
  ] as const)('sandboxes: %s begins in the index where the page begins', (shape, index) => {
    const plan = planOf(searchSandboxes[shape].sql);
    expect(plan).toContain(`${index} AND (created_at,id)<(?,?))`);
    expect(plan).not.toContain('TEMP B-TREE');
  });

  test.each(conversationSortOrders)('conversations: %s begins in the index where the page begins', (order) => {
    const [index, column] = order.startsWith('CREATED') ? ['creation', 'created_at'] : ['update', 'updated_at'];
    const plan = planOf(searchFor({}, order).sql);
    expect(plan).toContain(`conversations_by_${index} (owner_id=? AND (${column},id)>(?,?) AND (${column},id)<(?,?))`);
    expect(plan).not.toContain('TEMP B-TREE');
  });

  test.each(conversationSortOrders)('conversations: %s finds the few of a filter by it', (order) => {
    expect(planOf(searchFor({ sandboxId: 'x' }, order).sql)).toContain('conversations_by_sandbox (sandbox_id=?)');
    for (const filter of [{ ids: ['x'] }, { ids: ['x'], sandboxId: 'x' }]) {
      expect(planOf(searchFor(filter, order).sql)).toContain('sqlite_autoindex_conversations_1 (id=?');
    }
  });
});
