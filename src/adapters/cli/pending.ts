/** The messages whose turn has not ended. What ends a message may come before it is known that it was taken in. */
export class PendingMessages {
  readonly #waiting = new Set<string>();
  readonly #ended = new Set<string>();

  get isEmpty(): boolean {
    return this.#waiting.size === 0;
  }

  taken(messageId: string): void {
    if (!this.#ended.has(messageId)) this.#waiting.add(messageId);
  }

  ended(messageId: string): void {
    this.#ended.add(messageId);
    this.#waiting.delete(messageId);
  }

  /** None of them is waited for any more. */
  forget(): void {
    for (const messageId of this.#waiting) this.ended(messageId);
  }
}
