import type { AnyMessage } from '@agentclientprotocol/sdk';

const maxOpenRequests = 64;

/** What is open between the two sides: requests of theirs that are not answered yet, and ours. */
export class Intake {
  readonly #asked = new Map<string | number, string>();
  #open = 0;
  #waiting: (() => void) | null = null;

  /** Waits while the other side has too many requests open: it would make us hold the answers that it does not read. */
  async enter(): Promise<void> {
    while (this.#open >= maxOpenRequests) {
      await new Promise<void>((resolve) => {
        this.#waiting = resolve;
      });
    }
    this.#open += 1;
  }

  /** To be told of a message before it is sent. */
  sending(message: AnyMessage): void {
    if ('method' in message && 'id' in message && message.id !== null) this.#asked.set(message.id, message.method);
  }

  /** To be told of the same message when it is out. */
  sent(message: AnyMessage): void {
    if ('method' in message) return;
    this.#open -= 1;
    this.#waiting?.();
  }

  /** The method that was asked under this id, once; null where nothing was. */
  answered(id: string | number): string | null {
    const method = this.#asked.get(id) ?? null;
    this.#asked.delete(id);
    return method;
  }
}
