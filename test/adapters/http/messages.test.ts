import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { items, object, type Json } from '../../support/client.ts';
import { openEventStream } from '../../support/event-stream.ts';
import { until } from '../../support/until.ts';
import { conversations, readyConversation, stall } from './support.ts';
import { coderSpec, createWorld, type World } from './world.ts';

const options = [
  { optionId: 'yes', name: 'Yes', kind: 'allow_once' as const },
  { optionId: 'no', name: 'No', kind: 'reject_once' as const },
];

let world: World;
beforeAll(async () => {
  world = await createWorld({
    specs: [coderSpec],
    script: async (turn) => {
      const text = turn.message.content.at(-1)?.text ?? '';
      if (text === 'ask') await turn.say(`chosen: ${await turn.ask({ toolCallId: 'call-1', title: 'Write a file', options })}`);
      else if (text === 'stall') return await stall(turn);
      else await turn.say(`heard: ${text}`);
      return 'end_turn';
    },
  });
});
afterAll(() => world.close());

const said = (text: string) => ({ content: [{ type: 'text', text }] });

async function eventsOf(id: string, ...kinds: readonly string[]): Promise<Json[]> {
  const page = await world.ann('GET', `${conversations}/${id}/events?${kinds.map((kind) => `kinds=${kind}`).join('&')}`);
  return items(page).map(({ data }) => data as Json);
}

async function sent(id: string, text: string, headers: Readonly<Record<string, string>> = {}): Promise<string> {
  const answer = await world.ann('POST', `${conversations}/${id}/messages`, said(text), headers);
  expect(answer.status).toBe(202);
  return String(object(answer)['message_id']);
}

/** Waits for the end of the turn of the message, and returns its stop reason. */
async function turnOf(id: string, messageId: string): Promise<unknown> {
  const stream = await openEventStream(`${world.url}${conversations}/${id}/events/stream?kinds=turn_ended`, world.keys.ann);
  const events = await stream.upTo(({ data }) => data.includes(messageId));
  stream.cut();
  return (JSON.parse(events.at(-1)?.data ?? '') as { data: { stop_reason: string } }).data.stop_reason;
}

describe('messages', () => {
  test('are accepted, and sent to the agent in order', async () => {
    const id = await readyConversation(world);
    const ids = [await sent(id, 'one'), await sent(id, 'two'), await sent(id, 'three')];
    expect(new Set(ids).size).toBe(3);
    expect(await turnOf(id, ids[2] ?? '')).toBe('end_turn');
    expect((await eventsOf(id, 'turn_started')).map((data) => data['message_id'])).toEqual(ids);
    const told = await eventsOf(id, 'message');
    expect(told.filter(({ role }) => role === 'user').map(({ message_id: name, text }) => [name, text])).toEqual([[ids[0], 'one'], [ids[1], 'two'], [ids[2], 'three']]);
    expect(told.filter(({ role }) => role === 'agent').map(({ text }) => text)).toEqual(['heard: one', 'heard: two', 'heard: three']);
    expect(await world.ann('GET', `${conversations}/${id}`)).toMatchObject({ body: { execution_status: 'idle', start_status: 'READY' } });
  });

  test('with the same idempotency key are one message with one id', async () => {
    const id = await readyConversation(world);
    const headers = { 'Idempotency-Key': 'one/message' };
    const first = await sent(id, 'once', headers);
    expect(await sent(id, 'once', headers)).toBe(first);
    expect(await turnOf(id, first)).toBe('end_turn');
    expect(await sent(id, 'once', headers)).toBe(first);
    const other = await world.ann('POST', `${conversations}/${id}/messages`, said('another'), headers);
    expect(other).toMatchObject({ status: 409, body: { code: 'idempotency_conflict', key: 'one/message' } });
    expect((await eventsOf(id, 'message')).filter(({ role }) => role === 'user')).toHaveLength(1);
    expect(await sent(id, 'once', { 'Idempotency-Key': 'another' })).not.toBe(first);
  });

  test('are refused if they are malformed or too large', async () => {
    const id = await readyConversation(world);
    const bodies = [
      undefined, {}, { content: [] }, { content: 'hello' }, { content: [{ type: 'text', text: '' }] }, { content: [{ type: 'image', text: 'x' }] },
      { ...said('x'), role: 'user' }, said('\0'), said('x'.repeat(100_001)), '{"content": [',
    ];
    for (const body of bodies) expect(await world.ann('POST', `${conversations}/${id}/messages`, body)).toMatchObject({ status: 422 });
    expect(await world.ann('POST', `${conversations}/${id}/messages`, said('x'.repeat(100_001)))).toMatchObject({
      body: { detail: [{ loc: ['body', 'content', 0, 'text'], msg: 'must have at most 100000 characters, but has 100001' }] },
    });
    const large = { content: Array.from({ length: 4 }, () => ({ type: 'text', text: 'x'.repeat(99_000) })) };
    const sizeBytes = JSON.stringify(large).length;
    expect(await world.ann('POST', `${conversations}/${id}/messages`, large)).toMatchObject({
      status: 413, body: { detail: `The body of the request is too large. The limit is 262144 bytes, and it has ${sizeBytes}.`, size_bytes: sizeBytes },
    });
    expect(await eventsOf(id, 'message')).toEqual([]);
  });
});

test('a cancelled turn ends, and the next message gets its turn', async () => {
  const id = await readyConversation(world);
  const [first, second] = [await sent(id, 'stall'), await sent(id, 'next')];
  await until(() => eventsOf(id, 'message_chunk'), (chunks) => chunks.length > 0, 60_000);
  expect(await world.ann('GET', `${conversations}/${id}`)).toMatchObject({ body: { execution_status: 'running' } });
  expect(await world.ann('POST', `${conversations}/${id}/cancel`)).toMatchObject({ status: 202, body: { id } });
  expect(await turnOf(id, first)).toBe('cancelled');
  expect(await turnOf(id, second)).toBe('end_turn');
  expect(await world.ann('POST', `${conversations}/${id}/cancel`)).toMatchObject({ status: 202 });
  expect(await world.ann('POST', `${conversations}/${id}/cancel`, { message: first })).toMatchObject({ status: 422 });
});

test('a waiting message is withdrawn by its id, and the turn before it goes on', async () => {
  const id = await readyConversation(world);
  const [first, second] = [await sent(id, 'stall'), await sent(id, 'next')];
  await until(() => eventsOf(id, 'message_chunk'), (chunks) => chunks.length > 0, 60_000);
  const cancel = (message_id: string) => world.ann('POST', `${conversations}/${id}/cancel`, { message_id });
  expect(await cancel(second)).toMatchObject({ status: 202, body: { execution_status: 'running' } });
  expect(await turnOf(id, second)).toBe('cancelled');
  expect(await cancel(second)).toMatchObject({ status: 202, body: { execution_status: 'running' } });
  await cancel(first);
  expect(await turnOf(id, first)).toBe('cancelled');
  expect(await eventsOf(id, 'turn_started')).toMatchObject([{ message_id: first }]);
  expect(items(await world.ann('GET', `${conversations}/${id}/transcript?format=json`))).toMatchObject([
    { kind: 'message', text: 'stall' }, { kind: 'message', text: 'next', delivered: false }, { kind: 'message', role: 'agent' }, { kind: 'turn_ended' },
  ]);
  const { body: markdown } = await world.ann('GET', `${conversations}/${id}/transcript`);
  expect(markdown).toMatch(/^# .+\n\n## User, \S+\n\n> stall\n\n## User, \S+ \(not delivered\)\n\n> next\n/u);
});

test('a permission request can be answered once, by its owner, with one of its options', async () => {
  const id = await readyConversation(world, { permission_policy: 'ask' });
  const message = await sent(id, 'ask');
  const [asked] = await until(() => eventsOf(id, 'permission_requested'), (requests) => requests.length > 0, 60_000);
  expect(asked).toMatchObject({ title: 'Write a file', tool_call_id: 'call-1', options: [{ option_id: 'yes', name: 'Yes', kind: 'allow_once' }, { option_id: 'no' }] });
  expect(await world.ann('GET', `${conversations}/${id}`)).toMatchObject({ body: { execution_status: 'waiting_for_permission' } });
  expect(items(await world.ann('GET', `${conversations}/${id}/transcript?format=json`)).at(-1)).toEqual({
    kind: 'permission', at: expect.any(String), title: 'Write a file', decision: 'open', option_name: null, actor: null, user_id: null, status_detail: null, status_reason: null,
  });
  expect((await world.ann('GET', `${conversations}/${id}/transcript`)).body).toMatch(/\n- Permission for `Write a file`: waits for an answer\.\n$/);
  const path = `${conversations}/${id}/permissions/${String(asked?.['permission_id'])}`;
  const ben = world.client(world.keys.ben);
  expect(await ben('POST', path, { option_id: 'yes' })).toMatchObject({ status: 404, body: { code: 'conversation_not_found' } });
  for (const body of [{}, { option_id: '' }, { option_id: 7 }, { option_id: 'yes', more: 1 }, { option_id: 'maybe' }]) {
    expect(await world.ann('POST', path, body)).toMatchObject({ status: 422, body: { detail: [{ loc: expect.arrayContaining(['body']) }] } });
  }
  expect(await world.ann('POST', path, { option_id: 'yes' })).toMatchObject({ status: 200, body: { id, execution_status: 'running' } });
  expect(await turnOf(id, message)).toBe('end_turn');
  expect((await eventsOf(id, 'message')).at(-1)).toMatchObject({ text: 'chosen: yes' });
  expect(await eventsOf(id, 'permission_answered')).toMatchObject([{ option_id: 'yes' }]);
  expect(await world.ann('POST', path, { option_id: 'no' })).toMatchObject({ status: 404, body: { code: 'permission_not_found' } });
  expect(items(await world.ann('GET', `${conversations}/${id}/transcript?format=json`))[1]).toEqual({
    kind: 'permission', at: expect.any(String), title: 'Write a file', decision: 'allowed', option_name: 'Yes', actor: 'user', user_id: 'ann', status_detail: null, status_reason: null,
  });
  const { body: markdown } = await world.ann('GET', `${conversations}/${id}/transcript`);
  expect(markdown).toMatch(/\n> ask\n\n- Permission for `Write a file`: allowed by the user \(`Yes`\)\.\n\n## Agent/);
});

test('the permission policy of a conversation overrides the policy of its spec', async () => {
  for (const [policy, chosen] of [['allow', 'yes'], ['deny', 'no']] as const) {
    const id = await readyConversation(world, { permission_policy: policy });
    expect(await turnOf(id, await sent(id, 'ask'))).toBe('end_turn');
    expect((await eventsOf(id, 'message')).at(-1)).toMatchObject({ text: `chosen: ${chosen}` });
    const decision = policy === 'allow' ? 'allowed (`Yes`)' : 'refused (`No`)';
    expect((await world.ann('GET', `${conversations}/${id}/transcript`)).body)
      .toContain(`\n- Permission for \`Write a file\`: ${decision}. Decided by the policy of the conversation: ${policy}.\n`);
  }
  expect(await world.ann('POST', conversations, { permission_policy: 'sometimes' })).toMatchObject({ status: 422 });
});

test('a conversation accepts no message and no cancel from another owner', async () => {
  const id = await readyConversation(world);
  const ben = world.client(world.keys.ben);
  for (const [path, body] of [['messages', said('hello')], ['cancel', undefined]] as const) {
    expect(await ben('POST', `${conversations}/${id}/${path}`, body)).toMatchObject({ status: 404, body: { code: 'conversation_not_found', conversation_id: id } });
  }
});

test('a message that looks like a heading stays a quotation in the transcript, with any line ends', async () => {
  const id = await readyConversation(world);
  await turnOf(id, await sent(id, 'one\r# two\r\n# three\n# four'));
  const { body: markdown } = await world.ann('GET', `${conversations}/${id}/transcript`);
  expect(markdown).toContain('\n> one\n> # two\n> # three\n> # four\n');
});

test('archiving cannot be undone', async () => {
  const id = await readyConversation(world);
  await world.ann('PATCH', `${conversations}/${id}`, { archived: true });
  const refused = await world.ann('PATCH', `${conversations}/${id}`, { archived: false });
  const detail = `The conversation ${id} does not accept the request. The conversation is archived, which can't be undone. `;
  expect(refused).toMatchObject({ status: 409, body: { code: 'conversation_not_ready', detail: expect.stringContaining(detail) } });
});
