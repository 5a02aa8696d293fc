import assert from 'node:assert/strict';
import type { ReasonCode } from '../../src/domain/reason.ts';
import { neverAborts } from '../../src/ports/abort-signals.ts';
import { AgentRefusal } from '../../src/ports/agent-protocol.ts';
import { recordingClient, type AgentBehaviour, type AgentCase } from './agent-harness.ts';
import { withTimeout } from './contract.ts';
import { scripted } from './agent-script.ts';

function refuses(behaviour: AgentBehaviour, code: ReasonCode): AgentCase {
  return [
    `fails with a reason and closes the streams if the agent's behaviour is ${behaviour}`,
    async ({ protocol, start }) => {
      const { streams, gone } = await start(behaviour);
      const opening = protocol.open({ streams, workingDir: '/tmp', authMethod: null, sessionId: null, client: recordingClient() }, neverAborts);
      await assert.rejects(withTimeout('the refusal', opening), (error) => {
        assert.ok(error instanceof AgentRefusal);
        assert.equal(error.reason.code, code);
        return true;
      });
      await withTimeout('the agent ends', gone);
    },
  ];
}

function goesOn(behaviour: 'speaks' | 'forgets'): AgentCase {
  return [
    `opens an earlier session after a restart of the agent, or a new one if it is gone: ${behaviour}`,
    async ({ open, traits }) => {
      const first = await open();
      await first.prompt(scripted({ say: 'old' }, { tool: { toolCallId: 'call-1', title: 'Old' } }));
      await first.session.close();
      await withTimeout('the agent ends', first.agent.gone);

      const again = await open({}, first.session.id, behaviour);
      const found = behaviour === 'speaks' && traits.sessions === 'found_again';
      assert.equal(again.session.loaded, found);
      assert.equal(again.session.id === first.session.id, found);
      await again.prompt(scripted({ say: 'new' }));
      assert.deepEqual(again.client.updates, [{ kind: 'message_chunk', channel: 'answer', messageId: null, text: 'new' }]);
    },
  ];
}

export const sessionCases: readonly AgentCase[] = [
  refuses('refuses', 'agent_session_refused'),
  refuses('ends', 'agent_exited'),
  refuses('other_version', 'agent_version_unsupported'),
  [
    "rejects with the signal's reason if the agent never responds, and closes the streams",
    async ({ protocol, start }) => {
      const reason = new Error('too late');
      for (const signalOf of [(why: Error) => AbortSignal.abort(why), fires]) {
        const { streams, gone } = await start('silent');
        const request = { streams, workingDir: '/tmp', authMethod: null, sessionId: null, client: recordingClient() };
        const opening = protocol.open(request, signalOf(reason));
        await assert.rejects(withTimeout('the rejection', opening), (error) => error === reason);
        await withTimeout('the agent ends', gone);
      }
    },
  ],
  goesOn('speaks'),
  goesOn('forgets'),
  [
    'creates a new session if the requested one does not exist',
    async ({ open }) => {
      const { session, prompt } = await open({}, 'no-such-session');
      assert.equal(session.loaded, false);
      assert.notEqual(session.id, 'no-such-session');
      assert.equal((await prompt(scripted({ say: 'a' }))).stopReason, 'end_turn');
    },
  ],
  [
    'does not mix up the sessions of two agents',
    async ({ open }) => {
      const [one, other] = [await open(), await open()];
      await Promise.all([one.prompt(scripted({ say: 'one' })), other.prompt(scripted({ say: 'other' }))]);
      assert.deepEqual([one.client.said(), other.client.said()], ['one', 'other']);
      await one.session.close();
      await other.prompt(scripted({ say: '!' }));
      assert.equal(other.client.said(), 'other!');
    },
  ],
];

/** Returns a signal that fires a short time later, when the work that begins now is running. */
function fires(reason: Error): AbortSignal {
  const controller = new AbortController();
  setImmediate(() => controller.abort(reason));
  return controller.signal;
}
