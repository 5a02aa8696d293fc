import type { Conversation, Message, QueuedMessage } from '../../../domain/conversation.ts';
import type { Sandbox } from '../../../domain/sandbox.ts';
import type { EventStore } from '../../../ports/event-store.ts';
import type { LiveAgent } from '../../agents/live-agent.ts';
import type { ConversationRecords } from '../conversation-records.ts';
import type { SandboxAccess } from '../sandbox-access.ts';
import type { ConversationTiming } from '../start-steps.ts';
import { TurnPermissions } from './turn-permissions.ts';
import { type RecorderDeps, TurnRecorder } from './turn-recorder.ts';
import { Turn } from './turn.ts';

interface TurnsDeps extends RecorderDeps {
  readonly records: ConversationRecords;
  readonly access: SandboxAccess;
  readonly timing: ConversationTiming;
}

/** The turns that run in this process, at most one for each conversation. */
export class Turns {
  readonly #deps: TurnsDeps;
  readonly #introductions: Introductions;
  readonly #running = new Map<string, Turn>();

  constructor(deps: TurnsDeps) {
    this.#deps = deps;
    this.#introductions = new Introductions(deps.events);
  }

  /**
   * Runs a turn, and keeps the sandbox awake for it, also while its owner is asked for leave. Nothing happens where the
   * message is not (any more) the next. Rejects where the store fails.
   */
  async run(conversation: Conversation, sandbox: Sandbox, queued: QueuedMessage, agent: LiveAgent, signal: AbortSignal): Promise<void> {
    const { records, access, clock, timing } = this.#deps;
    const message: Message = await this.#introductions.introduce(conversation, agent, queued.message);
    const recorder = new TurnRecorder(this.#deps, conversation);
    const permissions = new TurnPermissions(this.#deps, conversation, records, recorder);
    const afterPatience = (callback: () => void) => clock.after(timing.cancelWithinMs, callback);
    const keepAwake = () => access.keepAwake(sandbox);
    const turn = new Turn({ conversation, queued, agent, records, recorder, permissions, afterPatience, keepAwake });
    this.#running.set(conversation.id, turn);
    try {
      await turn.run(message, signal);
    } finally {
      this.#running.delete(conversation.id);
    }
  }

  /** Asks the conversation's turn to leave off, if one runs here. */
  cancel(conversationId: string): void {
    this.#running.get(conversationId)?.cancel();
  }

  /** Hands on what the owner chose, and what is written down already. */
  answered(conversationId: string, permissionId: string, optionId: string): void {
    this.#running.get(conversationId)?.answered(permissionId, optionId);
  }
}

/**
 * Tells an agent of the repository's microagents, by their paths, in front of the first message of each of its sessions.
 * The log shows the message as the user wrote it.
 */
class Introductions {
  readonly #events: EventStore;
  readonly #introduced = new WeakSet<LiveAgent>();

  constructor(events: EventStore) {
    this.#events = events;
  }

  /** The message as the agent is to have it. */
  async introduce(conversation: Conversation, agent: LiveAgent, message: Message): Promise<Message> {
    const { microagents } = conversation;
    if (microagents === null || microagents.length === 0 || this.#introduced.has(agent)) return message;
    const known = agent.loaded && (await this.#hadTurns(conversation));
    this.#introduced.add(agent);
    if (known) return message;
    const text = `Microagents of this repository, to be read where they apply (paths from its root):\n${microagents.map((path) => `- ${path}`).join('\n')}`;
    return { content: [{ type: 'text', text }, ...message.content] };
  }

  /** A session may have been opened, and lost with its process before anything was said in it. */
  async #hadTurns({ id, ownerId }: Conversation): Promise<boolean> {
    return (await this.#events.read({ ownerId, conversationId: id, kinds: ['turn_started'] }, 0, 1)).length > 0;
  }
}
