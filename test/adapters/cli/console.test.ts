import { expect, test } from 'vitest';
import { conversationTable, table } from '../../../src/adapters/cli/console.ts';
import type { api } from '../../../src/client/index.ts';

const ready: api.AppConversation = {
  id: 'conv-1', created_by_user_id: 'me', title: 'Fix', sandbox_id: 'sb-1', sandbox_status: 'RUNNING', sandbox_spec_id: 'coder',
  selected_repository: null, selected_branch: null, git_provider: null, start_status: 'READY', execution_status: null,
  status_detail: null, status_reason: null, pull_requests: [], created_at: '', updated_at: '', archived_at: null,
};

test('the list of conversations has the state of each, also of one that is archived', () => {
  const archived = { ...ready, sandbox_status: 'MISSING', archived_at: '2026-11-24T00:00:00.000Z' } as const;
  const [, ...rows] = conversationTable([ready, archived]).trimEnd().split('\n').map((row) => row.split(/ {2,}/u).slice(1, 3));
  expect(rows).toEqual([['no agent', 'RUNNING'], ['archived', '-']]);
});

test('columns are aligned by the width of the text on the screen', () => {
  expect(table(['TITLE', 'STATE'], [['修复构建', 'READY'], ['👍 ok', 'READY'], ['Fix', 'READY']])).toBe(
    'TITLE     STATE\n修复构建  READY\n👍 ok     READY\nFix       READY\n',
  );
});
