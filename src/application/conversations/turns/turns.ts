import type { TurnStopReason } from '../../../domain/agent.ts';
import { statusAfterTurn } from '../../../domain/conversation-next-step.ts';
import type { Conversation, Message, QueuedMessage } from '../../../domain/conversation.ts';
import type { EventActor, EventBody } from '../../../domain/event.ts';
import type { Reason } from '../../../domain/reason.ts';
import type { Sandbox } from '../../../domain/sandbox.ts';
import type { AgentTurn } from '../../../ports/agent-protocol.ts';
import type { EventStore } from '../../../ports/event-store.ts';
import type { LiveAgent } from '../../agents/live-agent.ts';
import type { Changed } from '../conversation-records.ts';
import type { StepDeps } from '../conversation-reconciler.ts';
import { TurnPermissions } from './turn-permissions.ts';
import { TurnRecorder } from './turn-recorder.ts';

/** The turns that run in this process, at most one for each conversation. */
export class Turns {
  readonly #deps: StepDeps;
  readonly #introductions: Introductions;
  readonly #running = new Map<string, Turn>();

  constructor(deps: StepDeps) {
    this.#deps = deps;
    this.#introductions = new Introductions(deps.events);
  }

  /**
   * Runs a turn and keeps the sandbox awake meanwhile, also while the owner is asked for permission. Does nothing if the
   * message is not (any more) the next. Rejects if the store fails.
   */
  async run(conversation: Conversation, sandbox: Sandbox, queued: QueuedMessage, agent: LiveAgent, signal: AbortSignal): Promise<void> {
    const message: Message = await this.#introductions.introduce(conversation, agent, queued.message);
    const turn = new Turn(this.#deps, { conversation, sandbox, queued, agent });
    this.#running.set(conversation.id, turn);
    try {
      await turn.run(message, signal);
    } finally {
      this.#running.delete(conversation.id);
    }
  }

  /** Asks the agent to stop the conversation's turn, if one runs here. */
  cancel(conversationId: string): void {
    this.#running.get(conversationId)?.cancel();
  }

  /** Passes on the owner's choice, which is written already. */
  answered(conversationId: string, permissionId: string, optionId: string): void {
    this.#running.get(conversationId)?.permissions.answered(permissionId, optionId);
  }
}

/**
 * Puts the paths of the repository's microagents in front of the first message of each agent session. The log shows the
 * message as the user wrote it.
 */
class Introductions {
  readonly #events: EventStore;
  readonly #introduced = new WeakSet<LiveAgent>();

  constructor(events: EventStore) {
    this.#events = events;
  }

  /** Returns the message for the agent. */
  async introduce(conversation: Conversation, agent: LiveAgent, message: Message): Promise<Message> {
    const { microagents } = conversation;
    if (microagents === null || microagents.length === 0 || this.#introduced.has(agent)) return message;
    const known = agent.loaded && (await this.#hadTurns(conversation));
    this.#introduced.add(agent);
    if (known) return message;
    const list = microagents.map((path) => `- ${path}`).join('\n');
    const text = `Microagents of this repository, to be read where they apply (paths from its root):\n${list}`;
    return { content: [{ type: 'text', text }, ...message.content] };
  }

  /** A session can be opened and lost with its process before its first turn. */
  async #hadTurns({ id, ownerId }: Conversation): Promise<boolean> {
    return (await this.#events.read({ ownerId, conversationId: id, kinds: ['turn_started'] }, 0, 1)).length > 0;
  }
}

/** What a turn is about. */
interface TurnOf {
  readonly conversation: Conversation;
  readonly sandbox: Sandbox;
  readonly queued: QueuedMessage;
  readonly agent: LiveAgent;
}

/**
 * A turn of an agent. The message leaves the queue in a write before it is sent, and is never put back: it is sent at most
 * once.
 */
class Turn {
  readonly permissions: TurnPermissions;
  readonly #deps: StepDeps;
  readonly #of: TurnOf;
  readonly #recorder: TurnRecorder;
  readonly #withdrawn = new AbortController();
  #cancelled = false;
  #prompted = false;
  #stopTimeout: () => void = () => {};

  constructor(deps: StepDeps, of: TurnOf) {
    this.#deps = deps;
    this.#of = of;
    this.#recorder = new TurnRecorder(deps, of.conversation);
    this.permissions = new TurnPermissions(deps, of.conversation, this.#recorder);
  }

  /** Asks the agent to stop, and ends the agent if it does not. Idempotent. */
  cancel(): void {
    if (this.#cancelled) return;
    this.#cancelled = true;
    this.#withdrawn.abort();
    if (!this.#prompted) return;
    const { clock, timing } = this.#deps;
    const { agent } = this.#of;
    this.#stopTimeout = clock.after(timing.cancelWithinMs, () => void agent.kill());
    agent.cancel().catch(() => {});
  }

  /**
   * Takes the message out of the queue, sends it, and resolves when the end of the turn is written. When the signal fires, the
   * agent is ended, and the turn with it. Rejects if the store fails.
   */
  async run(message: Message, signal: AbortSignal): Promise<void> {
    if (await this.#dequeue()) await this.#end(await this.#prompt(message, signal));
  }

  async #dequeue(): Promise<boolean> {
    const { conversation, queued } = this.#of;
    const { messageId } = queued;
    const written = await this.#deps.records.change(conversation.id, ({ deletedAt, turn, queue }) =>
      deletedAt !== null || turn !== null || queue[0]?.messageId !== messageId
        ? null
        : {
            to: { turn: queued, queue: queue.slice(1), executionStatus: 'running', statusReason: null },
            actor: 'skep',
            reason: null,
            events: [{ kind: 'turn_started', data: { messageId } }],
          },
    );
    return written !== null;
  }

  async #prompt(message: Message, signal: AbortSignal): Promise<AgentTurn> {
    const { agent, sandbox } = this.#of;
    if (this.#cancelled) return { stopReason: 'cancelled', reason: null };
    if (signal.aborted) return { stopReason: 'interrupted', reason: null };
    const kill = (): void => void agent.kill();
    signal.addEventListener('abort', kill, { once: true });
    this.#prompted = true;
    // The agent gets the message before anything else is done.
    const prompting = agent.prompt(message, {
      update: (update) => this.#recorder.record(update),
      permission: (request, withdrawn) => this.permissions.ask(request, AbortSignal.any([withdrawn, this.#withdrawn.signal])),
    });
    const stopKeepingAwake = this.#deps.access.keepAwake(sandbox);
    try {
      const ended = await prompting;
      this.#withdrawn.abort();
      await this.#recorder.finish();
      if (signal.aborted) return { stopReason: 'interrupted', reason: { code: 'interrupted_by_shutdown' } };
      // Also an agent that had to be ended, or that reported the request as an error, was cancelled.
      return this.#cancelled && statusAfterTurn(ended.stopReason) === 'error' ? { ...ended, stopReason: 'cancelled' } : ended;
    } catch (error) {
      // What the agent says can't be written, so it must not go on.
      await agent.kill();
      throw error;
    } finally {
      stopKeepingAwake();
      this.#stopTimeout();
      signal.removeEventListener('abort', kill);
    }
  }

  async #end({ stopReason, reason }: AgentTurn): Promise<void> {
    const { conversation, queued } = this.#of;
    const actor = stopReason === 'cancelled' ? 'user' : stopReason === 'interrupted' ? 'skep' : 'agent';
    await this.#deps.records.change(conversation.id, ({ turn, permission }) =>
      turn?.messageId === queued.messageId ? endOfTurn({ turn, permission }, stopReason, reason, actor) : null,
    );
  }
}

interface RunningTurn {
  readonly turn: QueuedMessage;
  readonly permission: Conversation['permission'];
}

/** Returns the change of the record at the end of a turn. An open request for permission is withdrawn. */
export function endOfTurn(running: RunningTurn, stopReason: TurnStopReason, reason: Reason | null, actor: EventActor): Changed {
  const executionStatus = statusAfterTurn(stopReason);
  const statusReason = executionStatus === 'error' ? (reason ?? ({ code: 'turn_failed', stopReason } as const)) : null;
  return { to: { turn: null, permission: null, executionStatus, statusReason }, actor, reason, events: turnEnded(running, stopReason) };
}

/** Returns the events of the end of a turn. */
export function turnEnded({ turn, permission }: RunningTurn, stopReason: TurnStopReason): EventBody[] {
  const withdrawn: EventBody[] =
    permission === null ? [] : [{ kind: 'permission_answered', data: { permissionId: permission.permissionId, optionId: null } }];
  return [...withdrawn, { kind: 'turn_ended', data: { messageId: turn.messageId, stopReason } }];
}
