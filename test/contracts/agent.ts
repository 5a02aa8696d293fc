import { endCases } from './agent-ends.ts';
import { agentStageCases, type AgentHarness } from './agent-harness.ts';
import { permissionCases } from './agent-permissions.ts';
import { resumptionCases } from './agent-resumption.ts';
import { sessionCases } from './agent-sessions.ts';
import { turnCases } from './agent-turns.ts';
import { unpromptedCases } from './agent-unprompted.ts';
import type { ContractCase } from './contract.ts';

/** The contract of every agent protocol. Its agent follows the steps in its messages. */
export function agentContract(createHarness: () => Promise<AgentHarness>): ContractCase[] {
  return agentStageCases(createHarness, [...sessionCases, ...resumptionCases, ...turnCases, ...unpromptedCases, ...permissionCases, ...endCases]);
}
