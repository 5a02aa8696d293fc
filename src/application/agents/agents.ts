import type { AgentSpec } from '../../domain/agent.ts';
import type { Sandbox } from '../../domain/sandbox.ts';
import { type AgentProtocol, AgentRefusal } from '../../ports/agent-protocol.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Logger } from '../../ports/logger.ts';
import type { SandboxRuntime } from '../../ports/sandbox-runtime.ts';
import type { Secrets } from '../../ports/secrets.ts';
import { timeout } from '../timers.ts';
import { AgentProcess } from './agent-process.ts';
import { LiveAgent, whileItRuns } from './live-agent.ts';
import { RedactingAgentClient } from './redacting-agent-client.ts';
import { SecretRedactor } from './secret-redactor.ts';

interface AgentsDeps {
  readonly runtime: SandboxRuntime;
  readonly protocols: readonly AgentProtocol[];
  readonly secrets: Secrets;
  readonly clock: Clock;
  readonly logger: Logger;
}

interface OpenAgent {
  readonly conversationId: string;
  readonly sandbox: Sandbox;
  /** Absolute path inside the sandbox. */
  readonly workingDir: string;
  /** The session to go on with; null for a new one. */
  readonly sessionId: string | null;
}

/** The agents that run for conversations of this process, at most one for each. */
export class Agents {
  readonly #deps: AgentsDeps;
  readonly #live = new Map<string, LiveAgent>();

  constructor(deps: AgentsDeps) {
    this.#deps = deps;
  }

  /** The conversation's agent; null while none runs here. */
  get(conversationId: string): LiveAgent | null {
    const agent = this.#live.get(conversationId);
    return agent?.alive === true ? agent : null;
  }

  /**
   * Starts the conversation's agent in its running sandbox, and opens its session. Rejects with an {@link AgentRefusal}
   * (what the agent lacks or says, without secrets), with the failures of `SandboxRuntime.execute`, or with the
   * signal's reason; nothing of the agent runs then.
   */
  async open(request: OpenAgent, signal: AbortSignal): Promise<LiveAgent> {
    const { clock, secrets } = this.#deps;
    const { agent } = request.sandbox.spec;
    if (agent === null) throw new AgentRefusal('its sandbox spec names no agent');
    const environment = agentEnvironment(agent, secrets);
    const limit = timeout(clock, agent.startWithinMs);
    try {
      const live = await this.#open(request, agent, environment, AbortSignal.any([signal, limit.signal]));
      this.#keep(request, live);
      return live;
    } catch (error) {
      if (signal.aborted || !limit.signal.aborted) throw error;
      const words = error instanceof AgentRefusal ? `; ${error.message}` : '';
      throw new AgentRefusal(`it had no session within ${agent.startWithinMs / 1000} s${words}`, { cause: error });
    } finally {
      limit.cancel();
    }
  }

  /** Ends the conversation's agent, if one runs here. */
  async end(conversationId: string): Promise<void> {
    await this.#live.get(conversationId)?.kill();
  }

  /** Ends every agent. */
  async close(): Promise<void> {
    await Promise.all([...this.#live.values()].map((agent) => agent.kill()));
  }

  async #open({ sandbox, workingDir, sessionId }: OpenAgent, { command, authMethod }: AgentSpec, { env, scrubber }: AgentEnvironment, signal: AbortSignal): Promise<LiveAgent> {
    const { runtime, clock } = this.#deps;
    const protocol = this.#protocol(sandbox);
    const execution = await runtime.execute(sandbox.instanceId, { command, env, workingDir }, signal);
    const process = new AgentProcess(execution, scrubber, clock);
    const client = new RedactingAgentClient(scrubber);
    const request = { streams: process.streams, workingDir: execution.workingDir ?? workingDir, authMethod, sessionId, client };
    try {
      const session = await whileItRuns(process, clock, signal, (running) => protocol.open(request, running));
      return new LiveAgent({ session, process, client, scrubber, clock });
    } catch (error) {
      await process.leave();
      if (error instanceof AgentRefusal) throw new AgentRefusal(process.account(error.message), { cause: error });
      if (signal.aborted && process.lastWords !== '') throw new AgentRefusal(`its last words: ${process.lastWords}`, { cause: error });
      throw error;
    }
  }

  #protocol({ spec }: Sandbox): AgentProtocol {
    const protocol = this.#deps.protocols.find(({ name }) => name === spec.agent?.protocol);
    if (protocol === undefined) throw new AgentRefusal(`the deployment does not speak the protocol ${spec.agent?.protocol}`);
    return protocol;
  }

  #keep({ conversationId, sandbox }: OpenAgent, agent: LiveAgent): void {
    const { logger } = this.#deps;
    this.#live.set(conversationId, agent);
    logger.info({ conversation: conversationId, sandbox: sandbox.id, loaded: agent.loaded }, 'agent started');
    void this.#forget(conversationId, agent);
  }

  async #forget(conversationId: string, agent: LiveAgent): Promise<void> {
    const reason = await agent.ended;
    if (this.#live.get(conversationId) === agent) this.#live.delete(conversationId);
    this.#deps.logger.info({ conversation: conversationId, reason }, 'agent ended');
  }
}

interface AgentEnvironment {
  readonly env: Readonly<Record<string, string>>;
  /** Knows the secrets in it. */
  readonly scrubber: SecretRedactor;
}

/** The variables of an agent's process. A secret that is not set is an {@link AgentRefusal} that names it. */
function agentEnvironment({ env, secrets: names }: AgentSpec, secrets: Secrets): AgentEnvironment {
  const missing = names.filter((name) => secrets.get(name) === null);
  if (missing.length > 0) {
    const which = missing.length === 1 ? `the variable ${missing.join()}, which it needs, is` : `the variables ${missing.join(', ')}, which it needs, are`;
    throw new AgentRefusal(`${which} not set in the deployment's environment`);
  }
  const found = names.map((name) => [name, secrets.get(name) ?? ''] as const);
  return { env: { ...env, ...Object.fromEntries(found) }, scrubber: new SecretRedactor(found.map(([, value]) => value)) };
}
