import { setImmediate as tick } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { soon } from '../../contracts/agent-harness.ts';
import { agentByHand } from './by-hand.ts';

const ask = { sessionId: 's', toolCall: { toolCallId: 'call-1', title: 'Run it' }, options: [{ optionId: 'yes', name: 'Yes', kind: 'allow_once' }] };

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
  expect(await first.ends).toEqual({ stopReason: 'end_turn', detail: null });
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
  // Were it read on, it would be within these turns of the event loop.
  for (let index = 0; index < 100; index += 1) await tick();
  expect(reads() - before).toBe(1);
  expect(client.said()).toBe('0 ');
  take();
  await ends;
  expect(client.updates.length).toBe(100);
});

test('what the agent says while it waits for leave is told at once', async () => {
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

test('the agent may withdraw what it asked leave for, and may end the turn without waiting for an answer', async () => {
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
  await soon('the first answer', heard());
  for (let index = 0; index < 300; index += 1) await tick();
  expect(reads() - before).toBeLessThan(500);
  await session.close();
  expect((await ends).stopReason).toBe('interrupted');
});
