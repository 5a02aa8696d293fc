import { readFile } from 'node:fs/promises';
import { setImmediate as tick } from 'node:timers/promises';
import { createAcpProtocol } from '../../../../src/adapters/agent-protocol/acp/index.ts';
import { startAgentProcess, acpAgentCommand } from '../../../doubles/acp-agent/start.ts';
import { acpScript } from '../../../doubles/acp-agent/steps.ts';

/** Handles many updates slowly. Prints their number and the peak memory of this process, in MiB. */
const [count, bytes] = process.argv.slice(2).map(Number);
const agent = startAgentProcess(acpAgentCommand());
let updates = 0;
const client = {
  async update() {
    updates += 1;
    // So the agent is always faster.
    if (updates % 4 === 0) await tick();
  },
  permission: async () => null,
  onUnpromptedWork: () => {},
};
try {
  const request = { streams: agent.streams, workingDir: '/tmp', authMethod: null, sessionId: null, client };
  const session = await createAcpProtocol().open(request, AbortSignal.timeout(60_000));
  const { stopReason } = await session.prompt({ content: [{ type: 'text', text: acpScript({ flood: count ?? 1, bytes: bytes ?? 1 }) }] });
  await session.close();
  // getrusage's maximum would include the memory of the process that started this one.
  const [, maxKiB] = /^VmHWM:\s+(\d+) kB$/m.exec(await readFile('/proc/self/status', 'utf8')) ?? [];
  console.log(JSON.stringify({ updates, stopReason, maxMiB: Math.round(Number(maxKiB) / 1024) }));
} finally {
  agent.kill();
}
