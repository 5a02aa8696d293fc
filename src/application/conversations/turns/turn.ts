import type { TurnStopReason } from '../../../domain/agent.ts';
import { statusAfterTurn } from '../../../domain/conversation-next-step.ts';
import type { Conversation, Message, QueuedMessage } from '../../../domain/conversation.ts';
import type { EventActor, EventBody } from '../../../domain/event.ts';
import type { AgentTurn } from '../../../ports/agent-protocol.ts';
import type { LiveAgent } from '../../agents/live-agent.ts';
import type { Changed, ConversationRecords } from '../conversation-records.ts';
import type { TurnPermissions } from './turn-permissions.ts';
import type { TurnRecorder } from './turn-recorder.ts';

interface TurnDeps {
  readonly conversation: Conversation;
  readonly queued: QueuedMessage;
  readonly agent: LiveAgent;
  readonly records: ConversationRecords;
  readonly recorder: TurnRecorder;
  readonly permissions: TurnPermissions;
  /** Begins to count when the turn is cancelled; answers with the function that ends it. */
  readonly afterPatience: (callback: () => void) => () => void;
  /** Keeps the sandbox from being put to rest; answers with the function that ends it. */
  readonly keepAwake: () => () => void;
}

/**
 * A turn of an agent. The message leaves the queue in a write before it is handed over, and is never put back: it is
 * handed over at most once.
 */
export class Turn {
  readonly #deps: TurnDeps;
  readonly #withdrawn = new AbortController();
  #cancelled = false;
  #prompted = false;
  #calm: () => void = () => {};

  constructor(deps: TurnDeps) {
    this.#deps = deps;
  }

  /** Asks the agent to leave off, and ends it where it does not. Idempotent. */
  cancel(): void {
    if (this.#cancelled) return;
    this.#cancelled = true;
    this.#withdrawn.abort();
    if (!this.#prompted) return;
    const { agent, afterPatience } = this.#deps;
    this.#calm = afterPatience(() => void agent.kill());
    agent.cancel().catch(() => {});
  }

  answered(permissionId: string, optionId: string): void {
    this.#deps.permissions.answered(permissionId, optionId);
  }

  /**
   * Takes the message out of the queue, hands it over and answers when the turn has ended and that is written down. When
   * the signal fires, the agent is ended, and the turn with it. Rejects where the store fails.
   */
  async run(message: Message, signal: AbortSignal): Promise<void> {
    if (await this.#take()) await this.#end(await this.#prompt(message, signal));
  }

  async #take(): Promise<boolean> {
    const { conversation, queued, records } = this.#deps;
    const { messageId } = queued;
    const taken = await records.change(conversation.id, ({ deletedAt, turn, queue }) =>
      deletedAt !== null || turn !== null || queue[0]?.messageId !== messageId
        ? null
        : {
            to: { turn: queued, queue: queue.slice(1), executionStatus: 'running', statusDetail: null },
            actor: 'skep',
            reason: null,
            events: [{ kind: 'turn_started', data: { messageId } }],
          },
    );
    return taken !== null;
  }

  async #prompt(message: Message, signal: AbortSignal): Promise<AgentTurn> {
    const { agent, recorder, permissions, keepAwake } = this.#deps;
    if (this.#cancelled || signal.aborted) return { stopReason: this.#cancelled ? 'cancelled' : 'interrupted', detail: null };
    const kill = (): void => void agent.kill();
    signal.addEventListener('abort', kill, { once: true });
    this.#prompted = true;
    // The agent has the message before anything else is done.
    const prompting = agent.prompt(message, {
      update: (update) => recorder.take(update),
      permission: (request, withdrawn) => permissions.ask(request, AbortSignal.any([withdrawn, this.#withdrawn.signal])),
    });
    const rest = keepAwake();
    try {
      const ended = await prompting;
      this.#withdrawn.abort();
      await recorder.finish();
      if (signal.aborted) return { stopReason: 'interrupted', detail: 'Skep was shut down in the midst of it' };
      // An agent that was ended because it did not heed the request, or took it as an error, was cancelled all the same.
      return this.#cancelled && statusAfterTurn(ended.stopReason) === 'error' ? { ...ended, stopReason: 'cancelled' } : ended;
    } catch (error) {
      // What it says can't be written down, so it is not to go on.
      await agent.kill();
      throw error;
    } finally {
      rest();
      this.#calm();
      signal.removeEventListener('abort', kill);
    }
  }

  async #end({ stopReason, detail }: AgentTurn): Promise<void> {
    const { conversation, queued, records } = this.#deps;
    const actor = stopReason === 'cancelled' ? 'user' : stopReason === 'interrupted' ? 'skep' : 'agent';
    await records.change(conversation.id, ({ turn, permission }) =>
      turn?.messageId === queued.messageId ? endOfTurn({ turn, permission }, stopReason, detail, actor) : null,
    );
  }
}

/** How the end of a turn is written down: what it still asked leave for is withdrawn. */
export function endOfTurn(
  { turn, permission }: { readonly turn: QueuedMessage; readonly permission: Conversation['permission'] },
  stopReason: TurnStopReason,
  reason: string | null,
  actor: EventActor,
): Changed {
  return {
    to: { turn: null, permission: null, executionStatus: statusAfterTurn(stopReason), statusDetail: statusAfterTurn(stopReason) === 'error' ? (reason ?? `the turn ended: ${stopReason}`) : null },
    actor,
    reason,
    events: turnEnded({ turn, permission }, stopReason),
  };
}

/** What the log tells of the end of a turn. */
export function turnEnded(
  { turn, permission }: { readonly turn: QueuedMessage; readonly permission: Conversation['permission'] },
  stopReason: TurnStopReason,
): EventBody[] {
  const withdrawn: EventBody[] = permission === null ? [] : [{ kind: 'permission_answered', data: { permissionId: permission.permissionId, optionId: null } }];
  return [...withdrawn, { kind: 'turn_ended', data: { messageId: turn.messageId, stopReason } }];
}
