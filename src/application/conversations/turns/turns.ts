import type { Conversation, QueuedMessage } from '../../../domain/conversation.ts';
import type { Sandbox } from '../../../domain/sandbox.ts';
import type { LiveAgent } from '../../agents/live-agent.ts';
import type { StepDeps } from '../conversation-reconciler.ts';
import { keepAfterTurn } from '../kept-changes.ts';
import { microagentContext } from './microagent-context.ts';
import { Turn } from './turn.ts';

/** The turns that run in this process, at most one for each conversation. */
export class Turns {
  readonly #deps: StepDeps;
  readonly #running = new Map<string, Turn>();

  constructor(deps: StepDeps) {
    this.#deps = deps;
  }

  /** Runs a turn. Does nothing if the message is not (any more) the next. Rejects if the store fails. */
  async run(conversation: Conversation, sandbox: Sandbox, queued: QueuedMessage, agent: LiveAgent, signal: AbortSignal): Promise<void> {
    const context = await microagentContext(this.#deps, conversation, queued.message, signal);
    const from = await this.#deps.events.latest();
    const turn = new Turn(this.#deps, { conversation, sandbox, queued, agent, context, from, signal });
    this.#running.set(conversation.id, turn);
    try {
      await turn.run();
    } finally {
      this.#running.delete(conversation.id);
    }
    // Before the next turn, so that they are those of this one.
    if (turn.prompted) await keepAfterTurn(this.#deps, conversation, signal);
  }

  get(conversationId: string): Turn | undefined {
    return this.#running.get(conversationId);
  }
}
