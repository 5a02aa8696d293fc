import type { Conversation, Message, QueuedMessage } from '../../../domain/conversation.ts';
import type { Sandbox } from '../../../domain/sandbox.ts';
import type { LiveAgent } from '../../agents/live-agent.ts';
import type { ConversationRecords } from '../records.ts';
import type { SandboxAccess } from '../sandbox-access.ts';
import type { ConversationTiming } from '../timing.ts';
import { Introductions } from './introductions.ts';
import { TurnPermissions } from './permissions.ts';
import { TurnRecorder, type RecorderDeps } from './recorder.ts';
import { Turn } from './turn.ts';

export interface TurnsDeps extends RecorderDeps {
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
