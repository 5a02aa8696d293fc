import type { AgentSpec } from '../../domain/agent.ts';
import { AgentRefusal } from '../../ports/agent-protocol.ts';
import type { Secrets } from '../../ports/secrets.ts';
import { Scrubber } from './scrub.ts';

export interface AgentEnvironment {
  readonly env: Readonly<Record<string, string>>;
  /** Knows the secrets in it. */
  readonly scrubber: Scrubber;
}

/** The variables of an agent's process. A secret that is not set is an {@link AgentRefusal} that names it. */
export function agentEnvironment({ env, secrets: names }: AgentSpec, secrets: Secrets): AgentEnvironment {
  const missing = names.filter((name) => secrets.get(name) === null);
  if (missing.length > 0) {
    const which = missing.length === 1 ? `the variable ${missing.join()}, which it needs, is` : `the variables ${missing.join(', ')}, which it needs, are`;
    throw new AgentRefusal(`${which} not set in the deployment's environment`);
  }
  const found = names.map((name) => [name, secrets.get(name) ?? ''] as const);
  return { env: { ...env, ...Object.fromEntries(found) }, scrubber: new Scrubber(found.map(([, value]) => value)) };
}
