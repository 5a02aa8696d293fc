import { DatabaseSync } from 'node:sqlite';
import { describe, expect, test } from 'vitest';
import { searchFor } from '../../../src/adapters/sqlite/conversation-search.ts';
import * as conversations from '../../../src/adapters/sqlite/conversation-statements.ts';
import { migrate } from '../../../src/adapters/sqlite/migrate.ts';
import { migrations } from '../../../src/adapters/sqlite/migrations.ts';
import * as sandboxes from '../../../src/adapters/sqlite/sandbox-statements.ts';
import { conversationSortOrders } from '../../../src/domain/conversation.ts';

const database = new DatabaseSync(':memory:');
migrate(database, migrations, 7);

function planOf(sql: string): string {
  const plan = database.prepare(`EXPLAIN QUERY PLAN ${sql}`).all();
  return plan.map(({ detail }) => String(detail)).join('; ');
}

/** Each statement reads the rows that it answers with, however many others there are. */
describe('the plan of a statement', () => {
  const { searchSandboxes, ...others } = sandboxes;
  const statements = { ...others, ...conversations };

  test.each(Object.entries(statements))('%s walks through no whole table', (_, { sql }) => {
    expect(planOf(sql)).not.toMatch(/SCAN (sandboxes|conversations)(?! USING COVERING INDEX (sandboxes_running))|TEMP B-TREE/);
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
