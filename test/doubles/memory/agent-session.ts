import type { TurnStopReason } from '../../../src/domain/agent.ts';
import type { Message } from '../../../src/domain/conversation.ts';
import type { AgentClient, AgentSession, AgentTurn } from '../../../src/ports/agent-protocol.ts';
import type { MemoryLink } from './agent-link.ts';
import { createMemoryTurn, type MemoryTurn } from './agent-turn.ts';

/** What an agent does in a turn. Returns the stop reason (default: `end_turn`). If it throws, the turn fails with the error's message. */
export type MemoryAgentScript = (turn: MemoryTurn) => Promise<TurnStopReason | void>;

export interface MemorySessionDeps {
  readonly id: string;
  readonly loaded: boolean;
  readonly script: MemoryAgentScript;
  readonly client: AgentClient;
  readonly link: MemoryLink;
}

export function createMemorySession({ id, loaded, script, client, link }: MemorySessionDeps): AgentSession {
  let under: AbortController | null = null;
  // A permission request of the agent is withdrawn when its session ends.
  void link.closed.then(() => under?.abort());

  async function run(message: Message, { signal }: AbortController): Promise<AgentTurn> {
    const { turn, settled } = createMemoryTurn({ sessionId: id, message, client, signal, link });
    try {
      const stopReason = (await link.during(() => script(turn))) ?? 'end_turn';
      await settled();
      link.check();
      return { stopReason, reason: null };
    } catch (error) {
      const why = link.why();
      await settled();
      if (why !== null) return { stopReason: 'interrupted', reason: why };
      const message = error instanceof Error ? error.message : '';
      return { stopReason: signal.aborted ? 'cancelled' : 'failed', reason: { code: 'agent_error', message } };
    }
  }

  return {
    id,
    loaded,
    closed: link.closed,
    nextRequest: async () => 0,
    async prompt(message) {
      if (under !== null) return { stopReason: 'failed', reason: { code: 'agent_busy' } };
      under = new AbortController();
      try {
        return await run(message, under);
      } finally {
        under.abort();
        under = null;
      }
    },
    async cancel() {
      under?.abort();
    },
    async close() {
      link.end({ code: 'agent_session_closed' });
    },
  };
}
