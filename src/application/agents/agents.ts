import type { AgentSpec } from '../../domain/agent.ts';
import type { TurnPosition } from '../../domain/conversation.ts';
import { isFailureOf } from '../../domain/failure.ts';
import type { Sandbox } from '../../domain/sandbox.ts';
import { raceSignal } from '../../ports/abort-signals.ts';
import { type AgentProtocol, AgentRefusal } from '../../ports/agent-protocol.ts';
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

interface AgentRequest {
  readonly conversationId: string;
  readonly sandbox: Sandbox;
  /** Absolute path inside the sandbox. */
  readonly workingDir: string;
  /** The session to continue; null for a new one. */
  readonly sessionId: string | null;
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
   * Starts the agent. Rejects with an {@link AgentRefusal}, the failures of `SandboxRuntime.execute`, or the signal's reason. Then no agent
   * runs.
   */
  async open(request: AgentRequest, signal: AbortSignal): Promise<LiveAgent> {
    const { clock } = this.#deps;
    const { agent } = request.sandbox.spec;
    if (agent === null) throw new AgentRefusal({ code: 'agent_not_named' });
    using limit = timeout(clock, agent.startWithinMs);
    try {
      const live = await this.#open(request, agent, AbortSignal.any([signal, limit.signal]));
      this.#keep(request, live);
      return live;
    } catch (error) {
      if (signal.aborted || !limit.signal.aborted) throw error;
      const last = error instanceof AgentRefusal ? error.reason : null;
      throw new AgentRefusal({ code: 'agent_not_ready_in_time', withinMs: agent.startWithinMs, last }, { cause: error });
    }
  }

  /**
   * Takes over the agent of a turn that an earlier process began. The agent's output since then is replayed when the turn's message is sent
   * again. Rejects with the failures of `SandboxExecutions.reopen`.
   */
  async resume(
    { conversationId, sandbox }: Pick<AgentRequest, 'conversationId' | 'sandbox'>, position: TurnPosition, signal: AbortSignal,
  ): Promise<LiveAgent> {
    const { runtime, secrets } = this.#deps;
    const protocol = this.#protocolOf(sandbox.spec.agent?.protocol ?? '');
    const execution = await runtime.executions.reopen(sandbox.instanceId, executionIdOf(conversationId), position.stdout, signal);
    const deps = this.#depsOf({ conversationId, sandbox }, execution, redactorOf(sandbox, secrets), position);
    const { process: { streams }, client, onHeld, onOtherOutput } = deps;
    const { sessionId, requestId } = position;
    const session = await protocol.resume({ streams, client, onHeld, onOtherOutput, sessionId, requestId });
    const live = new LiveAgent({ ...deps, session });
    this.#keep({ conversationId, sandbox }, live);
    return live;
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

  async #open(
    { conversationId, sandbox, workingDir, sessionId }: AgentRequest, agent: AgentSpec, signal: AbortSignal,
  ): Promise<LiveAgent> {
    const { runtime, secrets } = this.#deps;
    const { command, authMethod } = agent;
    const env = agentEnvironment(agent, secrets);
    // Read together with the environment, because a secret may change while the agent starts.
    const redactor = redactorOf(sandbox, secrets);
    const protocol = this.#protocolOf(agent.protocol);
    const start = { executionId: executionIdOf(conversationId), command, env, workingDir };
    // The previous agent has the same execution id, so its kill would also end the new agent.
    await raceSignal(Promise.resolve(this.#live.get(conversationId)?.ended), signal);
    const execution = await runtime.executions.open(sandbox.instanceId, start, signal);
    const deps = this.#depsOf({ conversationId, sandbox }, execution, redactor, null);
    const { process, client, onHeld, onOtherOutput } = deps;
    const { streams } = process;
    const request = {
      streams, workingDir: execution.workingDir ?? workingDir, authMethod, sessionId, client, onHeld, onOtherOutput,
    };
    try {
      return new LiveAgent({ ...deps, session: await protocol.open(request, signal) });
    } catch (error) {
      await process.discard();
      const cause = error instanceof AgentRefusal ? error.reason : null;
      if (cause === null && !signal.aborted) throw error;
      const reason = process.reasonOf(cause);
      throw reason === null ? error : new AgentRefusal(reason, { cause: error });
    }
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

  #depsOf(
    { conversationId, sandbox }: Pick<AgentRequest, 'conversationId' | 'sandbox'>, execution: OpenExecution, redactor: SecretRedactor,
    position: TurnPosition | null,
  ) {
    const { clock, memory } = this.#deps;
    const process = new AgentProcess(execution, redactor, clock, memory.share(), position);
    const onHeld = (bytes: number): void => process.output.setUnhandled(bytes);
    const onOtherOutput = (line: string): void => process.noteOtherOutput(line);
    const client = new RedactingAgentClient(redactor, () => this.onUnpromptedWork(conversationId));
    const mayRun = (): Promise<boolean> => this.#mayRun(sandbox, conversationId);
    return { process, client, redactor, clock, onHeld, onOtherOutput, mayRun };
  }

  #keep({ conversationId, sandbox }: Pick<AgentRequest, 'conversationId' | 'sandbox'>, agent: LiveAgent): void {
    const { logger } = this.#deps;
    this.#live.set(conversationId, agent);
    logger.info({ conversation: conversationId, sandbox: sandbox.id, loaded: agent.session.loaded }, 'agent started');
    void this.#removeAfterEnd(conversationId, agent);
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
