import { once } from 'node:events';
import type { ToolCall, TurnStopReason } from '../../../src/domain/agent.ts';
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

export function createMemorySession({ id, loaded, script, client: given, link }: MemorySessionDeps): AgentSession {
  let isSaying = false;
  const client: Pick<AgentClient, 'update' | 'permission'> = {
    permission: (request, signal) => given.permission(request, signal),
    async update(update) {
      isSaying = update.kind === 'message_chunk';
      await given.update(update);
    },
  };
  let under: AbortController | null = null;
  const calls = new Map<string, ToolCall>();
  /** What the agent does by itself after the turn. */
  let later: MemoryAgentScript | null = null;
  // A permission request of the agent is withdrawn when its session ends.
  void link.closed.then(() => under?.abort());

  async function run(
    message: Message, { signal }: AbortController, work: (turn: MemoryTurn, begun: Promise<unknown>) => ReturnType<MemoryAgentScript>,
  ): Promise<AgentTurn> {
    let after: MemoryAgentScript | null = null;
    const { turn, settled } = createMemoryTurn({ calls, sessionId: id, message, client, signal, link, after: (work) => void (after = work) });
    const begun = later;
    later = null;
    try {
      const stopReason = (await link.during(() => work(turn, Promise.resolve(begun?.(turn))))) ?? 'end_turn';
      await settled();
      link.check();
      return { stopReason, reason: null };
    } catch (error) {
      const why = link.why();
      await settled();
      if (why !== null) return { stopReason: 'interrupted', reason: why };
      const message = error instanceof Error ? error.message : '';
      return { stopReason: signal.aborted ? 'cancelled' : 'failed', reason: { code: 'agent_error', message } };
    } finally {
      later = after;
    }
  }

  async function endCalls(): Promise<void> {
    const open = [...calls.values()].filter(({ status }) => status === 'pending' || status === 'in_progress');
    if (open.length > 0 && isSaying) await client.update({ kind: 'message_end' }).catch(() => {});
    for (const call of open) {
      const ended = { ...call, status: 'failed' } as const;
      calls.set(call.toolCallId, ended);
      await client.update({ kind: 'tool_call', call: ended }).catch(() => {});
    }
  }

  /** Runs one turn at a time. */
  async function inTurn(work: (under: AbortController) => Promise<AgentTurn>): Promise<AgentTurn> {
    if (under !== null) return { stopReason: 'failed', reason: { code: 'agent_busy' } };
    under = new AbortController();
    try {
      const turn = await work(under);
      await endCalls();
      return turn;
    } finally {
      under.abort();
      under = null;
      if (later !== null) given.onUnpromptedWork();
    }
  }

  return {
    id,
    loaded,
    closed: link.closed,
    nextRequest: async () => 0,
    async prompt(message) {
      return await inTurn((under) => run(message, under, async (turn, begun) => (await begun, await script(turn))));
    },
    async follow(over) {
      const isOver: Promise<unknown> = over.aborted ? Promise.resolve() : once(over, 'abort');
      const untilOver = async ({ signal }: MemoryTurn, begun: Promise<unknown>) => {
        await Promise.race([begun.then(() => isOver), isOver]);
        return signal.aborted ? 'cancelled' : 'end_turn';
      };
      return await inTurn((under) => run({ content: [] }, under, untilOver));
    },
    async cancel() {
      under?.abort();
    },
    async close() {
      link.end({ code: 'agent_session_closed' });
    },
  };
}
