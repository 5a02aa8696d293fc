import assert from 'node:assert/strict';
import type { ToolCall } from '../../src/domain/agent.ts';
import { neverAborts } from '../../src/ports/abort-signals.ts';
import type { AgentUpdate } from '../../src/ports/agent-protocol.ts';
import type { AgentCase, OpenedAgent } from './agent-harness.ts';
import { withTimeout } from './contract.ts';
import { type AgentStep, scripted } from './agent-script.ts';

function said(text: string): AgentUpdate {
  return { kind: 'message_chunk', channel: 'answer', messageId: null, text };
}

const begun: ToolCall = { toolCallId: 'call-1', title: 'Run the tests', toolKind: 'execute', status: 'in_progress', paths: [], content: [] };
const allow = { optionId: 'yes', name: 'Yes', kind: 'allow_once' } as const;
const ask = { toolCallId: 'call-1', title: 'Run the tests', options: [allow] };

/** Ends a turn after which the agent continues with the steps by itself. */
async function endsTurn({ prompt, client }: OpenedAgent, ...after: readonly AgentStep[]): Promise<void> {
  await prompt(scripted({ say: 'first' }, { after }));
  await withTimeout('the agent works', client.unprompted);
  assert.deepEqual(client.updates, [said('first')]);
}

async function until(client: OpenedAgent['client'], count: number): Promise<void> {
  while (client.updates.length < count) await client.next();
}

/** Work that an agent does without a message, for example after a background task has ended. */
export const unpromptedCases: readonly AgentCase[] = [
  [
    'holds back what the agent does after a turn, and reports it in a turn without a message',
    async ({ open }) => {
      const opened = await open();
      const { session, client } = opened;
      await endsTurn(opened, { say: 'second' }, { tool: begun }, { tool: { toolCallId: 'call-1', status: 'completed' } });
      const over = new AbortController();
      const turn = session.follow(over.signal);
      await until(client, 4);
      over.abort();
      assert.deepEqual(await turn, { stopReason: 'end_turn', reason: null });
      const [, ...rest] = client.updates;
      assert.deepEqual(rest, [said('second'), { kind: 'tool_call', call: begun }, { kind: 'tool_call', call: { ...begun, status: 'completed' } }]);
    },
  ],
  [
    'reports it in the turn of the next message, if that comes first',
    async ({ open }) => {
      const opened = await open();
      await endsTurn(opened, { say: ' second' });
      await opened.prompt(scripted({ say: ' third' }));
      assert.deepEqual(opened.client.said().split(' ').toSorted(), ['first', 'second', 'third']);
    },
  ],
  [
    'asks the client for permission in a turn without a message',
    async ({ open }) => {
      const opened = await open({ permission: async () => 'yes' });
      const { session, client } = opened;
      await endsTurn(opened, { ask });
      const over = new AbortController();
      const turn = session.follow(over.signal);
      while (!client.said().includes('chosen: yes')) await client.next();
      over.abort();
      assert.equal((await turn).stopReason, 'end_turn');
      assert.deepEqual(client.requests, [ask]);
    },
  ],
  [
    'ends a turn without a message as cancelled, with its calls without a result as failed',
    async ({ open }) => {
      const opened = await open();
      const { session, client } = opened;
      await endsTurn(opened, { tool: begun });
      const over = new AbortController();
      const cancelled = session.follow(over.signal);
      await until(client, 2);
      await session.cancel();
      over.abort();
      assert.deepEqual(await cancelled, { stopReason: 'cancelled', reason: null });
      const [, ...rest] = client.updates;
      assert.deepEqual(rest, ['in_progress', 'failed'].map((status) => ({ kind: 'tool_call', call: { ...begun, status } })));
    },
  ],
  [
    'ends a turn without a message as interrupted if the agent exits',
    async ({ open }) => {
      const opened = await open();
      await endsTurn(opened, { say: 'second' }, { crash: true });
      const { stopReason, reason } = await opened.session.follow(neverAborts);
      assert.deepEqual([stopReason, reason?.code], ['interrupted', 'agent_exited']);
      assert.equal(opened.client.said(), 'firstsecond');
    },
  ],
  [
    'reports the calls without a result as failed at the end of a turn',
    async ({ open }) => {
      const { client, prompt } = await open();
      await prompt(scripted({ tool: begun }));
      assert.deepEqual(client.updates, ['in_progress', 'failed'].map((status) => ({ kind: 'tool_call', call: { ...begun, status } })));
    },
  ],
];
