import { type ClientContext, methods, PROTOCOL_VERSION } from '@agentclientprotocol/sdk';
import { AgentRefusal, type OpenAgentSession } from '../../../ports/agent-protocol.ts';
import { type AuthMethod, initialized, type Initialized, sessionMade } from './schema.ts';
import { asksForAuthentication, wordsOf } from './session.ts';
import { words } from './updates.ts';

interface FoundSession {
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

/** Authenticates by the method, with what the agent's environment holds. Rejects with what is to be done where that fails. */
async function authenticate(agent: ClientContext, methodId: string, offered: readonly AuthMethod[]): Promise<void> {
  try {
    await agent.request(methods.agent.authenticate, { methodId });
  } catch (error) {
    throw new AgentRefusal(`the agent refuses to authenticate by ${words(methodId)}: ${wordsOf(error)}; ${advice(offered)}`);
  }
}

/** Does the work, and says what is to be done where the agent asks for authentication. */
async function authenticated<T>(offered: readonly AuthMethod[], work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!asksForAuthentication(error)) throw error;
    throw new AgentRefusal(`the agent asks for authentication: ${wordsOf(error)}; ${advice(offered)}`);
  }
}

/** What the agent probably lacks, and where that comes from. */
function advice(offered: readonly AuthMethod[]): string {
  const names = new Set(offered.flatMap(variables));
  const secret = names.size === 0 ? "the variable with its model's key" : [...names].join(' or ');
  const ways = offered.map(({ id, name }) => `${words(id)} (${words(name)})`).join(', ');
  const named = `name ${secret} among the agent's secrets in the sandbox spec, and set it in the deployment's environment`;
  return ways === '' ? named : `${named}; some agents also need an auth_method, and this one offers ${ways}`;
}

/** The names of environment variables that a method speaks of. */
function variables({ name, description, vars }: AuthMethod): string[] {
  if (vars !== undefined) return vars.map((variable) => variable.name);
  return `${name} ${description ?? ''}`.match(/\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b/gu) ?? [];
}
