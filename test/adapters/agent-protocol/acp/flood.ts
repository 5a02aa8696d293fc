import { setImmediate as tick } from 'node:timers/promises';
import { createAcpProtocol } from '../../../../src/adapters/agent-protocol/acp/index.ts';
import { startAgentProcess, acpAgentCommand } from '../../../doubles/acp-agent/start.ts';
import { acpScript } from '../../../doubles/acp-agent/steps.ts';

/** Handles many updates slowly. Prints their number and the peak memory of this process, in MiB. */
const [count, bytes] = process.argv.slice(2).map(Number);
const agent = startAgentProcess(acpAgentCommand());
let updates = 0;
let maxBytes = 0;
const client = {
  async update() {
    updates += 1;
    // So the agent is always faster.
    if (updates % 4 === 0) await tick();
    // Not the `maxRSS` of the process, which includes the memory of its parent.
    if (updates % 100 === 0) maxBytes = Math.max(maxBytes, process.memoryUsage.rss());
  },
  permission: async () => null,
};
try {
  const request = { streams: agent.streams, workingDir: '/tmp', authMethod: null, sessionId: null, client };
  const session = await createAcpProtocol().open(request, AbortSignal.timeout(60_000));
  const { stopReason } = await session.prompt({ content: [{ type: 'text', text: acpScript({ flood: count ?? 1, bytes: bytes ?? 1 }) }] });
  await session.close();
  console.log(JSON.stringify({ updates, stopReason, maxMiB: Math.round(maxBytes / 2 ** 20) }));
} finally {
  agent.kill();
}
