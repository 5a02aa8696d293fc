import { expect, test } from 'vitest';
import { openScripted } from './agents.ts';

const text = (words: string) => ({ type: 'text', text: words });

test('content that is no text is replaced by its name, and terminal escapes are removed', async () => {
  const { client, does } = await openScripted();
  const contents = [
    text('\u001b[1mbold\u001b[0m\u001b]0;title\u0007 \u0000bell\u0007\ttab\n'),
    { type: 'image', data: 'aGk=', mimeType: 'image/png' },
    { type: 'audio', data: 'aGk=', mimeType: 'audio/wav' },
    { type: 'resource_link', uri: 'file:///a.txt', name: 'a.txt' },
    { type: 'resource', resource: { uri: 'file:///b.txt', text: 'hidden' } },
    { type: 'hologram' },
    text(''),
  ];
  await does(...contents.map((content) => ({ update: { sessionUpdate: 'agent_message_chunk', content } })));
  const texts = client.updates.map((update) => (update.kind === 'message_chunk' ? update.text : null));
  expect(texts).toEqual(['bold bell\ttab\n', '[image: image/png]', '[audio: audio/wav]', '[resource: a.txt]', '[resource: file:///b.txt]', '[hologram]']);
});

test('updates of unknown kinds, of the user and of other sessions are ignored', async () => {
  const { client, does } = await openScripted();
  const turn = await does(
    { update: { sessionUpdate: 'user_message_chunk', content: text('me') } },
    { update: { sessionUpdate: 'available_commands_update', availableCommands: [] } },
    { update: { sessionUpdate: 'current_mode_update', currentModeId: 'ask' } },
    { update: { sessionUpdate: 'of_the_future', anything: [1] } },
    { notify: { method: 'session/update', params: { sessionId: 'another', update: { sessionUpdate: 'agent_message_chunk', content: text('not mine') } } } },
  );
  expect(turn).toEqual({ stopReason: 'end_turn', reason: null });
  expect(client.updates).toEqual([]);
});

test('a tool call is reported with all its fields, although an update may lack some or have unknown values', async () => {
  const { client, does } = await openScripted();
  const toolCallId = 'call-1';
  const diff = { type: 'diff', path: '/a', oldText: null, newText: '\u001b[31mred\n' };
  await does(
    { update: { sessionUpdate: 'tool_call_update', toolCallId, rawInput: { a: 1 } } },
    { update: { sessionUpdate: 'tool_call', toolCallId, title: 'Edit \u001b[1ma', kind: 'edit', status: 'in_progress', locations: [{ path: '/a', line: 3 }] } },
    { update: { sessionUpdate: 'tool_call_update', toolCallId, title: null, kind: null, locations: null, content: [diff, { type: 'content', content: text('ok\u001b[0m') }, { type: 'terminal', terminalId: 't' }] } },
    { update: { sessionUpdate: 'tool_call_update', toolCallId, title: '', status: 'of_the_future', content: null } },
    { update: { sessionUpdate: 'tool_call_update', toolCallId, status: 'completed', content: [] } },
  );
  const bare = { toolCallId, title: toolCallId, toolKind: 'other', status: 'pending', paths: [], content: [] };
  const begun = { ...bare, title: 'Edit a', toolKind: 'edit', status: 'in_progress', paths: ['/a'] };
  const shown = { ...begun, content: [diff, text('ok'), text('[terminal]')] };
  const calls = [bare, begun, shown, shown, { ...begun, status: 'completed' }];
  expect(client.updates).toEqual(calls.map((call) => ({ kind: 'tool_call', call })));
});

test.each<readonly [string, unknown, string]>([
  ['details', { details: 'no credit' }, 'Internal error: no credit'],
  ['a message', { message: 'no \u001b[31mcredit' }, 'Internal error: no credit'],
  ['text', 'no credit', 'Internal error: no credit'],
  ['an error', { error: { message: 'no credit', type: 'x' } }, 'Internal error: no credit'],
  ['nothing', undefined, 'Internal error'],
  ['something else', { code: 7 }, 'Internal error'],
])('a failed turn has the error message of the agent: %s', async (_, data, message) => {
  const { does } = await openScripted();
  expect(await does({ error: { code: -32_603, message: 'Internal error', data } })).toEqual({ stopReason: 'failed', reason: { code: 'agent_error', message } });
});

test.each<readonly [string, unknown]>([
  ['nothing', null],
  ['no reason', {}],
  ['an unknown reason', { stopReason: 'of_the_future' }],
])('a turn fails if the agent answers with %s', async (_, answer) => {
  const { does } = await openScripted();
  const { stopReason, reason } = await does({ answer });
  expect(stopReason).toBe('failed');
  expect(reason).not.toBeNull();
});

test('a cancelled turn is `cancelled`, even if the agent answers with an error', async () => {
  const { session, client, does } = await openScripted();
  const stalls = client.next();
  const turn = does({ objects: true });
  await stalls;
  await session.cancel();
  expect(await turn).toEqual({ stopReason: 'cancelled', reason: { code: 'agent_error', message: 'AbortError: it was aborted' } });
});

test('no option is chosen if the client throws on a permission request', async () => {
  const { client, does } = await openScripted({
    client: {
      permission: async () => {
        throw new Error('the store is full');
      },
    },
  });
  const options = [{ optionId: 'yes', name: 'Yes', kind: 'allow_once' } as const];
  await does({ ask: { toolCallId: 'x', title: 'X', options } });
  expect(client.said()).toBe('chosen: nothing');
});

test('a second turn fails while one is in progress', async () => {
  const { session, client, does } = await openScripted();
  const stalls = client.next();
  const turn = does({ stall: 'heeds' });
  await stalls;
  expect((await does({ say: 'b' })).stopReason).toBe('failed');
  await session.cancel();
  expect((await turn).stopReason).toBe('cancelled');
});

test('a session can be closed while the agent does not read a large prompt', async () => {
  const { session, does } = await openScripted();
  await does({ deaf: true });
  const turn = session.prompt({ content: [{ type: 'text', text: 'x'.repeat(5_000_000) }] });
  await session.cancel();
  await session.close();
  expect((await turn).stopReason).toBe('interrupted');
  expect(await session.closed).toEqual({ code: 'agent_session_closed' });
});
