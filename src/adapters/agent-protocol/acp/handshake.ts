import { methods, PROTOCOL_VERSION, type ClientContext } from '@agentclientprotocol/sdk';
import { AgentRefusal, type OpenAgentSession } from '../../../ports/agent-protocol.ts';
import { initialized, sessionMade, type Initialized } from './answers.ts';
import { authenticate, authenticated } from './authentication.ts';
import { asksForAuthentication } from './failure.ts';

export interface FoundSession {
  readonly id: string;
  readonly loaded: boolean;
}

/** Agrees on the protocol and gets a session. Rejects with what stands in the way. */
export async function shakeHands(agent: ClientContext, request: Pick<OpenAgentSession, 'workingDir' | 'authMethod' | 'sessionId'>): Promise<FoundSession> {
  const answer = initialized.parse(
    await agent.request(methods.agent.initialize, {
      protocolVersion: PROTOCOL_VERSION,
      clientCapabilities: { fs: { readTextFile: false, writeTextFile: false }, terminal: false },
    }),
  );
  if (answer.protocolVersion !== PROTOCOL_VERSION) {
    throw new AgentRefusal(`the agent speaks version ${answer.protocolVersion} of the Agent Client Protocol, and Skep version ${PROTOCOL_VERSION}: use a release of the agent that speaks it too`);
  }
  const offered = answer.authMethods ?? [];
  if (request.authMethod !== null) await authenticate(agent, request.authMethod, offered);
  return await authenticated(offered, async () => {
    if (request.sessionId !== null && (await isFound(agent, answer, request.workingDir, request.sessionId))) return { id: request.sessionId, loaded: true };
    const made = await agent.request(methods.agent.session.new, { cwd: request.workingDir, mcpServers: [] });
    return { id: sessionMade.parse(made).sessionId, loaded: false };
  });
}

/** Does the agent go on with the session? One that says no, for whatever reason, is asked for a new one. */
async function isFound(agent: ClientContext, { agentCapabilities }: Initialized, cwd: string, sessionId: string): Promise<boolean> {
  const resumes = (agentCapabilities?.sessionCapabilities?.resume ?? null) !== null;
  const { load, resume } = methods.agent.session;
  const method = agentCapabilities?.loadSession === true ? load : resumes ? resume : null;
  if (method === null) return false;
  try {
    await agent.request(method, { sessionId, cwd, mcpServers: [] });
    return true;
  } catch (error) {
    if (asksForAuthentication(error)) throw error;
    return false;
  }
}
