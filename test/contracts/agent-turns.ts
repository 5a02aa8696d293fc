import assert from 'node:assert/strict';
import { setImmediate as tick } from 'node:timers/promises';
import type { ToolCall } from '../../src/domain/agent.ts';
import type { AgentUpdate } from '../../src/ports/agent-protocol.ts';
import type { AgentCase } from './agent-harness.ts';
import { scripted } from './agent-script.ts';

const call: ToolCall = {
  toolCallId: 'call-1',
  title: 'Edit a.txt',
  toolKind: 'edit',
  status: 'pending',
  paths: ['/tmp/a.txt'],
  content: [],
};
const diff = { type: 'diff', path: '/tmp/a.txt', oldText: null, newText: 'one\ntwo\n' } as const;

function chunk(text: string, channel: 'answer' | 'thought' = 'answer', messageId: string | null = null): AgentUpdate {
  return { kind: 'message_chunk', channel, messageId, text };
}

export const turnCases: readonly AgentCase[] = [
  [
    "reports the agent's messages and thoughts in order before the turn ends",
    async ({ open }) => {
      const { session, client, prompt } = await open();
      assert.notEqual(session.id, '');
      assert.equal(session.loaded, false);
      const steps = [{ say: 'hm ', channel: 'thought' as const }, { say: 'hello ', messageId: 'm-1' }, { say: 'wörld 🙂\n', messageId: 'm-1' }];
      assert.deepEqual(await prompt(scripted(...steps)), { stopReason: 'end_turn', reason: null });
      assert.deepEqual(client.updates, [chunk('hm ', 'thought'), chunk('hello ', 'answer', 'm-1'), chunk('wörld 🙂\n', 'answer', 'm-1')]);
    },
  ],
  [
    'reports the whole tool call after each partial update',
    async ({ open }) => {
      const { client, prompt } = await open();
      const { toolCallId } = call;
      await prompt(
        scripted(
          { tool: call },
          { tool: { toolCallId, status: 'in_progress' } },
          { tool: { toolCallId, content: [{ type: 'text', text: 'writing' }, diff] } },
          { tool: { toolCallId, status: 'completed', title: 'Edited a.txt' } },
        ),
      );
      const begun = { ...call, status: 'in_progress' as const };
      const shown = { ...begun, content: [{ type: 'text' as const, text: 'writing' }, diff] };
      const stands = [call, begun, shown, { ...shown, status: 'completed' as const, title: 'Edited a.txt' }];
      assert.deepEqual(client.updates, stands.map((one) => ({ kind: 'tool_call', call: one })));
    },
  ],
  [
    'reports plans and usage',
    async ({ open }) => {
      const { client, prompt } = await open();
      const entries = [{ content: 'read', priority: 'high', status: 'completed' }, { content: 'write', priority: 'low', status: 'pending' }] as const;
      const usage = { usedTokens: 10, contextTokens: 1000, cost: { amount: 0.5, currency: 'USD' } };
      await prompt(scripted({ plan: entries }, { usage }, { usage: { ...usage, cost: null } }));
      assert.deepEqual(client.updates, [{ kind: 'plan', entries }, { kind: 'usage', ...usage }, { kind: 'usage', ...usage, cost: null }]);
    },
  ],
  [
    'runs several turns in one session',
    async ({ open }) => {
      const { client, prompt } = await open();
      for (const text of ['one', 'two']) await prompt({ content: [{ type: 'text', text }] });
      assert.deepEqual(client.updates, [chunk('heard: one'), chunk('heard: two')]);
    },
  ],
  ...(['max_tokens', 'max_turn_requests', 'refusal'] as const).map(
    (stop): AgentCase => [
      `reports the stop reason ${stop}`,
      async ({ open }) => {
        const { prompt } = await open();
        assert.deepEqual(await prompt(scripted({ say: 'so' }, { stop })), { stopReason: stop, reason: null });
      },
    ],
  ),
  [
    "ends a turn as failed with the agent's error message, and the session stays usable",
    async ({ open }) => {
      const { client, prompt } = await open();
      const turn = await prompt(scripted({ say: 'a' }, { fail: 'the model is overloaded' }));
      assert.equal(turn.stopReason, 'failed');
      assert.ok(turn.reason?.code === 'agent_error' && turn.reason.message.includes('the model is overloaded'), JSON.stringify(turn.reason));
      assert.equal((await prompt(scripted({ say: 'b' }))).stopReason, 'end_turn');
      assert.equal(client.said(), 'ab');
    },
  ],
  [
    'reports one update at a time, and loses none of 5,000',
    async ({ open }) => {
      let taking = 0;
      let most = 0;
      const { client, prompt } = await open({
        async update() {
          taking += 1;
          most = Math.max(most, taking);
          if (client.updates.length % 100 === 0) await tick();
          taking -= 1;
        },
      });
      const count = 5000;
      assert.equal((await prompt(scripted({ flood: count }))).stopReason, 'end_turn');
      assert.equal(taking, 0);
      assert.equal(most, 1);
      assert.deepEqual(client.updates, Array.from({ length: count }, (_, index) => chunk(String(index))));
    },
  ],
];
