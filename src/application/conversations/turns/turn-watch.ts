import { isPausedAfterLastMessage } from '../../../domain/conversation-next-step.ts';
import { isUnprompted, type QueuedMessage } from '../../../domain/conversation.ts';
import { logFieldsOf } from '../../../domain/failure.ts';
import type { Sandbox } from '../../../domain/sandbox.ts';
import { KeyedWorker } from '../../keyed-worker.ts';
import { interval } from '../../timers.ts';
import type { StepDeps } from '../conversation-reconciler.ts';
import { changeConversation } from '../conversation-records.ts';
import type { TurnRecorder } from './turn-recorder.ts';
import type { TurnParams } from './turn.ts';

interface TurnWatchOptions extends Pick<TurnParams, 'conversation' | 'sandbox' | 'turn' | 'agent'> {
  readonly recorder: Pick<TurnRecorder, 'isReplaying' | 'hasOpenCalls'>;
  /** Fires when Skep has asked the agent to stop. */
  readonly stopped: AbortSignal;
  /** Called when the agent has been silent for too long, and again at later checks if the silence lasts. */
  readonly onSilent: (withinMs: number) => void;
}

/** The longest interval between two checks, if the sandbox does not change. */
const checkEveryMs = 30_000;

/** How often to check work that an agent began by itself. It is over after so many checks without output, as a model can think for long. */
const quietCheckMs = 2000;
const quietChecks = { calling: 450, working: 15, message: 2, stopped: 2 };

/**
 * Keeps the sandbox awake, shows if the turn is frozen, and reports silence. The sandbox may be frozen while the agent waits for its user.
 */
export class TurnWatch {
  readonly #deps: StepDeps;
  readonly #options: TurnWatchOptions;
  readonly #checks = new KeyedWorker(() => this.#check());
  readonly #ends = new DisposableStack();
  readonly #quiet = new AbortController();
  /** True while the agent only waits for its user. */
  #isWaiting = false;
  /** How many checks in a row found no output. */
  #quietChecks = 0;
  /** How long the agent is silent, counted in intervals, because the time of the machine may jump. Null: it sent output in this one. */
  #silentMs: number | null = null;

  constructor(deps: StepDeps, options: TurnWatchOptions) {
    this.#deps = deps;
    this.#options = options;
  }

  /** Fires when an agent that began to work by itself has been quiet for so long that its work is over. */
  get quietSignal(): AbortSignal {
    return this.#quiet.signal;
  }

  start(): void {
    const { conversationSandboxes, clock, store, runtime } = this.#deps;
    const { sandbox, turn } = this.#options;
    this.#ends.use(conversationSandboxes.keepAwakeWhile(sandbox, () => !this.#isWaiting || !runtime.capabilities.freeze));
    const turnTimeoutMs = sandbox.spec.agent?.turnTimeoutMs ?? Infinity;
    const everyMs = Math.max(100, Math.min(isUnprompted(turn) ? quietCheckMs : checkEveryMs, turnTimeoutMs / 2));
    this.#ends.use(interval(clock, everyMs, () => {
      this.#quietChecks += 1;
      this.#silentMs = this.#silentMs === null ? 0 : this.#silentMs + everyMs;
      this.check();
    }));
    this.#ends.defer(store.events.subscribe(({ sandboxIds }) => sandboxIds.has(sandbox.id) && this.check()));
  }

  noteOutput(): void {
    this.#silentMs = null;
    this.#quietChecks = 0;
  }

  /** The agent only waits for its user until the result is disposed of. Then its silence does not count. */
  waitForUser(): Disposable {
    this.#isWaiting = true;
    return {
      [Symbol.dispose]: () => {
        this.#isWaiting = false;
      },
    };
  }

  /** Resumes the sandbox, because its user has answered. */
  wake(): void {
    this.noteOutput();
    void this.#runLogged(async () => {
      const { conversationSandboxes, store, clock } = this.#deps;
      const { conversation, sandbox } = this.#options;
      await store.sandboxes.touch(sandbox.id, clock.now());
      if ((await conversationSandboxes.find(conversation))?.status === 'PAUSED') await conversationSandboxes.resume(conversation);
    });
  }

  check(): void {
    void this.#runLogged(() => this.#checks.run('turn'));
  }

  [Symbol.dispose](): void {
    this.#ends.dispose();
  }

  async #check(): Promise<void> {
    const { conversationSandboxes } = this.#deps;
    const { conversation, turn, agent: { process: { memory } }, onSilent } = this.#options;
    const sandbox = await conversationSandboxes.find(conversation);
    if (sandbox === null || this.#ends.disposed) return;
    const isFrozen = sandbox.status !== 'RUNNING' && sandbox.pauseKind === 'freeze';
    await this.#showFrozen(isFrozen);
    // A frozen agent has no output, and the output of a held-back agent is not read.
    if (isFrozen || this.#isWaiting || memory.isHeldBack) this.noteOutput();
    if (isUnprompted(turn)) await this.#endIfQuiet();
    if (sandbox.status === 'PAUSED' && !this.#isWaiting && (await this.#mustResume(sandbox))) {
      return await conversationSandboxes.resume(conversation);
    }
    const withinMs = sandbox.spec.agent?.turnTimeoutMs ?? Infinity;
    if (this.#silentMs !== null && this.#silentMs >= withinMs) onSilent(withinMs);
  }

  /** Returns true if a rule of Skep paused the sandbox, or if a message came after the owner or an external program froze it. */
  async #mustResume(sandbox: Sandbox): Promise<boolean> {
    if (sandbox.pausedBy?.actor === 'skep') return true;
    const queue = await this.#queue();
    return sandbox.pauseKind === 'freeze' && queue.length > 0 && !isPausedAfterLastMessage(sandbox, queue);
  }

  /** No protocol reports the end of work that an agent began by itself. If this ends it too early, more output begins the next turn. */
  async #endIfQuiet(): Promise<void> {
    const state = await this.#unpromptedState();
    if (this.#quietChecks >= quietChecks[state]) this.#quiet.abort();
  }

  async #unpromptedState(): Promise<keyof typeof quietChecks> {
    const { recorder, stopped } = this.#options;
    if (stopped.aborted) return 'stopped';
    if (recorder.hasOpenCalls) return 'calling';
    const queue = await this.#queue();
    return queue.length > 0 && !recorder.isReplaying ? 'message' : 'working';
  }

  async #queue(): Promise<readonly QueuedMessage[]> {
    return (await this.#deps.store.conversations.find(this.#options.conversation.id))?.queue ?? [];
  }

  async #showFrozen(isFrozen: boolean): Promise<void> {
    const { conversation: { id }, turn: { messageId } } = this.#options;
    const [from, to] = isFrozen ? (['running', 'frozen'] as const) : (['frozen', 'running'] as const);
    await changeConversation(this.#deps, id, ({ turn, permission, executionStatus }) =>
      turn?.messageId === messageId && permission === null && executionStatus === from
        ? { to: { executionStatus: to }, actor: 'skep', reason: null }
        : null,
    );
  }

  /** Only logs an error. After an outage of the store or the runtime, or a reached limit, the next check tries again. */
  async #runLogged(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      const { id: conversation } = this.#options.conversation;
      this.#deps.logger.warn({ conversation, ...logFieldsOf(error) }, 'the sandbox of a turn could not be checked');
    }
  }
}
