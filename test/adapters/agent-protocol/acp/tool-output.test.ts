import { expect, test } from 'vitest';
import type { AgentUpdate } from '../../../../src/ports/agent-protocol.ts';
import { openScripted } from './agents.ts';

const text = (words: string) => ({ type: 'text', text: words });
const shown = (words: string) => ({ type: 'content', content: text(words) });

/** What Codex sends for the end of a command. */
const ofCodex = {
  call_id: 'call', process_id: '38937', turn_id: '01a2222e-ba97-7213-932d-0c4493a81a4a', completed_at_ms: 1_795_869_820_905,
  command: ['/bin/bash', '-lc', 'npm test; exit 3'], cwd: '/workspace', parsed_cmd: [{ type: 'unknown', cmd: 'npm test; exit 3' }],
  source: 'unified_exec_startup', stdout: 'err\nrunning tests\n', stderr: '', aggregated_output: 'err\nrunning tests\n', exit_code: 3,
  duration: { secs: 0, nanos: 7631 }, formatted_output: 'err\nrunning tests\n', status: 'failed',
};

/** Returns the content of the tool call after each of the changes. */
async function contents(...changes: readonly object[]): Promise<unknown[]> {
  const { client, does } = await openScripted();
  await does(...changes.map((change) => ({ update: { sessionUpdate: 'tool_call_update', toolCallId: 'call', status: 'completed', ...change } })));
  return client.updates.map((update: AgentUpdate) => update.kind === 'tool_call' && update.call.content);
}

test.each<readonly [string, unknown, string]>([
  ['of Codex', ofCodex, 'err\nrunning tests\n[exit code 3]'],
  ['of a command without output', { ...ofCodex, aggregated_output: '', exit_code: 0 }, '[exit code 0]'],
  ['of OpenCode', { output: 'done', metadata: { exit: 0 } }, 'done'],
  ['with two streams', { stdout: 'out', stderr: 'err', exit_code: 1 }, 'outerr\n[exit code 1]'],
  ['that is text', '\u001b[31mred\u001b[0m', 'red'],
  ['in another form', { trigger: 'manual', tokens: 325 }, '{"trigger":"manual","tokens":325}'],
])('raw output becomes content of the tool call, after what is there: raw output %s', async (_, rawOutput, output) => {
  expect(await contents({ content: [shown('Needs to run npm test')] }, { status: 'completed', rawOutput }, { title: 'npm test' })).toEqual([
    [text('Needs to run npm test')],
    [text('Needs to run npm test'), text(output)],
    [text('Needs to run npm test'), text(output)],
  ]);
});

test('a kind that is no word is another one', async () => {
  const { client, does } = await openScripted();
  await does({ update: { sessionUpdate: 'tool_call', toolCallId: 'call', title: 'A call', kind: 'x'.repeat(1000) } });
  expect(client.updates[0]).toMatchObject({ kind: 'tool_call', call: { toolKind: 'other' } });
});

test('newer raw output replaces the earlier one', async () => {
  expect(await contents({ rawOutput: 'one' }, { rawOutput: 'one\ntwo' })).toEqual([[text('one')], [text('one\ntwo')]]);
});

test('raw output is not shown if the update has content, or content follows', async () => {
  const nothing = { content: [], rawOutput: null };
  expect(await contents({ rawOutput: 'raw', content: [shown('as content')] }, nothing, { rawOutput: 'raw' }, { content: [shown('later')] })).toEqual([
    [text('as content')], [], [text('raw')], [text('later')],
  ]);
});

test('raw output is not shown beside the diff of a change', async () => {
  const diff = { type: 'diff', path: '/a', oldText: null, newText: 'new' };
  expect(await contents({ content: [diff] }, { status: 'completed', rawOutput: 'File created successfully at: /a' })).toEqual([[diff], [diff]]);
});
