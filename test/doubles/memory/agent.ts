import { randomUUID } from 'node:crypto';
import { AgentRefusal, type AgentProtocol, type OpenAgentSession } from '../../../src/ports/agent-protocol.ts';
import { createMemoryLink, LinkEnded } from './agent-link.ts';
import { createMemorySession, type MemoryAgentScript } from './agent-session.ts';

export interface MemoryAgentOptions {
  /** What the agent does in a turn; without it, it says `heard: <the message>`. */
  readonly script?: MemoryAgentScript;
  /** Called before a session comes about; what it throws (an `AgentRefusal`) is what `open` rejects with. */
  readonly beforeOpen?: (request: OpenAgentSession) => Promise<void> | void;
  /** Does the agent find its sessions again? It does unless this is false. */
  readonly remembers?: boolean;
  /** The protocol in whose place it stands; `acp` unless it is said. */
  readonly name?: string;
}

/** What it does is in the memory of the process that runs it. */
export function refuseToResume(): never {
  throw new AgentRefusal({ code: 'agent_session_closed' });
}

/** An agent for tests: a function instead of a process. Of the streams that it is given it only notices the end. */
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
