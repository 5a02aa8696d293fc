import { endCases } from './agent-ends.ts';
import { agentStageCases, type AgentHarness } from './agent-harness.ts';
import { permissionCases } from './agent-permissions.ts';
import { resumptionCases } from './agent-resumption.ts';
import { sessionCases } from './agent-sessions.ts';
import { turnCases } from './agent-turns.ts';
import type { ContractCase } from './contract.ts';

/** What every agent protocol must do, with an agent that does what its messages tell it. */
export function agentContract(createHarness: () => Promise<AgentHarness>): ContractCase[] {
  return agentStageCases(createHarness, [...sessionCases, ...resumptionCases, ...turnCases, ...permissionCases, ...endCases]);
}
