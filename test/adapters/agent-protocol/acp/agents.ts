import { afterEach } from 'vitest';
import { createAcpProtocol } from '../../../../src/adapters/agent-protocol/acp/index.ts';
import { neverAborts } from '../../../../src/ports/abort-signals.ts';
import type { AgentClient, AgentSession, AgentTurn } from '../../../../src/ports/agent-protocol.ts';
import { recordingClient, type RecordingClient } from '../../../contracts/agent-harness.ts';
import { withTimeout } from '../../../contracts/contract.ts';
import type { AcpAgentOptions } from '../../../doubles/acp-agent/options.ts';
import { acpAgentCommand, startAgentProcess, type AgentProcess } from '../../../doubles/acp-agent/start.ts';
import { acpScript, type AcpStep } from '../../../doubles/acp-agent/steps.ts';

const started: AgentProcess[] = [];

afterEach(async () => {
  for (const agent of started) agent.kill();
  await Promise.all(started.splice(0).map(({ gone }) => gone));
});

export interface ScriptedSession {
  readonly session: AgentSession;
  readonly client: RecordingClient;
  readonly agent: AgentProcess;
  /** The output that is no message. */
  readonly otherOutput: readonly string[];
  readonly does: (...steps: readonly AcpStep[]) => Promise<AgentTurn>;
}

export interface ScriptedOptions {
  readonly agent?: AcpAgentOptions;
  readonly env?: Readonly<Record<string, string>>;
  readonly client?: Partial<AgentClient>;
  readonly authMethod?: string;
  readonly sessionId?: string;
}

/** Runs a scripted agent as a process until the test ends, and opens a session with it. */
export async function openScripted({ agent: options = {}, env = {}, client = {}, authMethod, sessionId }: ScriptedOptions = {}): Promise<ScriptedSession> {
  const agent = startAgentProcess(acpAgentCommand(options), { env: { ...process.env, ...env } });
  started.push(agent);
  const recording = recordingClient(client);
  const otherOutput: string[] = [];
  const onOtherOutput = (text: string) => void otherOutput.push(text);
  const request = { streams: agent.streams, workingDir: '/tmp', authMethod: authMethod ?? null, sessionId: sessionId ?? null, client: recording, onOtherOutput };
  const session = await withTimeout('a session', createAcpProtocol().open(request, neverAborts));
  return {
    session,
    client: recording,
    agent,
    otherOutput,
    does: (...steps) => withTimeout('the turn ends', session.prompt({ content: [{ type: 'text', text: acpScript(...steps) }] })),
  };
}
