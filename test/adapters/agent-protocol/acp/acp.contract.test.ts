import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'vitest';
import { createAcpProtocol } from '../../../../src/adapters/agent-protocol/acp/index.ts';
import { agentContract } from '../../../contracts/agent.ts';
import type { AgentHarness } from '../../../contracts/agent-harness.ts';
import { acpAgentCommand, startAgentProcess, type AgentProcess } from '../../../doubles/acp-agent/start.ts';

async function createHarness(): Promise<AgentHarness> {
  const sessions = await mkdtemp(join(tmpdir(), 'skep-acp-'));
  const started: AgentProcess[] = [];
  return {
    traits: { sessions: 'found_again', resumes: true },
    protocol: createAcpProtocol(),
    async start(behaviour) {
      const agent = startAgentProcess(acpAgentCommand({ behaviour, sessions }));
      started.push(agent);
      return agent;
    },
    async close() {
      for (const agent of started) agent.kill();
      await Promise.all(started.map(({ gone }) => gone));
      await rm(sessions, { recursive: true });
    },
  };
}

describe('Agent protocol contract: ACP with a scripted agent process', () => {
  for (const contractCase of agentContract(createHarness)) test(contractCase.name, () => contractCase.run());
});
