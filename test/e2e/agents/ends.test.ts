import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createAcpProtocol } from '../../../src/adapters/agent-protocol/acp/index.ts';
import { createSystemClock } from '../../../src/adapters/clock/system-clock.ts';
import { AgentMemory } from '../../../src/application/agents/agent-memory-limit.ts';
import { Agents } from '../../../src/application/agents/agents.ts';
import type { LiveAgent } from '../../../src/application/agents/live-agent.ts';
import { newSandbox } from '../../../src/domain/sandbox.ts';
import { neverAborts } from '../../../src/ports/abort-signals.ts';
import { acpAgentCommand } from '../../doubles/acp-agent/start.ts';
import { acpScript, type AcpStep } from '../../doubles/acp-agent/steps.ts';
import { shell } from '../../support/sandbox-programs.ts';
import { createHost, type Host } from '../../adapters/sandbox-runtime/process/host.ts';
import { launchOf, programs } from '../../adapters/sandbox-runtime/process/programs.ts';

const secret = 'sk-live-0123456789';
const base = { protocol: 'acp', env: {}, secrets: ['MODEL_KEY'], authMethod: null, permissions: 'ask', startWithinMs: 60_000, turnTimeoutMs: 3_600_000, permissionTimeoutMs: 86_400_000 } as const;

let host: Host;
let agents: Agents;
let open: (command: readonly string[]) => Promise<LiveAgent>;

beforeEach(async () => {
  host = await createHost();
  const [runtime, launch] = [host.open(), launchOf(programs.counts)];
  await runtime.start(launch, () => {}, neverAborts);
  const logger = { debug() {}, info() {}, warn() {}, error() {} };
  agents = new Agents({ runtime, protocols: [createAcpProtocol()], secrets: { get: () => secret }, clock: createSystemClock(), logger, memory: new AgentMemory(2 ** 30, createSystemClock()) });
  open = async (command) => {
    const sandbox = newSandbox({ id: launch.id, ownerId: 'me', spec: { ...launch.spec, agent: { ...base, command } }, sessionApiKey: 'key', now: 0 });
    return await agents.open({ conversationId: 'conv-1', sandbox, workingDir: launch.spec.workingDir, sessionId: null }, neverAborts);
  };
});

afterEach(async () => {
  await agents?.close();
  await host?.close();
});

describe('The exit code and the last output of an agent are reported', () => {
  test.each<[string, readonly string[], number, RegExp]>([
    ['a missing program', ['no-such-agent', 'acp'], 127, /no-such-agent/],
    ['a program that exits at once', shell('echo "no licence for $MODEL_KEY" >&2; exit 3'), 3, /^no licence for \*{10}$/],
    ['a program that says on stdout why it exits', shell('echo "not logged in as $MODEL_KEY. Run: agent login"; exit 1'), 1, /^not logged in as \*{10}\. Run: agent login$/],
    ['a program that writes to both', shell('echo "Run: agent login"; echo "fatal: no licence" >&2; exit 4'), 4, /^Run: agent login fatal: no licence$/],
    ['a program that exits after the first request', shell('read line; echo "bad request" >&2; exit 4'), 4, /^bad request$/],
    ['a program that closes stdout first', shell('read line; exec 1>&-; echo "so long" >&2; exit 5'), 5, /^so long$/],
    ['a program whose child keeps stdout open', shell('sleep 1000 & read line; exit 6'), 6, /^$/],
  ])('if opening its session fails: %s', async (_, command, exitCode, output) => {
    const cause = { code: 'agent_ended', cause: { code: 'agent_exited' }, exitCode, output: expect.stringMatching(output) };
    await expect(open(command)).rejects.toMatchObject({ reason: { code: 'agent_start_failed', cause } });
  });

  test('if it crashes during a turn', async () => {
    const steps: readonly AcpStep[] = [{ say: 'working' }, { raw: 'saving the state\n' }, { stderr: `panic: no room for ${secret}\n` }, { crash: true }];
    for (let times = 0; times < 5; times += 1) {
      const agent = await open(acpAgentCommand());
      const turn = await agent.prompt({ content: [{ type: 'text', text: acpScript(...steps) }] }, { update: async () => {}, permission: async () => null });
      expect(turn).toEqual({ stopReason: 'interrupted', reason: { code: 'agent_ended', cause: { code: 'agent_exited' }, exitCode: 137, output: 'saving the state panic: no room for **********' } });
      expect(await agent.ended).toEqual(turn.reason);
    }
  });
});
