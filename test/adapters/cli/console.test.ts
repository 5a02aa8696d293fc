import { expect, test } from 'vitest';
import { conversationTable, followOptions, textOfError } from '../../../src/adapters/cli/console.ts';
import { type api, SkepError } from '../../../src/client/index.ts';

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

const problem = (loc: readonly (string | number)[], msg: string) => ({ loc, msg, type: 'custom' });

test('an invalid request names what the user typed, not the field of the API', () => {
  const problems = [
    problem(['body', 'env', '1A'], 'must be a name'), problem(['path', 'port'], 'must be a port'),
    problem(['body', 'resources', 'memory_bytes'], 'must be positive'), problem(['body', 'initial_message'], 'must be text'),
  ];
  const error = new SkepError('invalid_request', 'of the server', { context: { problems } });
  expect(textOfError(error)).toBe(
    '--env (1A): must be a name; the port: must be a port; --memory: must be positive; body.initial_message: must be text',
  );
});

test('a stream that reconnects says so, and does not advise to start a server', () => {
  const reported: string[] = [];
  const { onLost } = followOptions(new AbortController().signal, (text) => reported.push(text));
  onLost(new SkepError('unreachable', 'No Skep server answers at http://x.', { context: { url: 'http://x' } }));
  expect(reported).toEqual(['The connection to the server was lost, reconnecting: No Skep server answers at http://x.']);
});
