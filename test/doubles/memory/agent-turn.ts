import type { MessageChannel, ToolCall } from '../../../src/domain/agent.ts';
import type { Message } from '../../../src/domain/conversation.ts';
import type { AgentClient, AgentPermission, AgentUpdate } from '../../../src/ports/agent-protocol.ts';
import type { MemoryLink } from './agent-link.ts';
import type { MemoryAgentScript } from './agent-session.ts';

/** The changed fields of a tool call. */
export type MemoryToolCall = Pick<ToolCall, 'toolCallId'> & Partial<ToolCall>;

/** A turn of an agent in memory. Its updates are delivered one at a time. All methods reject when the session has ended. */
export interface MemoryTurn {
  readonly sessionId: string;
  readonly message: Message;
  /** Fires when the turn is cancelled, and when it is over. */
  readonly signal: AbortSignal;
  say(text: string, options?: { readonly channel?: MessageChannel; readonly messageId?: string | null }): Promise<void>;
  tool(change: MemoryToolCall): Promise<void>;
  update(update: AgentUpdate): Promise<void>;
  /** Resolves to the chosen option. Null if the request is withdrawn. */
  ask(request: AgentPermission): Promise<string | null>;
  /** Ends the agent, like a crash. */
  crash(): Promise<never>;
  /** What the agent does by itself after the turn. */
  after(script: MemoryAgentScript): void;
}

export interface MemoryTurnDeps extends Pick<MemoryTurn, 'after'> {
  /** The tool calls of the session. */
  readonly calls: Map<string, ToolCall>;
  readonly sessionId: string;
  readonly message: Message;
  readonly client: Pick<AgentClient, 'update' | 'permission'>;
  readonly signal: AbortSignal;
  readonly link: MemoryLink;
}

/** Returns the turn, and a function that resolves when all its updates are delivered. */
export function createMemoryTurn({ calls, sessionId, message, client, signal, link, after }: MemoryTurnDeps): { readonly turn: MemoryTurn; readonly settled: () => Promise<void> } {
  let last: Promise<void> = Promise.resolve();

  async function give(update: AgentUpdate, before: Promise<void>): Promise<void> {
    await before;
    link.check();
    await client.update(update).catch(() => link.end({ code: 'agent_output_not_stored' }));
    link.check();
  }

  const update = (next: AgentUpdate): Promise<void> => {
    const given = give(next, last);
    last = given.catch(() => {});
    return given;
  };

  const tool = (change: MemoryToolCall): Promise<void> => {
    const { toolCallId } = change;
    const begun: ToolCall = { toolCallId, title: toolCallId, toolKind: 'other', status: 'pending', paths: [], content: [] };
    const call = { ...begun, ...calls.get(toolCallId), ...change };
    calls.set(toolCallId, call);
    return update({ kind: 'tool_call', call });
  };

  async function ask(request: AgentPermission): Promise<string | null> {
    const { toolCallId, title } = request;
    if (!calls.has(toolCallId)) await tool({ toolCallId, title });
    await last;
    link.check();
    if (signal.aborted) return null;
    const { promise: withdrawn, resolve } = Promise.withResolvers<null>();
    signal.addEventListener('abort', () => resolve(null), { once: true });
    const chosen = await Promise.race([client.permission(request, signal).catch(() => null), withdrawn]);
    link.check();
    return chosen;
  }

  async function crash(): Promise<never> {
    await last;
    link.end({ code: 'agent_exited' });
    return await link.during(() => new Promise<never>(() => {}));
  }

  const turn: MemoryTurn = {
    sessionId,
    message,
    signal,
    update,
    tool,
    ask,
    crash,
    after,
    say: (text, { channel = 'answer', messageId = null } = {}) => update({ kind: 'message_chunk', channel, messageId, text }),
  };
  return { turn, settled: () => last };
}
