import { expect, test } from 'vitest';
import { createClient } from '../../src/client/index.ts';

const answer = (text: string) => ({ kind: 'message', data: { message_id: 'agent', role: 'agent', channel: 'answer', text } });
const started = { kind: 'turn_started', data: { message_id: 'mine' } };

/** Returns a conversation whose events are these. */
async function conversationOf(events: readonly object[]) {
  const complete = events.map((event, index) => ({ status_reason: null, reason: null, ...event, id: index + 1 }));
  const stream = complete.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('');
  const fetch = async (input: string | URL | Request): Promise<Response> => {
    const url = input instanceof Request ? input.url : String(input);
    if (url.includes('/messages')) return Response.json({ message_id: 'mine' });
    return url.includes('/stream') ? new Response(stream, { headers: { 'Last-Event-ID': '0' } }) : Response.json({ id: 'c' });
  };
  return await createClient({ url: 'http://localhost', key: 'key', fetch }).conversations.get('c');
}

test('ask waits for the next turn of a message that is sent again', async () => {
  const data = { message_id: 'mine', stop_reason: 'interrupted' };
  const requeued = { kind: 'turn_ended', data, status_reason: { code: 'message_requeued' } };
  const ended = { kind: 'turn_ended', data: { message_id: 'mine', stop_reason: 'end_turn' } };
  const conversation = await conversationOf([started, requeued, started, answer('done'), ended, answer('later')]);
  expect(await conversation.ask('do it')).toBe('done');
});

test('ask fails if the turn of its message is interrupted for good', async () => {
  const ended = { kind: 'turn_ended', data: { message_id: 'mine', stop_reason: 'interrupted' }, status_reason: { code: 'agent_exited' } };
  const conversation = await conversationOf([started, ended, started]);
  await expect(conversation.ask('do it')).rejects.toMatchObject({ code: 'turn_failed', context: { stop_reason: 'interrupted' } });
});
