import type { Conversation, Message, QueuedMessage } from '../../../domain/conversation.ts';
import type { Sandbox } from '../../../domain/sandbox.ts';
import type { LiveAgent } from '../../agents/live-agent.ts';
import type { StepDeps } from '../conversation-reconciler.ts';
import { keepAfterTurn } from '../kept-changes.ts';
import { Turn } from './turn.ts';

/** How often a first message may have been put back into the queue. */
const maxRequeued = 20;

/** The turns that run in this process, at most one for each conversation. */
export class Turns {
  readonly #deps: StepDeps;
  /** Agents whose session knows the repository's microagents. */
  readonly #introduced = new WeakSet<LiveAgent>();
  readonly #running = new Map<string, Turn>();

  constructor(deps: StepDeps) {
    this.#deps = deps;
  }

  /** Runs a turn. Does nothing if the message is not (any more) the next. Rejects if the store fails. */
  async run(conversation: Conversation, sandbox: Sandbox, queued: QueuedMessage, agent: LiveAgent, signal: AbortSignal): Promise<void> {
    const message = await this.#introduce(conversation, agent, queued.message);
    const from = await this.#deps.events.latest();
    const turn = new Turn(this.#deps, { conversation, sandbox, queued, agent, from, signal });
    this.#running.set(conversation.id, turn);
    try {
      await turn.run(message);
    } finally {
      this.#running.delete(conversation.id);
      if (turn.prompted) this.#introduced.add(agent);
    }
    // Before the next turn, so that they are those of this one.
    if (turn.prompted) await keepAfterTurn(this.#deps, conversation, signal);
  }

  get(conversationId: string): Turn | undefined {
    return this.#running.get(conversationId);
  }

  /** Puts the microagents' paths before the first message of each agent session. The log shows the message as the user wrote it. */
  async #introduce(conversation: Conversation, agent: LiveAgent, message: Message): Promise<Message> {
    const { id, ownerId, microagents } = conversation;
    if (microagents === null || microagents.length === 0 || this.#introduced.has(agent)) return message;
    // A session can be opened and lost with its process before its first message.
    const turns = agent.loaded ? await this.#deps.events.read({ ownerId, conversationId: id, kinds: ['turn_ended'] }, 0, maxRequeued) : [];
    if (turns.some(({ reason }) => reason?.code !== 'message_requeued')) return message;
    const list = microagents.map((path) => `- ${path}`).join('\n');
    const text = `Microagents of this repository, to be read where they apply (paths from its root):\n${list}`;
    return { content: [{ type: 'text', text }, ...message.content] };
  }
}
