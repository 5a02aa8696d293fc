import type { AgentProtocol } from '../../../ports/agent-protocol.ts';
import type { Secrets } from '../../../ports/secrets.ts';
import type { SkepOptions } from '../../options.ts';

/** The protocols that the specs' agents speak: none is loaded where no spec has an agent. */
export async function openProtocols({ protocols, specs = [] }: SkepOptions): Promise<readonly AgentProtocol[]> {
  if (protocols !== undefined) return protocols;
  if (!specs.some(({ agent }) => agent !== undefined && agent !== null)) return [];
  const { createAcpProtocol } = await import('../../../adapters/agent-protocol/acp/index.ts');
  return [createAcpProtocol()];
}

/** The secrets of the specs' agents, from the environment of this process. */
export function openSecrets({ secrets }: SkepOptions): Secrets {
  return secrets ?? { get: (name) => process.env[name] ?? null };
}
