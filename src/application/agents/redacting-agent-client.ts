import type { AgentClient, AgentPermission, AgentUpdate } from '../../ports/agent-protocol.ts';
import type { SecretRedactor } from './secret-redactor.ts';

type Chunk = Extract<AgentUpdate, { kind: 'message_chunk' }>;

/**
 * Hands on what an agent says without the secrets that it knows, also where the parts of a message cut one in two. It
 * listens only while somebody has a turn with the agent.
 */
export class RedactingAgentClient implements AgentClient {
  readonly #scrubber: SecretRedactor;
  #listener: AgentClient | null = null;
  #held: Chunk | null = null;

  constructor(scrubber: SecretRedactor) {
    this.#scrubber = scrubber;
  }

  /** Hands everything to the listener until the work has ended. */
  async during<T>(listener: AgentClient, work: () => Promise<T>): Promise<T> {
    this.#listener = listener;
    try {
      const result = await work();
      await this.#release();
      return result;
    } finally {
      this.#listener = null;
      this.#held = null;
    }
  }

  async update(update: AgentUpdate): Promise<void> {
    if (update.kind !== 'message_chunk') {
      await this.#release();
      await this.#listener?.update(this.#scrubber.data(update));
      return;
    }
    if (this.#held !== null && (this.#held.channel !== update.channel || this.#held.messageId !== update.messageId)) await this.#release();
    const { said, held } = this.#scrubber.partial((this.#held?.text ?? '') + update.text);
    this.#held = held === '' ? null : { ...update, text: held };
    if (said !== '') await this.#listener?.update({ ...update, text: said });
  }

  async permission(request: AgentPermission, signal: AbortSignal): Promise<string | null> {
    await this.#release();
    const { options, ...shown } = request;
    const names = options.map(({ name }) => this.#scrubber.text(name));
    // What the agent knows its options by goes back to it, and stays as it is.
    const clean = { ...this.#scrubber.data(shown), options: options.map((option, index) => ({ ...option, name: names[index] ?? '' })) };
    return (await this.#listener?.permission(clean, signal)) ?? null;
  }

  async #release(): Promise<void> {
    const held = this.#held;
    this.#held = null;
    if (held !== null) await this.#listener?.update({ ...held, text: this.#scrubber.text(held.text) });
  }
}
