import type { AgentSpec } from '../../domain/agent.ts';
import type { TurnPosition } from '../../domain/conversation.ts';
import { isFailureOf } from '../../domain/failure.ts';
import type { Reason } from '../../domain/reason.ts';
import type { Sandbox } from '../../domain/sandbox.ts';
import { raceSignal } from '../../ports/abort-signals.ts';
import { type AgentProtocol, AgentRefusal, type AgentSession, type OpenAgentSession } from '../../ports/agent-protocol.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Logger } from '../../ports/logger.ts';
import type { OpenExecution } from '../../ports/sandbox-executions.ts';
import type { SandboxRuntime } from '../../ports/sandbox-runtime.ts';
import type { Secrets } from '../../ports/secrets.ts';
import { timeout } from '../timers.ts';
import type { AgentMemory } from './agent-memory-limit.ts';
import { AgentProcess } from './agent-process.ts';
import { LiveAgent } from './live-agent.ts';
import { RedactingAgentClient } from './redacting-agent-client.ts';
import { redactorOf, resolveSecrets, type SecretRedactor } from '../secrets.ts';

interface AgentsDeps {
  readonly runtime: Pick<SandboxRuntime, 'executions'>;
  readonly protocols: readonly AgentProtocol[];
  readonly secrets: Secrets;
  readonly memory: AgentMemory;
  readonly clock: Clock;
  readonly logger: Logger;
}

interface AgentTarget {
  readonly conversationId: string;
  readonly sandbox: Sandbox;
}

interface AgentRequest extends AgentTarget {
  /** Absolute path inside the sandbox. */
  readonly workingDir: string;
  /** The session to continue; null for a new one. */
  readonly sessionId: string | null;
}

/** An agent whose streams this process holds, and that has no session yet. */
interface AttachedAgent {
  readonly agentProcess: AgentProcess;
  readonly redactor: SecretRedactor;
  readonly connection: Pick<OpenAgentSession, 'streams' | 'onHeld' | 'onOtherOutput'> & { readonly client: RedactingAgentClient };
}

/** The agents of this process's conversations, at most one for each. */
export class Agents {
  readonly #deps: AgentsDeps;
  readonly #live = new Map<string, LiveAgent>();
  /** Called when an agent begins to work without a message. */
  onUnpromptedWork: (conversationId: string) => void = () => {};

  constructor(deps: AgentsDeps) {
    this.#deps = deps;
  }

  /** Returns the conversation's agent; null if none runs here. */
  get(conversationId: string): LiveAgent | null {
    const agent = this.#live.get(conversationId);
    return agent?.alive === true ? agent : null;
  }

  /** Yields the conversations whose agents have begun to work without a message, and wait for a turn. */
  *withUnpromptedWork(): Generator<string, void> {
    for (const [id, agent] of this.#live) if (agent.hasUnpromptedWork) yield id;
  }

  /**
   * Starts the agent. Rejects with an {@link AgentRefusal} (`agent_start_failed`) or the failures of `SandboxExecutions.open`, or because
   * the signal fires. Then no agent runs.
   */
  async open(request: AgentRequest, signal: AbortSignal): Promise<LiveAgent> {
    const { sandbox: { spec: { agent } }, sessionId } = request;
    if (agent === null) throw new AgentRefusal({ code: 'agent_start_failed', cause: { code: 'agent_not_named' } });
    using limit = timeout(this.#deps.clock, agent.startWithinMs);
    const ends = AbortSignal.any([signal, limit.signal]);
    let attached: AttachedAgent | null = null;
    try {
      const protocol = this.#protocolOf(agent.protocol);
      const { execution, redactor } = await this.#execute(request, agent, ends);
      attached = this.#attach(request, execution, redactor, null);
      const workingDir = execution.workingDir ?? request.workingDir;
      const session = await protocol.open({ ...attached.connection, workingDir, authMethod: agent.authMethod, sessionId }, ends);
      return this.#keep(request, attached, session);
    } catch (error) {
      const isLate = limit.signal.aborted;
      await attached?.agentProcess.discard();
      throw signal.aborted ? error : startFailure(error, attached?.agentProcess ?? null, isLate ? agent.startWithinMs : null);
    }
  }

  /**
   * Takes over the agent of a turn that an earlier process began. The agent's output since then is replayed when the turn's message is sent
   * again. Rejects with an {@link AgentRefusal} or the failures of `SandboxExecutions.reopen`. Then the agent may still run, and can be
   * taken over later.
   */
  async resume(target: AgentTarget, position: TurnPosition, signal: AbortSignal): Promise<LiveAgent> {
    const { conversationId, sandbox } = target;
    const { runtime, secrets } = this.#deps;
    const protocol = this.#protocolOf(sandbox.spec.agent?.protocol ?? '');
    const execution = await runtime.executions.reopen(sandbox.instanceId, executionIdOf(conversationId), position.stdout, signal);
    const attached = this.#attach(target, execution, redactorOf(sandbox, secrets), position);
    const { sessionId, requestId } = position;
    try {
      return this.#keep(target, attached, await protocol.resume({ ...attached.connection, sessionId, requestId }));
    } catch (error) {
      attached.agentProcess.detach();
      throw error;
    }
  }

  /** Ends the conversation's agent. If `sandbox` is set, also ends an agent that an earlier process left there, if it is reachable. */
  async end(conversationId: string, sandbox: Sandbox | null = null): Promise<void> {
    const { runtime, logger } = this.#deps;
    const live = this.#live.get(conversationId);
    if (live !== undefined || sandbox === null || sandbox.spec.agent === null) return await live?.kill();
    try {
      await runtime.executions.remove(sandbox.instanceId, executionIdOf(conversationId));
    } catch (error) {
      logger.info({ conversation: conversationId, error }, 'the agent of a conversation could not be ended in its sandbox');
    }
  }

  async close(): Promise<void> {
    await Promise.all([...this.#live.values()].map((agent) => agent.kill()));
  }

  /** Runs the command of the agent. Also returns the redactor of its secrets. */
  async #execute({ conversationId, sandbox, workingDir }: AgentRequest, agent: AgentSpec, signal: AbortSignal) {
    const { runtime, secrets } = this.#deps;
    const env = agentEnvironment(agent, secrets);
    // Read together with the environment, because a secret may change while the agent starts.
    const redactor = redactorOf(sandbox, secrets);
    const start = { executionId: executionIdOf(conversationId), command: agent.command, env, workingDir };
    // The previous agent has the same execution id, so its kill would also end the new agent.
    await raceSignal(Promise.resolve(this.#live.get(conversationId)?.ended), signal);
    return { execution: await runtime.executions.open(sandbox.instanceId, start, signal), redactor };
  }

  async #mayRun({ instanceId }: Sandbox, conversationId: string): Promise<boolean> {
    try {
      return (await this.#deps.runtime.executions.state(instanceId, executionIdOf(conversationId))).status === 'running';
    } catch (error) {
      return isFailureOf(error, 'runtime_unavailable', 'runtime_timeout');
    }
  }

  #protocolOf(protocol: string): AgentProtocol {
    const found = this.#deps.protocols.find(({ name }) => name === protocol);
    if (found === undefined) throw new AgentRefusal({ code: 'agent_protocol_unknown', protocol });
    return found;
  }

  /** Reads the streams of the agent. With `position`, its output is held back at first. */
  #attach(
    { conversationId }: AgentTarget, execution: OpenExecution, redactor: SecretRedactor, position: TurnPosition | null,
  ): AttachedAgent {
    const { clock, memory } = this.#deps;
    const agentProcess = new AgentProcess(execution, redactor, clock, memory.share(), position);
    const connection = {
      streams: agentProcess.streams,
      client: new RedactingAgentClient(redactor, () => this.onUnpromptedWork(conversationId)),
      onHeld: (bytes: number): void => agentProcess.output.setUnhandled(bytes),
      onOtherOutput: (line: string): void => agentProcess.noteOtherOutput(line),
    };
    return { agentProcess, redactor, connection };
  }

  #keep({ conversationId, sandbox }: AgentTarget, { agentProcess, redactor, connection }: AttachedAgent, session: AgentSession): LiveAgent {
    const { clock, logger } = this.#deps;
    const { client } = connection;
    const mayRun = (): Promise<boolean> => this.#mayRun(sandbox, conversationId);
    const agent = new LiveAgent({ session, process: agentProcess, client, redactor, clock, mayRun });
    this.#live.set(conversationId, agent);
    logger.info({ conversation: conversationId, sandbox: sandbox.id, loaded: session.loaded }, 'agent started');
    void this.#removeAfterEnd(conversationId, agent);
    return agent;
  }

  async #removeAfterEnd(conversationId: string, agent: LiveAgent): Promise<void> {
    const reason = await agent.ended;
    if (this.#live.get(conversationId) === agent) this.#live.delete(conversationId);
    this.#deps.logger.info({ conversation: conversationId, reason }, 'agent ended');
  }
}

/** The id under which the agent of a conversation runs in its sandbox. */
function executionIdOf(conversationId: string): string {
  return `agent-${conversationId}`;
}

function agentEnvironment({ env, secrets: names }: AgentSpec, secrets: Secrets): Record<string, string> {
  const { values, missing } = resolveSecrets(names, secrets);
  if (missing.length > 0) throw new AgentRefusal({ code: 'agent_secrets_missing', names: missing });
  return { ...env, ...values };
}

/**
 * Returns why the agent did not start, with the last output of its process. `limitMs` is its time limit if that has passed. An error that
 * is neither a refusal nor due to the limit is returned as it is.
 */
function startFailure(error: unknown, agentProcess: AgentProcess | null, limitMs: number | null): unknown {
  if (limitMs === null && !(error instanceof AgentRefusal)) return error;
  const refusal = error instanceof AgentRefusal ? error.reason : null;
  const last = agentProcess === null ? refusal : agentProcess.reasonOf(refusal);
  const cause: Reason | null = limitMs === null ? last : { code: 'agent_not_ready_in_time', withinMs: limitMs, last };
  return new AgentRefusal({ code: 'agent_start_failed', cause }, { cause: error });
}
