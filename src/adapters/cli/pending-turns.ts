/** The accepted messages whose turn has not ended. */
export class PendingTurns {
  readonly #pending = new Set<string>();
  /** Messages whose turn has ended. The event may come before the response that accepts the message. */
  readonly #ended = new Set<string>();

  get count(): number {
    return this.#pending.size;
  }

  add(messageId: string): void {
    if (!this.#ended.has(messageId)) this.#pending.add(messageId);
  }

  end(messageId: string): void {
    this.#ended.add(messageId);
    this.#pending.delete(messageId);
  }

  endAll(): void {
    for (const messageId of this.#pending) this.end(messageId);
  }
}
