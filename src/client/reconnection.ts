import type { Connection } from './connection.ts';
import { isTemporary, type SkepError } from './failures.ts';
import { Backoff } from './waiting.ts';

export interface FollowOptions {
  readonly signal?: AbortSignal | undefined;
  /** How long to try to connect again, in milliseconds; instead of the client's own. `Infinity`: until the signal fires. */
  readonly reconnectForMs?: number | undefined;
  /** Called when the second attempt to connect again has failed. The attempts go on. */
  readonly onLost?: ((failure: SkepError) => void) | undefined;
}

/** When to connect again, and when to give up. The first connection is given up as soon as a request is. */
export class Reconnection {
  readonly #options: FollowOptions;
  readonly #forMs: number;
  #backoff: Backoff;
  #wasOpen = false;

  constructor(connection: Connection, options: FollowOptions) {
    this.#options = options;
    this.#forMs = options.reconnectForMs ?? connection.reconnectForMs;
    this.#backoff = new Backoff(connection.retryForMs);
  }

  /** Call it when there is a connection. */
  succeeded(): void {
    this.#wasOpen = true;
    this.#backoff = new Backoff(this.#forMs);
  }

  /** Resolves when the next attempt is due. Throws the error if there is none, or the signal's reason. */
  async wait(error: unknown): Promise<void> {
    const { signal, onLost } = this.#options;
    signal?.throwIfAborted();
    if (!isTemporary(error)) throw error;
    if (this.#wasOpen && this.#backoff.attempts === 1) onLost?.(error);
    await this.#backoff.wait(error, signal);
  }
}
