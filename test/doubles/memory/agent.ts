import { randomUUID } from 'node:crypto';
import { AgentRefusal, type AgentProtocol, type OpenAgentSession } from '../../../src/ports/agent-protocol.ts';
import { createMemoryLink, LinkEnded } from './agent-link.ts';
import { createMemorySession, type MemoryAgentScript } from './agent-session.ts';

export interface MemoryAgentOptions {
  /** What the agent does in a turn. Default: it says `heard: <the message>`. */
  readonly script?: MemoryAgentScript;
  /** Called before a session is opened. If it throws (an `AgentRefusal`), `open` rejects with that error. */
  readonly beforeOpen?: (request: OpenAgentSession) => Promise<void> | void;
  /** Does the agent find its earlier sessions? Default: true. */
  readonly remembers?: boolean;
  /** The name of the protocol. Default: `acp`. */
  readonly name?: string;
}

/** Throws, because an agent in memory can't continue a turn in another process. */
export function refuseToResume(): never {
  throw new AgentRefusal({ code: 'agent_session_closed' });
}

/** An agent for tests: a function instead of a process. It only notices the end of its streams. */
export function createMemoryAgentProtocol({ script = echo, beforeOpen = () => {}, remembers = true, name = 'acp' }: MemoryAgentOptions = {}): AgentProtocol {
  const sessions = new Set<string>();

  return {
    name,
    resume: refuseToResume,
    async open(request, signal) {
      const link = createMemoryLink(request.streams);
      const abort = (): void => link.end({ code: 'agent_session_closed' });
      signal.addEventListener('abort', abort, { once: true });
      try {
        signal.throwIfAborted();
        await link.during(async () => beforeOpen(request));
      } catch (error) {
        link.end({ code: 'agent_session_closed' });
        signal.throwIfAborted();
        throw error instanceof LinkEnded ? new AgentRefusal(error.reason) : error;
      } finally {
        signal.removeEventListener('abort', abort);
      }
      const { sessionId, client } = request;
      const loaded = remembers && sessionId !== null && sessions.has(sessionId);
      const id = loaded ? sessionId : `session-${randomUUID()}`;
      sessions.add(id);
      return createMemorySession({ id, loaded, script, client, link });
    },
  };
}

const echo: MemoryAgentScript = async (turn) => {
  await turn.say(`heard: ${turn.message.content.map(({ text }) => text).join('')}`);
};
