import { nextStartStep, type StartStep, startSteps, statusAfter } from '../../domain/conversation-start.ts';
import type { Conversation, ConversationStartStatus } from '../../domain/conversation.ts';
import { isFailure, isFailureOf } from '../../domain/failure.ts';
import type { Sandbox } from '../../domain/sandbox.ts';
import { AgentRefusal } from '../../ports/agent-protocol.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Logger } from '../../ports/logger.ts';
import type { Agents } from '../agents/agents.ts';
import type { Microagents } from '../microagents/list-microagents.ts';
import { timeout } from '../timers.ts';
import type { Changed, ConversationRecords } from './conversation-records.ts';
import { openAgent } from './open-agent.ts';
import { prepareRepository, type PrepareRepositoryDeps } from './prepare-repository.ts';
import type { SandboxAccess } from './sandbox-access.ts';

interface ConversationStartDeps extends PrepareRepositoryDeps {
  readonly records: ConversationRecords;
  readonly access: SandboxAccess;
  readonly agents: Agents;
  readonly microagents: Microagents;
  readonly timing: ConversationTiming;
  readonly clock: Clock;
  readonly logger: Logger;
}

/**
 * Takes the steps of a conversation's start. Each is written down before it is taken, and may be taken again, so that a
 * start goes on wherever an earlier process left it. A step that fails is the end of the start.
 */
export class ConversationStart {
  readonly #deps: ConversationStartDeps;

  constructor(deps: ConversationStartDeps) {
    this.#deps = deps;
  }

  /** Takes the next step; false when there is none now. */
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
      const words = wordsOf(error);
      if (words === null) logger.error({ conversation: id, step: startStatus, error }, 'a step of a start failed');
      await agents.end(id);
      await this.#advance(conversation, 'ERROR', `${startStatus}: ${words ?? 'it failed inside; the log tells more'}`);
      return true;
    }
  }

  async #take(step: StartStep, conversation: Conversation, sandbox: Sandbox | null, signal: AbortSignal): Promise<boolean> {
    const { access } = this.#deps;
    switch (step.kind) {
      case 'none':
        return false;
      case 'record':
        await this.#advance(conversation, step.status, step.detail);
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
        await this.#within(this.#deps.timing.prepareWithinMs, step.sandbox, signal, (signal) => this.#prepare(step, conversation, signal));
        await this.#advance(conversation, statusAfter(conversation, step.sandbox), null);
        return true;
      case 'list-microagents':
        await this.#within(this.#deps.timing.listWithinMs, step.sandbox, signal, (signal) => this.#list(step, conversation, signal));
        return true;
      case 'start-agent':
        await this.#startAgent(step.sandbox, conversation, signal);
        return true;
    }
  }

  async #prepare({ repository, sandbox }: StepOf<'prepare-repository'>, conversation: Conversation, signal: AbortSignal): Promise<void> {
    const { records, clock, timing } = this.#deps;
    const progress = new StepProgress(records, conversation.id, conversation.startStatus, clock, timing.progressEveryMs);
    try {
      await prepareRepository(this.#deps, conversation, repository, sandbox, (detail) => progress.tell(detail), signal);
    } finally {
      await progress.end();
    }
  }

  async #list({ repository, sandbox }: StepOf<'list-microagents'>, conversation: Conversation, signal: AbortSignal): Promise<void> {
    const found = await this.#deps.microagents.list(repository, signal);
    await this.#advance(conversation, statusAfter(conversation, sandbox), null, { microagents: found.map(({ path }) => path) });
  }

  async #startAgent(sandbox: Sandbox, conversation: Conversation, signal: AbortSignal): Promise<void> {
    const { agents, records, access } = this.#deps;
    const rest = access.keepAwake(sandbox);
    try {
      await openAgent(agents, records, conversation, sandbox, signal, ({ startStatus }) =>
        startStatus === 'STARTING_AGENT' ? { startStatus: 'READY', executionStatus: 'idle', statusDetail: null } : null,
      );
    } finally {
      rest();
    }
  }

  /** Takes the step within the time, and keeps the sandbox awake for it. */
  async #within(ms: number, sandbox: Sandbox, signal: AbortSignal, step: (signal: AbortSignal) => Promise<void>): Promise<void> {
    const limit = timeout(this.#deps.clock, ms);
    const rest = this.#deps.access.keepAwake(sandbox);
    try {
      await step(AbortSignal.any([signal, limit.signal]));
    } catch (error) {
      if (signal.aborted || !limit.signal.aborted) throw error;
      throw new StepTooLate(ms, error);
    } finally {
      rest();
      limit.cancel();
    }
  }

  async #advance({ id, startStatus: from }: Conversation, startStatus: ConversationStartStatus, detail: string | null, also: Changed['to'] = {}): Promise<void> {
    await this.#deps.records.change(id, (conversation) =>
      conversation.deletedAt === null && conversation.startStatus === from && startSteps[from].includes(startStatus)
        ? { to: { ...also, startStatus, statusDetail: detail }, actor: 'skep', reason: detail }
        : null,
    );
  }
}

type StepOf<K extends StartStep['kind']> = Extract<StartStep, { readonly kind: K }>;

/**
 * Writes what a long step tells into `status_detail`, the newest word only, and not too often. A word that can't be
 * written is left out: the step matters, not the word.
 */
class StepProgress {
  readonly #write: (detail: string) => Promise<unknown>;
  readonly #clock: Clock;
  readonly #everyMs: number;
  #next: string | null = null;
  #writing: Promise<unknown> = Promise.resolve();
  #cancel: (() => void) | null = null;
  #ended = false;

  constructor(records: ConversationRecords, id: string, step: ConversationStartStatus, clock: Clock, everyMs: number) {
    this.#write = (detail) =>
      records.change(id, (conversation) =>
        conversation.startStatus === step && conversation.deletedAt === null && conversation.statusDetail !== detail
          ? { to: { statusDetail: detail }, actor: 'skep', reason: null }
          : null,
      );
    this.#clock = clock;
    this.#everyMs = everyMs;
  }

  tell(detail: string): void {
    if (this.#ended) return;
    this.#next = detail;
    if (this.#cancel === null) this.#flush();
  }

  /** Answers when nothing is on its way any more. */
  async end(): Promise<void> {
    this.#ended = true;
    this.#cancel?.();
    await this.#writing;
  }

  #flush(): void {
    const detail = this.#next;
    this.#next = null;
    this.#cancel = null;
    if (detail === null) return;
    this.#cancel = this.#clock.after(this.#everyMs, () => this.#flush());
    this.#writing = this.#writing.then(() => this.#write(detail)).catch(() => {});
  }
}

/** A step of a start took longer than it may. */
class StepTooLate extends Error {
  constructor(limitMs: number, cause: unknown) {
    super(`it was not done within ${limitMs / 1000} s`, { cause });
  }
}

/** Why something did not come about, in words for its owner; null where only the log may tell. */
export function wordsOf(error: unknown): string | null {
  if (error instanceof AgentRefusal) return `its agent could not be started: ${error.message}`;
  return isFailure(error) || error instanceof StepTooLate ? error.message : null;
}

/** Is it the store that failed? Nothing can be written down then; it is tried again at the next sweep. */
export function isStoreFailure(error: unknown): boolean {
  return isFailureOf(error, 'store_unavailable');
}

/** How long conversations wait for what, in milliseconds. */
export interface ConversationTiming {
  /** For a repository to be fetched and put into the sandbox. */
  readonly prepareWithinMs: number;
  /** For the microagents of a repository. */
  readonly listWithinMs: number;
  /** From a request to cancel a turn until the agent that does not heed it is ended. */
  readonly cancelWithinMs: number;
  /** Between two notes of progress in `status_detail`. */
  readonly progressEveryMs: number;
}

export const defaultTiming: ConversationTiming = {
  prepareWithinMs: 30 * 60_000,
  listWithinMs: 2 * 60_000,
  cancelWithinMs: 10_000,
  progressEveryMs: 1000,
};
