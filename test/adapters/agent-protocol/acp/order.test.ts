import { setImmediate as tick } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { withTimeout } from '../../../contracts/contract.ts';
import { agentByHand } from './by-hand.ts';

const ask = { sessionId: 's', toolCall: { toolCallId: 'call-1', title: 'Run it' }, options: [{ optionId: 'yes', name: 'Yes', kind: 'allow_once' }] };

/** The agent says the update. */
function updating(update: object) {
  return { method: 'session/update', params: { sessionId: 's', update } };
}

/**
 * Waits until the count stops growing: a whole turn of the event loop passes in which it stays. What is ready to be read is read
 * within a turn.
 */
async function standstill(count: () => number): Promise<void> {
  for (let seen = -1; seen !== count(); ) {
    seen = count();
    await tick();
  }
}

/** A client that waits for its signal, and the signals that it got. */
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

test('what comes between turns belongs to none', async () => {
  const { client, turn, says, saying, heard, dealtWith } = await agentByHand();
  says('early ');
  await dealtWith();
  const first = await turn();
  says('a');
  first.answer({ stopReason: 'end_turn' }, saying('late'), { id: 'late', method: 'session/request_permission', params: ask });
  expect(await heard()).toMatchObject({ id: 'late', result: { outcome: { outcome: 'cancelled' } } });
  expect(await first.ends).toEqual({ stopReason: 'end_turn', reason: null });
  const second = await turn();
  says('b');
  second.answer();
  await second.ends;
  expect(client.said()).toBe('ab');
  expect(client.requests).toEqual([]);
});

test('the agent is not read while an update is being taken', async () => {
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

test('what the agent says while it waits for a permission is reported at once', async () => {
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

test('leave that is asked for when the turn was cancelled already is not put to anybody', async () => {
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

test('the agent may withdraw a permission request, and may end the turn without waiting for an answer', async () => {
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

test('an agent that asks without end and does not listen is read no further, and can be closed', async () => {
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

test('leave is refused when the turn is cancelled, though whoever was asked does not answer; and the agent is told once to leave off', async () => {
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

test('a reported call is not reported again with the permission request, and the calls of a turn are forgotten with it', async () => {
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
  expect(calls).toEqual([['Run it', 'pending'], ['call-1', 'completed']]);
});

test('a turn that fails after one that was cancelled has failed', async () => {
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

test('what the agent says last before its output ends is taken, one by one, before the turn is interrupted', async () => {
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

test('a session that is closed while an update is taken takes none of those that were read with it, and the turn waits for the one', async () => {
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

test('a session that is closed leaves the agent\'s output', async () => {
  const { session, unheard } = await agentByHand();
  await session.close();
  await withTimeout('the output is left', unheard);
});

test('a permission is requested only when its tool call was taken', async () => {
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
