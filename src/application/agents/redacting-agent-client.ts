import type { AgentClient, AgentPermission, AgentUpdate } from '../../ports/agent-protocol.ts';
import type { SecretRedactor } from '../secrets.ts';

type Chunk = Extract<AgentUpdate, { kind: 'message_chunk' }>;

/** What a turn takes from its agent. */
export type TurnClient = Omit<AgentClient, 'onUnpromptedWork'>;

/** Redacts a secret even if it is split over two chunks of a message. Passes updates on only while a turn runs. */
export class RedactingAgentClient implements AgentClient {
  /** True if the agent has begun to work without a message, and no turn has taken that work. */
  hasUnpromptedWork = false;
  #unpromptedWork = Promise.withResolvers<void>();
  readonly #redactor: SecretRedactor;
  readonly #onUnpromptedWork: () => void;
  #listener: TurnClient | null = null;
  #held: Chunk | null = null;

  constructor(redactor: SecretRedactor, onUnpromptedWork: () => void) {
    this.#redactor = redactor;
    this.#onUnpromptedWork = onUnpromptedWork;
  }

  /** Resolves when the agent begins to work without a message. */
  get unpromptedWork(): Promise<void> {
    return this.#unpromptedWork.promise;
  }

  /** Passes everything to the listener until the work has ended. */
  async withListener<T>(listener: TurnClient, work: () => Promise<T>): Promise<T> {
    this.#listener = listener;
    this.hasUnpromptedWork = false;
    this.#unpromptedWork = Promise.withResolvers();
    try {
      const result = await work();
      await this.#flush();
      return result;
    } finally {
      this.#listener = null;
      this.#held = null;
    }
  }

  async update(update: AgentUpdate): Promise<void> {
    if (update.kind !== 'message_chunk') {
      await this.#flush();
      await this.#listener?.update(this.#redactor.redactJson(update));
      return;
    }
    if (this.#held !== null && (this.#held.channel !== update.channel || this.#held.messageId !== update.messageId)) await this.#flush();
    const { safe, held } = this.#redactor.redactChunk((this.#held?.text ?? '') + update.text);
    this.#held = held === '' ? null : { ...update, text: held };
    if (safe !== '') await this.#listener?.update({ ...update, text: safe });
  }

  async permission(request: AgentPermission, signal: AbortSignal): Promise<string | null> {
    await this.#flush();
    const { options, ...shown } = request;
    // The agent gets the id of an option back, so ids stay as they are.
    const redacted = options.map((option) => ({ ...option, name: this.#redactor.redactText(option.name) }));
    return (await this.#listener?.permission({ ...this.#redactor.redactJson(shown), options: redacted }, signal)) ?? null;
  }

  onUnpromptedWork(): void {
    this.hasUnpromptedWork = true;
    this.#unpromptedWork.resolve();
    this.#onUnpromptedWork();
  }

  async #flush(): Promise<void> {
    const held = this.#held;
    this.#held = null;
    if (held !== null) await this.#listener?.update({ ...held, text: this.#redactor.redactText(held.text) });
  }
}
