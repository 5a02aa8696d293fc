import { setImmediate as tick } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { withTimeout } from '../../../contracts/contract.ts';
import { agentByHand } from './by-hand.ts';

const ask = { sessionId: 's', toolCall: { toolCallId: 'call-1', title: 'Run it' }, options: [{ optionId: 'yes', name: 'Yes', kind: 'allow_once' }] };

/** Returns the message of the agent with this update. */
function updating(update: object) {
  return { method: 'session/update', params: { sessionId: 's', update } };
}

/**
 * Waits until the count does not grow during one iteration of the event loop. What is ready to be read is read within one
 * iteration.
 */
async function standstill(count: () => number): Promise<void> {
  for (let seen = -1; seen !== count(); ) {
    seen = count();
    await tick();
  }
}

/** Answers a permission request only when its signal fires. Also returns the signals that it got. */
function waiting() {
  const signals: AbortSignal[] = [];
  const permission = async (_: unknown, signal: AbortSignal): Promise<null> => {
    signals.push(signal);
    return await new Promise((resolve) => {
      signal.addEventListener('abort', () => resolve(null), { once: true });
    });
  };
  return { signals, permission };
}

test('messages and permission requests between two turns wait for the second one, others are ignored', async () => {
  const { client, turn, says, saying, heard } = await agentByHand({ permission: async () => 'yes' });
  const first = await turn();
  says('a');
  const usage = updating({ sessionUpdate: 'usage_update', used: 1, size: 2 });
  first.answer({ stopReason: 'end_turn' }, usage, saying(' late'), { id: 'late', method: 'session/request_permission', params: ask });
  expect(await first.ends).toEqual({ stopReason: 'end_turn', reason: null });
  await withTimeout('the work of the agent', client.unprompted);
  expect([client.said(), client.requests]).toEqual(['a', []]);
  const second = await turn();
  expect(await heard()).toMatchObject({ id: 'late', result: { outcome: { optionId: 'yes' } } });
  second.answer();
  await second.ends;
  expect(client.updates.map(({ kind }) => kind)).toEqual(['message_chunk', 'message_chunk', 'message_end', 'tool_call', 'tool_call']);
  expect(client.said()).toBe('a late');
});

test('the output of the agent is not read while the client handles an update', async () => {
  const { promise: taken, resolve: take } = Promise.withResolvers<void>();
  const { client, turn, says, reads } = await agentByHand({ update: () => taken });
  const { ends, answer } = await turn();
  const begun = client.next();
  const before = reads();
  for (let index = 0; index < 100; index += 1) says(`${index} `);
  answer();
  await begun;
  await standstill(reads);
  expect(reads() - before).toBe(1);
  expect(client.said()).toBe('0 ');
  take();
  await ends;
  expect(client.updates.length).toBe(100);
});

test('a message is reported at once while the agent waits for a permission', async () => {
  const { signals, permission } = waiting();
  const { session, client, turn, says, send, heard, dealtWith } = await agentByHand({ permission });
  const { ends, answer } = await turn();
  send({ id: 'ask', method: 'session/request_permission', params: ask });
  says('meanwhile');
  await dealtWith();
  expect(client.said()).toBe('meanwhile');
  expect(signals.map(({ aborted }) => aborted)).toEqual([false]);
  await session.cancel();
  const answers = [await heard(), await heard()];
  expect(answers).toContainEqual(expect.objectContaining({ method: 'session/cancel', params: { sessionId: 's' } }));
  expect(answers).toContainEqual(expect.objectContaining({ id: 'ask', result: { outcome: { outcome: 'cancelled' } } }));
  answer({ stopReason: 'cancelled' });
  expect((await ends).stopReason).toBe('cancelled');
});

test('a permission request after the cancellation of the turn is refused without the client', async () => {
  const { session, client, turn, send, heard } = await agentByHand();
  const { ends, answer } = await turn();
  await session.cancel();
  await heard();
  send({ id: 'ask', method: 'session/request_permission', params: ask });
  expect(await heard()).toMatchObject({ id: 'ask', result: { outcome: { outcome: 'cancelled' } } });
  expect(client.requests).toEqual([]);
  answer({ stopReason: 'cancelled' });
  await ends;
});

test('the agent can withdraw a permission request, or end the turn without an answer', async () => {
  const { signals, permission } = waiting();
  const { turn, send, heard, dealtWith } = await agentByHand({ permission });
  const { ends, answer } = await turn();
  send({ id: 'one', method: 'session/request_permission', params: ask }, { id: 'two', method: 'session/request_permission', params: ask });
  await dealtWith();
  send({ method: '$/cancel_request', params: { requestId: 'one' } });
  expect((await heard()).id).toBe('one');
  expect(signals.map(({ aborted }) => aborted)).toEqual([true, false]);
  answer();
  expect((await ends).stopReason).toBe('end_turn');
  expect((await heard()).id).toBe('two');
  expect(signals.map(({ aborted }) => aborted)).toEqual([true, true]);
});

test('an agent that sends requests and reads no answers is not read any further, and can be closed', async () => {
  const { session, turn, send, heard, reads } = await agentByHand();
  const { ends } = await turn();
  const before = reads();
  for (let index = 0; index < 2000; index += 1) send({ id: `r-${index}`, method: '_unknown', params: {} });
  await withTimeout('the first answer', heard());
  await standstill(reads);
  expect(reads() - before).toBeLessThan(500);
  await session.close();
  expect((await ends).stopReason).toBe('interrupted');
});

test('cancel() refuses an open permission request, and is sent to the agent once', async () => {
  const { session, turn, send, heard } = await agentByHand({ permission: () => new Promise(() => {}) });
  const { ends, answer } = await turn();
  send({ id: 'ask', method: 'session/request_permission', params: ask }, { id: 'mark', method: '_test/mark' });
  expect((await heard()).id).toBe('mark');
  await Promise.all([session.cancel(), session.cancel()]);
  await session.cancel();
  const answers = [await heard(), await heard()];
  expect(answers).toContainEqual(expect.objectContaining({ method: 'session/cancel' }));
  expect(answers).toContainEqual(expect.objectContaining({ id: 'ask', result: { outcome: { outcome: 'cancelled' } } }));
  send({ id: 'mark-2', method: '_test/mark' });
  expect((await heard()).id).toBe('mark-2');
  answer({ stopReason: 'cancelled' });
  expect((await ends).stopReason).toBe('cancelled');
});

test('a tool call is not reported again with its permission request, and is forgotten after the turn', async () => {
  const { client, turn, send, heard } = await agentByHand({ permission: async () => 'yes' });
  const first = await turn();
  send(updating({ sessionUpdate: 'tool_call', ...ask.toolCall }), { id: 'ask', method: 'session/request_permission', params: ask });
  expect(await heard()).toMatchObject({ id: 'ask', result: { outcome: { optionId: 'yes' } } });
  first.answer();
  await first.ends;
  const second = await turn();
  send(updating({ sessionUpdate: 'tool_call_update', toolCallId: 'call-1', status: 'completed' }));
  second.answer();
  await second.ends;
  const calls = client.updates.map((one) => (one.kind === 'tool_call' ? [one.call.title, one.call.status] : []));
  expect(calls).toEqual([['Run it', 'pending'], ['Run it', 'failed'], ['call-1', 'completed']]);
});

test('a result that comes right after the end of the turn does not replace the failure of its call', async () => {
  const { client, turn, send } = await agentByHand();
  const { ends, answer } = await turn();
  send(updating({ sessionUpdate: 'tool_call', ...ask.toolCall }));
  answer({ stopReason: 'cancelled' }, updating({ sessionUpdate: 'tool_call_update', toolCallId: 'call-1', status: 'failed' }));
  await ends;
  expect(client.updates.map((one) => one.kind === 'tool_call' && one.call.status)).toEqual(['pending', 'failed']);
});

test('a turn that fails after a cancelled turn has failed', async () => {
  const { session, turn, heard } = await agentByHand();
  const first = await turn();
  await session.cancel();
  expect((await heard()).method).toBe('session/cancel');
  first.fail('aborted');
  expect((await first.ends).stopReason).toBe('cancelled');
  const second = await turn();
  second.fail('the model is overloaded');
  expect(await second.ends).toEqual({ stopReason: 'failed', reason: { code: 'agent_error', message: 'the model is overloaded' } });
});

test('the last messages of an agent that exits are handled one by one before the turn ends', async () => {
  const order: string[] = [];
  const { session, turn, says, end } = await agentByHand({
    async update(update) {
      await tick();
      order.push(update.kind === 'message_chunk' ? update.text : update.kind);
    },
  });
  const { ends } = await turn();
  for (const text of ['a', 'b', 'c']) says(text);
  end();
  void session.closed.then(() => order.push('closed'));
  expect(await ends).toEqual({ stopReason: 'interrupted', reason: { code: 'agent_exited' } });
  expect(order).toEqual(['a', 'b', 'c', 'closed']);
});

test('close() drops the updates that wait, and the turn ends after the current update', async () => {
  const { promise: taken, resolve: take } = Promise.withResolvers<void>();
  const order: string[] = [];
  const { session, client, turn, send, saying, reads } = await agentByHand({ update: () => taken.then(() => void order.push('taken')) });
  const { ends } = await turn();
  const begun = client.next();
  send(...['a', 'b', 'c'].map(saying));
  await begun;
  await Promise.all([session.close(), session.close()]);
  const over = ends.then(() => order.push('over'));
  await standstill(reads);
  take();
  await over;
  expect(await ends).toEqual({ stopReason: 'interrupted', reason: { code: 'agent_session_closed' } });
  await standstill(() => client.updates.length);
  expect(order).toEqual(['taken', 'over']);
  expect(client.said()).toBe('a');
});

test('close() stops reading the output of the agent', async () => {
  const { session, unheard } = await agentByHand();
  await session.close();
  await withTimeout('the client stops reading the output', unheard);
});

test('a permission is requested only after the client has handled the tool call', async () => {
  const { promise: taken, resolve: take } = Promise.withResolvers<void>();
  const order: string[] = [];
  const { client, turn, send, heard, reads } = await agentByHand({
    update: () => taken.then(() => void order.push('taken')),
    async permission() {
      order.push('asked');
      return 'yes';
    },
  });
  const { ends, answer } = await turn();
  const begun = client.next();
  send({ id: 'ask', method: 'session/request_permission', params: ask });
  await begun;
  await standstill(reads);
  take();
  expect((await heard()).id).toBe('ask');
  expect(order).toEqual(['taken', 'asked']);
  expect(client.requests).toHaveLength(1);
  answer();
  expect((await ends).stopReason).toBe('end_turn');
});
