import { nextStartStep, type StartStep, startSteps, statusAfter } from '../../domain/conversation-next-step.ts';
import { type Conversation, type ConversationStartStatus, workingDirOf } from '../../domain/conversation.ts';
import { isFailure, isFailureOf, reasonOfFailure } from '../../domain/failure.ts';
import type { Reason } from '../../domain/reason.ts';
import type { Sandbox } from '../../domain/sandbox.ts';
import { AgentRefusal } from '../../ports/agent-protocol.ts';
import { ProgressReporter } from '../progress-reporter.ts';
import { timeout } from '../timers.ts';
import type { Changed } from './conversation-records.ts';
import type { StepDeps } from './conversation-reconciler.ts';
import { openAgent } from './open-agent.ts';

type StepOf<K extends StartStep['kind']> = Extract<StartStep, { readonly kind: K }>;

/**
 * Takes the steps of a conversation's start. A step is in the record before it is taken, and can be taken again, so a start
 * continues wherever an earlier process left it. A step that fails ends the start.
 */
export class ConversationStart {
  readonly #deps: StepDeps;

  constructor(deps: StepDeps) {
    this.#deps = deps;
  }

  /** Takes the next step. Returns false if there is none now. */
  async step(conversation: Conversation, signal: AbortSignal): Promise<boolean> {
    const { access, agents, logger } = this.#deps;
    const { id, startStatus } = conversation;
    const sandbox = await access.find(conversation);
    const step = nextStartStep(conversation, sandbox);
    try {
      return await this.#take(step, conversation, sandbox, signal);
    } catch (error) {
      if (signal.aborted) return true;
      if (isStoreFailure(error)) throw error;
      const cause = reasonOf(error);
      if (cause === null) logger.error({ conversation: id, step: startStatus, error }, 'a step of a conversation start failed');
      await agents.end(id);
      await this.#advance(conversation, 'ERROR', { code: 'step_failed', step: startStatus, cause: cause ?? { code: 'internal_error' } });
      return true;
    }
  }

  async #take(step: StartStep, conversation: Conversation, sandbox: Sandbox | null, signal: AbortSignal): Promise<boolean> {
    const { access, timing } = this.#deps;
    switch (step.kind) {
      case 'none':
        return false;
      case 'record':
        await this.#advance(conversation, step.status, step.reason);
        return true;
      case 'start-sandbox':
        await access.start(conversation);
        return true;
      case 'resume-sandbox':
        await access.resume(conversation);
        return true;
      case 'await-sandbox':
        return await access.moved(conversation, sandbox, signal);
      case 'prepare-repository':
        await this.#within(timing.prepareWithinMs, step.sandbox, signal, (signal) => this.#prepare(step, conversation, signal));
        await this.#advance(conversation, statusAfter(conversation, step.sandbox), null);
        return true;
      case 'list-microagents':
        await this.#within(timing.listWithinMs, step.sandbox, signal, (signal) => this.#list(step, conversation, signal));
        return true;
      case 'start-agent':
        await openAgent(this.#deps, conversation, step.sandbox, signal, ({ startStatus }) =>
          startStatus === 'STARTING_AGENT' ? { startStatus: 'READY', executionStatus: 'idle', statusReason: null } : null,
        );
        return true;
    }
  }

  async #prepare({ repository, sandbox }: StepOf<'prepare-repository'>, conversation: Conversation, signal: AbortSignal): Promise<void> {
    const { clock, timing } = this.#deps;
    const write = (reason: Reason): Promise<boolean> => this.#writeProgress(conversation, reason);
    const progress = new ProgressReporter({ clock, write, written: null, quietMs: 0, everyMs: timing.progressEveryMs });
    try {
      await this.#copyRepository(conversation, repository, sandbox, (reason) => progress.report(reason), signal);
    } finally {
      await progress.end();
    }
  }

  /**
   * Copies a work tree of the repository into the sandbox. Only the checkout on this host sees the provider's credential.
   * Repeating it writes the same files again.
   */
  async #copyRepository(
    conversation: Conversation,
    repository: string,
    sandbox: Sandbox,
    progress: (reason: Reason) => void,
    signal: AbortSignal,
  ): Promise<void> {
    const { repositories, checkouts, runtime } = this.#deps;
    const { provider, path: named } = repositories.locate(repository);
    const { path } = await provider.find(named, signal);
    const remote = await provider.remote(path, signal);
    const request = { provider: provider.name, repository: path, remote, branch: conversation.selectedBranch };
    const { archive } = await checkouts.checkOut(request, progress, signal);
    progress({ code: 'copying_files' });
    try {
      await runtime.putFiles(sandbox.instanceId, workingDirOf(conversation, sandbox.spec), archive, signal);
    } catch (error) {
      // A stream that nobody began to read has to be cancelled here; otherwise this does nothing.
      await archive.cancel(error).catch(() => {});
      throw error;
    }
  }

  async #list({ repository, sandbox }: StepOf<'list-microagents'>, conversation: Conversation, signal: AbortSignal): Promise<void> {
    const found = await this.#deps.microagents.list(repository, signal);
    await this.#advance(conversation, statusAfter(conversation, sandbox), null, { microagents: found.map(({ path }) => path) });
  }

  /** Takes the step within the time, and keeps the sandbox awake meanwhile. */
  async #within(ms: number, sandbox: Sandbox, signal: AbortSignal, step: (signal: AbortSignal) => Promise<void>): Promise<void> {
    const limit = timeout(this.#deps.clock, ms);
    const stopKeepingAwake = this.#deps.access.keepAwake(sandbox);
    try {
      await step(AbortSignal.any([signal, limit.signal]));
    } catch (error) {
      if (signal.aborted || !limit.signal.aborted) throw error;
      throw new StepTimeout(ms, error);
    } finally {
      stopKeepingAwake();
      limit.cancel();
    }
  }

  async #advance(
    { id, startStatus: from }: Conversation,
    startStatus: ConversationStartStatus,
    reason: Reason | null,
    also: Changed['to'] = {},
  ): Promise<void> {
    await this.#deps.records.change(id, (conversation) =>
      conversation.deletedAt === null && conversation.startStatus === from && startSteps[from].includes(startStatus)
        ? { to: { ...also, startStatus, statusReason: reason }, actor: 'skep', reason }
        : null,
    );
  }

  async #writeProgress({ id, startStatus: step }: Conversation, reason: Reason): Promise<boolean> {
    const written = await this.#deps.records.change(id, ({ startStatus, deletedAt }) =>
      startStatus === step && deletedAt === null ? { to: { statusReason: reason }, actor: 'skep', reason: null } : null,
    );
    return written !== null;
  }
}

/** A step of a start took too long. */
class StepTimeout extends Error {
  readonly reason: Reason;

  constructor(withinMs: number, cause: unknown) {
    super(`not done within ${withinMs} ms`, { cause });
    this.reason = { code: 'not_done_in_time', withinMs };
  }
}

/** Returns the reason of an error for the conversation's owner; null if only the log may show it. */
export function reasonOf(error: unknown): Reason | null {
  if (error instanceof AgentRefusal) return { code: 'agent_start_failed', cause: error.reason };
  if (error instanceof StepTimeout) return error.reason;
  return isFailure(error) ? reasonOfFailure(error) : null;
}

/** Returns true if the store failed. Nothing can be written then; the next sweep tries again. */
export function isStoreFailure(error: unknown): boolean {
  return isFailureOf(error, 'store_unavailable');
}
