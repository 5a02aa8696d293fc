import assert from 'node:assert/strict';
import type { AgentPermission } from '../../src/ports/agent-protocol.ts';
import { soon, type AgentCase } from './agent-harness.ts';
import { scripted } from './agent-script.ts';

const ask: AgentPermission = {
  toolCallId: 'call-1',
  title: 'Run make',
  options: [
    { optionId: 'yes', name: 'Yes', kind: 'allow_once' },
    { optionId: 'always', name: 'Always', kind: 'allow_always' },
    { optionId: 'no', name: 'No', kind: 'reject_once' },
  ],
};

const tool = { toolCallId: 'call-1', title: 'Run make', toolKind: 'execute' };

/** Returns a client that answers null when its signal fires, and a promise that resolves at the first request. */
function undecided(): { readonly permission: (request: AgentPermission, signal: AbortSignal) => Promise<null>; readonly asked: Promise<AbortSignal> } {
  const { promise, resolve } = Promise.withResolvers<AbortSignal>();
  return {
    asked: promise,
    permission: (_, signal) =>
      new Promise((withdraw) => {
        signal.addEventListener('abort', () => withdraw(null), { once: true });
        resolve(signal);
      }),
  };
}

export const permissionCases: readonly AgentCase[] = [
  ...['yes', 'no'].map(
    (optionId): AgentCase => [
      `asks leave, and hands the answer over: ${optionId}`,
      async ({ open }) => {
        const { client, prompt } = await open({ permission: async () => optionId });
        assert.equal((await prompt(scripted({ tool }, { ask }, { say: '.' }))).stopReason, 'end_turn');
        assert.deepEqual(client.requests, [ask]);
        assert.equal(client.said(), `chosen: ${optionId}.`);
      },
    ],
  ),
  [
    'has told everything that was said before it asks leave',
    async ({ open }) => {
      const seen: string[] = [];
      const { client, prompt } = await open({
        async permission() {
          seen.push(client.said());
          return 'yes';
        },
      });
      await prompt(scripted({ tool }, { say: 'before ' }, { ask }, { say: ' between ' }, { ask }));
      assert.deepEqual(seen, ['before ', 'before chosen: yes between ']);
    },
  ],
  [
    'shows the tool call that the agent asks leave for, even if it was not spoken of before',
    async ({ open }) => {
      const { client, prompt } = await open({ permission: async () => 'yes' });
      await prompt(scripted({ ask }));
      const [first] = client.updates;
      assert.equal(first?.kind === 'tool_call' ? first.call.title : null, 'Run make');
    },
  ],
  [
    'withdraws the request when the turn is cancelled',
    async ({ open }) => {
      const { permission, asked } = undecided();
      const { session, client, prompt } = await open({ permission });
      const turn = prompt(scripted({ tool }, { ask }, { say: 'never' }));
      const signal = await soon('leave is asked', asked);
      assert.equal(signal.aborted, false);
      await session.cancel();
      assert.equal(signal.aborted, true);
      assert.equal((await turn).stopReason, 'cancelled');
      assert.equal(client.said(), 'chosen: nothing');
    },
  ],
  [
    'withdraws the request when the session is closed, and when the agent ends',
    async ({ open }) => {
      for (const end of ['close', 'kill'] as const) {
        const { permission, asked } = undecided();
        const { session, agent, prompt } = await open({ permission });
        const turn = prompt(scripted({ tool }, { ask }));
        const signal = await soon('leave is asked', asked);
        if (end === 'close') await session.close();
        else agent.kill();
        assert.equal((await turn).stopReason, 'interrupted', end);
        assert.equal(signal.aborted, true, end);
      }
    },
  ],
];
