import type { Connection } from './connection.ts';
import { isTemporary, type SkepError } from './failures.ts';
import { Backoff } from './backoff.ts';

export interface FollowOptions {
  readonly signal?: AbortSignal | undefined;
  /** How long to reconnect, in milliseconds. Replaces the client's own value. `Infinity`: until the signal fires. */
  readonly reconnectForMs?: number | undefined;
  /** Called when the second attempt to reconnect has failed. The attempts continue. */
  readonly onLost?: ((failure: SkepError) => void) | undefined;
}

/** Decides when to reconnect and when to give up. Before the server has answered, the time limit is that of a request. */
export class Reconnection {
  readonly #options: FollowOptions;
  readonly #limitMs: number;
  /** Null after a success: the time limit begins when the connection is lost, not when it was opened. */
  #backoff: Backoff | null;
  #wasOpen = false;

  constructor(connection: Connection, options: FollowOptions) {
    this.#options = options;
    this.#limitMs = options.reconnectForMs ?? connection.reconnectForMs;
    this.#backoff = new Backoff(connection.retryForMs);
  }

  /** To be called after each successful connection, and at the start if the server has answered before. */
  succeeded(): void {
    this.#wasOpen = true;
    this.#backoff = null;
  }

  /** Resolves when the next attempt is due. Throws the error if there is no next attempt, or the signal's reason. */
  async wait(error: unknown): Promise<void> {
    const { signal, onLost } = this.#options;
    signal?.throwIfAborted();
    if (!isTemporary(error)) throw error;
    this.#backoff ??= new Backoff(this.#limitMs);
    if (this.#wasOpen && this.#backoff.attempts === 1) onLost?.(error);
    await this.#backoff.wait(error, signal);
  }
}
