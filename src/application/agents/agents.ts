import type { AgentSpec } from '../../domain/agent.ts';
import type { Sandbox } from '../../domain/sandbox.ts';
import { type AgentProtocol, AgentRefusal } from '../../ports/agent-protocol.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Logger } from '../../ports/logger.ts';
import type { SandboxRuntime } from '../../ports/sandbox-runtime.ts';
import type { Secrets } from '../../ports/secrets.ts';
import { timeout } from '../timers.ts';
import type { AgentMemory } from './agent-memory.ts';
import { AgentProcess } from './agent-process.ts';
import { LiveAgent } from './live-agent.ts';
import { RedactingAgentClient, redactorOf, type SecretRedactor } from './secret-redactor.ts';

interface AgentsDeps {
  readonly runtime: SandboxRuntime;
  readonly protocols: readonly AgentProtocol[];
  readonly secrets: Secrets;
  readonly memory: AgentMemory;
  readonly clock: Clock;
  readonly logger: Logger;
}

interface OpenAgent {
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

  constructor(deps: AgentsDeps) {
    this.#deps = deps;
  }

  /** Returns the conversation's agent; null if none runs here. */
  get(conversationId: string): LiveAgent | null {
    const agent = this.#live.get(conversationId);
    return agent?.alive === true ? agent : null;
  }

  /** Rejects with an {@link AgentRefusal}, the failures of `SandboxRuntime.execute`, or the signal's reason; nothing runs then. */
  async open(request: OpenAgent, signal: AbortSignal): Promise<LiveAgent> {
    const { clock, secrets } = this.#deps;
    const { agent } = request.sandbox.spec;
    if (agent === null) throw new AgentRefusal({ code: 'agent_not_named' });
    const env = agentEnvironment(agent, secrets);
    const environment = { env, redactor: redactorOf(request.sandbox, secrets) };
    using limit = timeout(clock, agent.startWithinMs);
    try {
      const live = await this.#open(request, agent, environment, AbortSignal.any([signal, limit.signal]));
      this.#keep(request, live);
      return live;
    } catch (error) {
      if (signal.aborted || !limit.signal.aborted) throw error;
      const last = error instanceof AgentRefusal ? error.reason : null;
      throw new AgentRefusal({ code: 'agent_not_ready_in_time', withinMs: agent.startWithinMs, last }, { cause: error });
    }
  }

  async end(conversationId: string): Promise<void> {
    await this.#live.get(conversationId)?.kill();
  }

  async close(): Promise<void> {
    await Promise.all([...this.#live.values()].map((agent) => agent.kill()));
  }

  async #open(
    { sandbox, workingDir, sessionId }: OpenAgent,
    agent: AgentSpec,
    { env, redactor }: AgentEnvironment,
    signal: AbortSignal,
  ): Promise<LiveAgent> {
    const { runtime, clock } = this.#deps;
    const { command, authMethod } = agent;
    const protocol = this.#deps.protocols.find(({ name }) => name === agent.protocol);
    if (protocol === undefined) throw new AgentRefusal({ code: 'agent_protocol_unknown', protocol: agent.protocol });
    const execution = await runtime.execute(sandbox.instanceId, { command, env, workingDir }, signal);
    const memory = this.#deps.memory.share();
    const process = new AgentProcess(execution, redactor, clock, memory);
    const client = new RedactingAgentClient(redactor);
    const onHeld = (bytes: number): void => memory.setOutput('line', bytes);
    const request = { streams: process.streams, workingDir: execution.workingDir ?? workingDir, authMethod, sessionId, client, onHeld };
    try {
      const session = await protocol.open(request, signal);
      return new LiveAgent({ session, process, client, redactor, memory, clock });
    } catch (error) {
      await process.discard();
      const cause = error instanceof AgentRefusal ? error.reason : null;
      if (cause === null && !signal.aborted) throw error;
      const reason = process.reasonOf(cause);
      throw reason === null ? error : new AgentRefusal(reason, { cause: error });
    }
  }

  #keep({ conversationId, sandbox }: OpenAgent, agent: LiveAgent): void {
    const { logger } = this.#deps;
    this.#live.set(conversationId, agent);
    logger.info({ conversation: conversationId, sandbox: sandbox.id, loaded: agent.loaded }, 'agent started');
    void this.#removeAfterEnd(conversationId, agent);
  }

  async #removeAfterEnd(conversationId: string, agent: LiveAgent): Promise<void> {
    const reason = await agent.ended;
    if (this.#live.get(conversationId) === agent) this.#live.delete(conversationId);
    this.#deps.logger.info({ conversation: conversationId, reason }, 'agent ended');
  }
}

interface AgentEnvironment {
  readonly env: Readonly<Record<string, string>>;
  readonly redactor: SecretRedactor;
}

function agentEnvironment({ env, secrets: names }: AgentSpec, secrets: Secrets): Record<string, string> {
  const missing = names.filter((name) => secrets.get(name) === null);
  if (missing.length > 0) throw new AgentRefusal({ code: 'agent_secrets_missing', names: missing });
  return { ...env, ...Object.fromEntries(names.map((name) => [name, secrets.get(name) ?? ''])) };
}
