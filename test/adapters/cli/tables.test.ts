import { expect, test } from 'vitest';
import { conversationTable, recordText, table } from '../../../src/adapters/cli/tables.ts';
import type { api } from '../../../src/client/index.ts';

const ready: api.AppConversation = {
  id: 'conv-1', created_by_user_id: 'me', title: 'Fix', sandbox_id: 'sb-1', sandbox_status: 'RUNNING', sandbox_spec_id: 'coder',
  selected_repository: null, selected_branch: null, git_provider: null, start_status: 'READY', execution_status: null,
  status_detail: null, status_reason: null, pull_requests: [], created_at: '', updated_at: '', archived_at: null,
};

test('the list of conversations has the state of each, also of an archived one', () => {
  const archived = { ...ready, sandbox_status: 'MISSING', archived_at: '2026-11-24T00:00:00.000Z' } as const;
  const [, ...rows] = conversationTable([ready, archived]).trimEnd().split('\n').map((row) => row.split(/ {2,}/u).slice(1, 3));
  expect(rows).toEqual([['no agent', 'RUNNING'], ['archived', '-']]);
});

test('columns are aligned by the width of the text on the screen', () => {
  expect(table(['TITLE', 'STATE'], [['修复构建', 'READY'], ['👍 ok', 'READY'], ['Fix', 'READY']])).toBe(
    'TITLE     STATE\n修复构建  READY\n👍 ok     READY\nFix       READY\n',
  );
});

test('a resource is shown with all its fields, one line for each item, without its key and without control characters', () => {
  const sandbox: api.Sandbox = {
    id: 'sb-1', created_by_user_id: 'me', sandbox_spec_id: 'web', status: 'RUNNING', status_detail: 'Taken\n from \u001b[2Jthe pool.',
    status_reason: { code: 'claimed_from_pool', instance_id: 'sb-0' }, pause_kind: null, paused_by: null, paused_reason: null,
    session_api_key: 'a-key-of-the-sandbox',
    exposed_urls: [{ name: 'WEB', url: 'http://127.0.0.1:3001/sb-1/8000/', port: 8000 }, { name: 'X', url: 'http://x', port: 1 }],
    metadata: { code: '42', team: 'a b' }, created_at: '1', updated_at: '2', last_active_at: '3', expires_at: null,
  };
  expect(recordText(sandbox)).toBe(`\
id                  sb-1
created_by_user_id  me
sandbox_spec_id     web
status              RUNNING
status_detail       Taken from the pool.
status_reason       claimed_from_pool
pause_kind          -
paused_by           -
paused_reason       -
session_api_key     (printed with --json)
exposed_urls        name=WEB url=http://127.0.0.1:3001/sb-1/8000/ port=8000
                    name=X url=http://x port=1
metadata            code=42
                    team=a b
created_at          1
updated_at          2
last_active_at      3
expires_at          -
`);
  expect(recordText(ready)).toMatch(/^selected_repository +-\n(.+\n)+pull_requests +-$/m);
});
