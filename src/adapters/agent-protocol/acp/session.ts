import { methods } from '@agentclientprotocol/sdk';
import type { TurnStopReason } from '../../../domain/agent.ts';
import type { AgentSession, AgentTurn } from '../../../ports/agent-protocol.ts';
import { promptAnswer } from './answers.ts';
import type { Connection } from './connection.ts';
import { wordsOf } from './failure.ts';
import type { Listener } from './listener.ts';

const stopReasons: ReadonlySet<string> = new Set<TurnStopReason>(['end_turn', 'max_tokens', 'max_turn_requests', 'refusal', 'cancelled']);

export function createSession({ agent, why, ended, end }: Connection, listener: Listener, id: string, loaded: boolean): AgentSession {
  let busy = false;
  let cancelled = false;

  return {
    id,
    loaded,
    closed: ended,
    async prompt({ content }) {
      if (busy) return { stopReason: 'failed', detail: 'another turn is under way' };
      busy = true;
      cancelled = false;
      listener.begin(id);
      try {
        const prompt = content.map(({ text }) => ({ type: 'text' as const, text }));
        return turnOf(promptAnswer.parse(await agent.request(methods.agent.session.prompt, { sessionId: id, prompt })).stopReason);
      } catch (error) {
        // Many agents answer a cancelled turn with the error that the cancelling made.
        if (why() === null) return { stopReason: cancelled ? 'cancelled' : 'failed', detail: wordsOf(error) };
        await listener.settled();
        return { stopReason: 'interrupted', detail: why() };
      } finally {
        listener.end();
        busy = false;
      }
    },
    async cancel() {
      if (!listener.cancel()) return;
      cancelled = true;
      // An agent that reads nothing is not waited for.
      agent.notify(methods.agent.session.cancel, { sessionId: id }).catch(() => {});
    },
    async close() {
      end('the session was closed');
    },
  };
}

function turnOf(reason: string): AgentTurn {
  if (isStopReason(reason)) return { stopReason: reason, detail: null };
  return { stopReason: 'failed', detail: `the agent ended the turn for a reason that is not known here: ${reason}` };
}

function isStopReason(reason: string): reason is TurnStopReason {
  return stopReasons.has(reason);
}
