import { expect, test } from 'vitest';
import { Failure } from '../../../src/domain/failure.ts';
import type { MemoryAgentScript } from '../../doubles/memory/agent-session.ts';
import { createReady } from './support.ts';
import { calm, passSeconds, said, told, until } from './world.ts';

const options = [{ optionId: 'yes', name: 'Yes', kind: 'allow_once' }] as const;

/** A conversation whose agent continues by itself after its first turn. */
async function continuing(work: MemoryAgentScript, agent: { readonly permissions?: 'allow' | 'ask' } = {}) {
  let hasContinued = false;
  const w = await createReady({
    agent,
    script: async (turn) => {
      await turn.say(`heard: ${turn.message.content[0]?.text ?? ''}`);
      if (!hasContinued) turn.after(work);
      hasContinued = true;
    },
  });
  await w.conversations.send('me', w.id, said('go'));
  const begun = async () => await until(async () => told(await w.log(), 'turn_started').length === 2);
  const messages = async () => told(await w.log(), 'message').map(({ role, text }) => `${role}: ${text}`);
  return { ...w, begun, messages };
}

test('work that the agent begins by itself is a turn that ends when it is quiet', async () => {
  const w = await continuing(async (turn) => {
    await turn.tool({ toolCallId: 'tests', title: 'Run the tests', status: 'in_progress' });
    await turn.say('All tests are green.');
    await turn.tool({ toolCallId: 'tests', status: 'completed' });
  });
  await w.begun();
  expect(await w.view()).toMatchObject({ conversation: { executionStatus: 'running', queue: [] } });
  await calm();
  await passSeconds(w.clock, 40);
  await w.rested();
  const log = await w.log();
  expect(await w.messages()).toEqual(['user: go', 'agent: heard: go', 'agent: All tests are green.']);
  expect(told(log, 'turn_ended').map(({ stopReason }) => stopReason)).toEqual(['end_turn', 'end_turn']);
  expect(told(log, 'turn_ended').at(-1)?.messageId).toBe(told(log, 'turn_started').at(-1)?.messageId);
  expect(await w.view()).toMatchObject({ conversation: { executionStatus: 'idle', statusReason: null } });
  expect(w.host.executed).toHaveLength(1);
});

test('a tool call without a result keeps the turn running for 15 minutes', async () => {
  const w = await continuing((turn) => turn.tool({ toolCallId: 'build', status: 'in_progress' }));
  await w.begun();
  await calm();
  await passSeconds(w.clock, 60);
  expect(await w.record()).toMatchObject({ turn: { unprompted: true }, executionStatus: 'running' });
  await passSeconds(w.clock, 900);
  expect(await w.record()).toMatchObject({ turn: null, executionStatus: 'idle' });
});

test.each(['allow', 'ask'] as const)('its requests for permission are answered with the policy %s', async (permissions) => {
  const answers: (string | null)[] = [];
  const w = await continuing(async (turn) => {
    answers.push(await turn.ask({ toolCallId: 'rm', title: 'rm', options }));
    await turn.tool({ toolCallId: 'rm', status: 'completed' });
  }, { permissions });
  await w.begun();
  if (permissions === 'ask') {
    const { permission } = await until(w.record, (record) => record.permission !== null);
    await passSeconds(w.clock, 60);
    await w.conversations.answerPermission('me', w.id, permission?.permissionId ?? '', 'yes');
  }
  await until(() => answers.length === 1);
  await calm();
  await passSeconds(w.clock, 40);
  await w.rested();
  expect(answers).toEqual(['yes']);
});

test('it can be cancelled', async () => {
  const w = await continuing(async (turn) => {
    await turn.tool({ toolCallId: 'build', status: 'in_progress' });
    await new Promise((resolve) => turn.signal.addEventListener('abort', resolve, { once: true }));
  });
  await w.begun();
  await until(async () => told(await w.log(), 'tool_call').length === 1);
  await w.conversations.cancel('me', w.id);
  await calm();
  await passSeconds(w.clock, 8);
  await w.rested();
  const log = await w.log();
  expect(log.findLast(({ kind }) => kind === 'turn_ended')).toMatchObject({ actor: 'user', data: { stopReason: 'cancelled' } });
  expect(told(log, 'tool_call').map(({ status }) => status)).toEqual(['in_progress', 'failed']);
  expect(w.host.running).toHaveLength(1);
});

test('a message ends it when the agent is quiet for a moment', async () => {
  const w = await continuing(async (turn) => {
    await turn.say('working');
    await new Promise((resolve) => turn.signal.addEventListener('abort', resolve, { once: true }));
  });
  await w.begun();
  await until(async () => told(await w.log(), 'message_chunk').length === 2);
  await w.conversations.send('me', w.id, said('stop'));
  await calm();
  await passSeconds(w.clock, 4);
  await w.rested();
  expect(await w.messages()).toEqual(['user: go', 'agent: heard: go', 'user: stop', 'agent: working', 'agent: heard: stop']);
  expect(told(await w.log(), 'turn_ended').map(({ stopReason }) => stopReason)).toEqual(['end_turn', 'end_turn', 'end_turn']);
});

test('a message does not cut off an agent that is speaking', async () => {
  const w = await continuing(async (turn) => {
    for (let n = 0; n < 10; n += 1) {
      await turn.say(`${n} `);
      await new Promise((resolve) => w.clock.after(1000, () => resolve(null)));
    }
  });
  await w.begun();
  await w.conversations.send('me', w.id, said('stop'));
  await calm();
  await passSeconds(w.clock, 20);
  await w.rested();
  expect(await w.messages()).toEqual(['user: go', 'agent: heard: go', 'user: stop', 'agent: 0 1 2 3 4 5 6 7 8 9 ', 'agent: heard: stop']);
});

test('if the store refuses a read when it begins, the next sweep finds it', async () => {
  let hasTurn = false;
  let refuses = false;
  const w = await createReady({
    store: (made) => ({
      ...made,
      conversations: {
        ...made.conversations,
        async replace(...args) {
          const outcome = await made.conversations.replace(...args);
          refuses ||= hasTurn && args[0].turn === null;
          hasTurn = args[0].turn !== null;
          return outcome;
        },
        async find(id) {
          if (!refuses) return await made.conversations.find(id);
          throw new Failure('store_unavailable', { reason: { code: 'locked' }, retryAfterSeconds: 1 });
        },
      },
    }),
    script: async (turn) => turn.after((later) => later.say('found')),
  });
  await w.conversations.send('me', w.id, said('go'));
  await until(() => refuses);
  await calm();
  expect(w.logged.some((line) => line.includes('a conversation could not be reconciled'))).toBe(true);
  [hasTurn, refuses] = [false, false];
  await w.sweeper.sweep();
  await until(async () => told(await w.log(), 'message_chunk').length === 1);
});

test('a message waits while a tool call has no result', async () => {
  const w = await continuing((turn) => turn.tool({ toolCallId: 'build', status: 'in_progress' }));
  await w.begun();
  await w.conversations.send('me', w.id, said('stop'));
  await calm();
  await passSeconds(w.clock, 60);
  expect(await w.record()).toMatchObject({ turn: { unprompted: true }, queue: [{ message: said('stop') }] });
});

test('while its owner keeps the sandbox frozen, it is not over', async () => {
  const w = await continuing((turn) => turn.say('working'));
  await w.begun();
  await calm();
  await w.sandboxes.pause('me', w.sandboxId, 'freeze');
  await passSeconds(w.clock, 120);
  expect(await w.view()).toMatchObject({ conversation: { turn: { unprompted: true }, executionStatus: 'frozen' } });
});

test('if the agent exits during it, it is interrupted', async () => {
  const w = await continuing(async (turn) => {
    await turn.say('working');
    w.host.executed.at(-1)?.end(139);
  });
  await w.begun();
  await w.rested();
  expect(told(await w.log(), 'turn_ended').map(({ stopReason }) => stopReason)).toEqual(['end_turn', 'interrupted']);
  expect(await w.view()).toMatchObject({ conversation: { executionStatus: 'error' } });
});
