import assert from 'node:assert/strict';
import type { AgentPermission } from '../../src/ports/agent-protocol.ts';
import { type AgentCase } from './agent-harness.ts';
import { withTimeout } from './contract.ts';
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
function undecided(): { readonly permission: (request: AgentPermission, signal: AbortSignal) => Promise<null>; readonly requested: Promise<AbortSignal> } {
  const { promise, resolve } = Promise.withResolvers<AbortSignal>();
  return {
    requested: promise,
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
      `requests a permission and returns the answer to the agent: ${optionId}`,
      async ({ open }) => {
        const { client, prompt } = await open({ permission: async () => optionId });
        assert.equal((await prompt(scripted({ tool }, { ask }, { say: '.' }))).stopReason, 'end_turn');
        assert.deepEqual(client.requests, [ask]);
        assert.equal(client.said(), `chosen: ${optionId}.`);
      },
    ],
  ),
  [
    'reports all earlier updates before a permission request',
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
    'reports the tool call of a permission request, even if it was not reported before',
    async ({ open }) => {
      const { client, prompt } = await open({ permission: async () => 'yes' });
      await prompt(scripted({ ask }));
      const [first] = client.updates;
      assert.equal(first?.kind === 'tool_call' ? first.call.title : null, 'Run make');
    },
  ],
  [
    'withdraws the permission request if the turn is cancelled',
    async ({ open }) => {
      const { permission, requested } = undecided();
      const { session, client, prompt } = await open({ permission });
      const turn = prompt(scripted({ tool }, { ask }, { say: 'never' }));
      const signal = await withTimeout('the permission request', requested);
      assert.equal(signal.aborted, false);
      await session.cancel();
      assert.equal(signal.aborted, true);
      assert.equal((await turn).stopReason, 'cancelled');
      assert.equal(client.said(), 'chosen: nothing');
    },
  ],
  [
    'withdraws the permission request if the session is closed or the agent exits',
    async ({ open }) => {
      for (const end of ['close', 'kill'] as const) {
        const { permission, requested } = undecided();
        const { session, agent, prompt } = await open({ permission });
        const turn = prompt(scripted({ tool }, { ask }));
        const signal = await withTimeout('the permission request', requested);
        if (end === 'close') await session.close();
        else agent.kill();
        assert.equal((await turn).stopReason, 'interrupted', end);
        assert.equal(signal.aborted, true, end);
      }
    },
  ],
];
