import { AgentRefusal, type AgentProtocol } from '../../../ports/agent-protocol.ts';
import { connect } from './connection.ts';
import { wordsOf } from './failure.ts';
import { shakeHands } from './handshake.ts';
import { Listener } from './listener.ts';
import type { AcpOptions } from './options.ts';
import { createSession } from './session.ts';

/** The Agent Client Protocol, version 1: JSON-RPC, a message a line. */
export function createAcpProtocol({ maxLineBytes = 16 * 1024 * 1024, maxRubbishLines = 1000 }: AcpOptions = {}): AgentProtocol {
  return {
    name: 'acp',
    async open(request, signal) {
      const listener = new Listener(request.client);
      const connection = connect(request.streams, listener, { lineBytes: maxLineBytes, rubbishLines: maxRubbishLines });
      const abort = (): void => connection.end('the session was not wanted any more');
      signal.addEventListener('abort', abort, { once: true });
      try {
        signal.throwIfAborted();
        const { id, loaded } = await shakeHands(connection.agent, request);
        return createSession(connection, listener, id, loaded);
      } catch (error) {
        const why = connection.why();
        connection.end('no session came about');
        signal.throwIfAborted();
        if (why !== null) throw new AgentRefusal(`no session came about: ${why}`);
        if (error instanceof AgentRefusal) throw error;
        throw new AgentRefusal(`the agent refuses a session: ${wordsOf(error)}`);
      } finally {
        signal.removeEventListener('abort', abort);
      }
    },
  };
}
