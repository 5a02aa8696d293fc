import type { Conversation, Message } from '../../../domain/conversation.ts';
import type { EventStore } from '../../../ports/event-store.ts';
import type { LiveAgent } from '../../agents/live-agent.ts';

/**
 * Tells an agent of the repository's microagents, by their paths, in front of the first message of each of its sessions.
 * The log shows the message as the user wrote it.
 */
export class Introductions {
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
