import { type ClientContext, methods, PROTOCOL_VERSION, RequestError } from '@agentclientprotocol/sdk';
import { ZodError } from 'zod';
import { onAbort } from '../../../ports/abort-signals.ts';
import { type AgentProtocol, AgentRefusal, type OpenAgentSession } from '../../../ports/agent-protocol.ts';
import { connect } from './connection.ts';
import { type AuthMethod, createdSession, initialized, type Initialized } from './schema.ts';
import { AcpSession, messageOf } from './session.ts';
import { TurnListener } from './turn-listener.ts';
import { oneLine } from './updates.ts';

/** The Agent Client Protocol, version 1: JSON-RPC, one message per line. */
export function createAcpProtocol(): AgentProtocol {
  return {
    name: 'acp',
    async open(request, signal) {
      const listener = new TurnListener(request.client);
      const connection = connect(request, listener);
      using _ = onAbort(signal, () => connection.end({ code: 'agent_session_closed' }));
      try {
        signal.throwIfAborted();
        const { id, loaded } = await initializeSession(connection.agent, request, () => listener.replayed(signal));
        return new AcpSession(connection, listener, id, loaded);
      } catch (error) {
        const reason = connection.endReason();
        connection.end({ code: 'agent_session_closed' });
        signal.throwIfAborted();
        if (reason !== null) throw new AgentRefusal(reason);
        if (error instanceof AgentRefusal) throw error;
        if (error instanceof ZodError) throw new AgentRefusal({ code: 'malformed_answer', about: 'the session' });
        throw new AgentRefusal({ code: 'agent_session_refused', message: messageOf(error) });
      }
    },
    async resume(request) {
      const listener = new TurnListener(request.client);
      return new AcpSession(connect(request, listener, request.requestId), listener, request.sessionId, true);
    },
  };
}

/** Skep offers neither files nor a terminal, because the agent has both in its sandbox. */
const clientCapabilities = { fs: { readTextFile: false, writeTextFile: false }, terminal: false };

/** Agrees on the protocol's version, authenticates and gets a session. Throws an {@link AgentRefusal} or the agent's error. */
async function initializeSession(
  agent: ClientContext,
  { workingDir: cwd, authMethod, sessionId }: Pick<OpenAgentSession, 'workingDir' | 'authMethod' | 'sessionId'>,
  replayed: () => Promise<void>,
): Promise<{ readonly id: string; readonly loaded: boolean }> {
  const offer = { protocolVersion: PROTOCOL_VERSION, clientCapabilities };
  const answer = initialized.parse(await agent.request(methods.agent.initialize, offer));
  if (answer.protocolVersion !== PROTOCOL_VERSION) {
    throw new AgentRefusal({ code: 'agent_version_unsupported', offered: answer.protocolVersion, supported: PROTOCOL_VERSION });
  }
  const offered = answer.authMethods ?? [];
  if (authMethod !== null) await authenticate(agent, authMethod, offered);
  try {
    const method = methodToContinue(answer);
    if (sessionId !== null && method !== null && (await tryContinue(agent, method, cwd, sessionId))) {
      if (method === methods.agent.session.load) await replayed();
      return { id: sessionId, loaded: true };
    }
    const made = await agent.request(methods.agent.session.new, { cwd, mcpServers: [] });
    return { id: createdSession.parse(made).sessionId, loaded: false };
  } catch (error) {
    if (!isAuthenticationRequired(error)) throw error;
    const data = { methodId: authMethod === null ? null : oneLine(authMethod), ...authenticationOptions(offered) };
    throw new AgentRefusal({ code: 'agent_authentication_required', message: messageOf(error), ...data });
  }
}

/** `session/load` replays the history, which the event log already has, so `session/resume` is preferred. */
function methodToContinue({ agentCapabilities }: Initialized) {
  const { load, resume } = methods.agent.session;
  if ((agentCapabilities?.sessionCapabilities?.resume ?? null) !== null) return resume;
  return agentCapabilities?.loadSession === true ? load : null;
}

type ContinueMethod = NonNullable<ReturnType<typeof methodToContinue>>;

/** Returns true if the agent continues the session. If it refuses, for whatever reason, a new session is requested. */
async function tryContinue(agent: ClientContext, method: ContinueMethod, cwd: string, sessionId: string): Promise<boolean> {
  try {
    await agent.request(method, { sessionId, cwd, mcpServers: [] });
    return true;
  } catch (error) {
    if (isAuthenticationRequired(error)) throw error;
    return false;
  }
}

async function authenticate(agent: ClientContext, methodId: string, offered: readonly AuthMethod[]): Promise<void> {
  try {
    await agent.request(methods.agent.authenticate, { methodId });
  } catch (error) {
    const options = authenticationOptions(offered);
    throw new AgentRefusal({
      code: 'agent_authentication_refused', methodId: oneLine(methodId), message: messageOf(error), ...options,
    });
  }
}

const maxDescription = 200;

function authenticationOptions(offered: readonly AuthMethod[]) {
  const variables = [...new Set(offered.flatMap(variablesOf))];
  const methods = offered.map(({ id, name, description }) => ({
    id: oneLine(id), name: oneLine(name), ...(description && { description: oneLine(description, maxDescription) }),
  }));
  return { variables, methods };
}

function variablesOf({ name, description, vars }: AuthMethod): string[] {
  if (vars !== undefined) return vars.map((variable) => variable.name);
  return `${name} ${description ?? ''}`.match(/\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b/gu) ?? [];
}

const authRequired = -32_000;

function isAuthenticationRequired(error: unknown): boolean {
  return error instanceof RequestError && error.code === authRequired;
}
