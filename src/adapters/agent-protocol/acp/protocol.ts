import { ZodError } from 'zod';
import { type AgentProtocol, AgentRefusal } from '../../../ports/agent-protocol.ts';
import { connect } from './connection.ts';
import { shakeHands } from './handshake.ts';
import { Listener } from './listener.ts';
import { createSession, messageOf } from './session.ts';

export interface AcpOptions {
  /** A longer line of the agent's ends the connection. Default: 16 MiB. */
  readonly maxLineBytes?: number;
  /** How many lines in a row may be no message of the protocol before the connection ends. Default: 1,000. */
  readonly maxInvalidLines?: number;
}

const defaultMaxLineBytes = 16 * 1024 * 1024;
const defaultMaxInvalidLines = 1000;

/** The Agent Client Protocol, version 1: JSON-RPC, one message a line. */
export function createAcpProtocol(options: AcpOptions = {}): AgentProtocol {
  const limits = {
    lineBytes: options.maxLineBytes ?? defaultMaxLineBytes,
    invalidLines: options.maxInvalidLines ?? defaultMaxInvalidLines,
  };
  return {
    name: 'acp',
    async open(request, signal) {
      const listener = new Listener(request.client);
      const connection = connect(request.streams, listener, limits);
      const abort = (): void => connection.end({ code: 'agent_session_closed' });
      signal.addEventListener('abort', abort, { once: true });
      try {
        signal.throwIfAborted();
        const { id, loaded } = await shakeHands(connection.agent, request);
        return createSession(connection, listener, id, loaded);
      } catch (error) {
        const reason = connection.endReason();
        connection.end({ code: 'agent_session_closed' });
        signal.throwIfAborted();
        if (reason !== null) throw new AgentRefusal(reason);
        if (error instanceof AgentRefusal) throw error;
        if (error instanceof ZodError) throw new AgentRefusal({ code: 'malformed_answer', about: 'the session' });
        throw new AgentRefusal({ code: 'agent_session_refused', message: messageOf(error) });
      } finally {
        signal.removeEventListener('abort', abort);
      }
    },
  };
}
