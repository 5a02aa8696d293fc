import { methods, type ClientContext } from '@agentclientprotocol/sdk';
import { AgentRefusal } from '../../../ports/agent-protocol.ts';
import type { AuthMethod } from './answers.ts';
import { asksForAuthentication, wordsOf } from './failure.ts';
import { words } from './text.ts';

/** Authenticates by the method, with what the agent's environment holds. Rejects with what is to be done where that fails. */
export async function authenticate(agent: ClientContext, methodId: string, offered: readonly AuthMethod[]): Promise<void> {
  try {
    await agent.request(methods.agent.authenticate, { methodId });
  } catch (error) {
    throw new AgentRefusal(`the agent refuses to authenticate by ${words(methodId)}: ${wordsOf(error)}; ${advice(offered)}`);
  }
}

/** Does the work, and says what is to be done where the agent asks for authentication. */
export async function authenticated<T>(offered: readonly AuthMethod[], work: () => Promise<T>): Promise<T> {
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
