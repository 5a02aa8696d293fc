import type { ClientSocket } from './connection.ts';
import { deferred } from './waiting.ts';

/** How much input may be sent that the server has not passed on. Beyond it, the server would read nothing more, also no confirmations. */
const windowBytes = 1 << 20;

/** The input of one WebSocket to an execution. The server confirms what it has passed on, because a WebSocket does not report that. */
export class SocketInput {
  readonly socket: ClientSocket;
  #waitingBytes = 0;
  #isClosed = false;
  #changed = deferred<void>();

  constructor(socket: ClientSocket) {
    this.socket = socket;
  }

  /** Sends a part when the server has passed on enough of what was sent before, or the socket is closed. */
  async send(bytes: Uint8Array<ArrayBuffer>): Promise<void> {
    while (!this.#isClosed && this.#waitingBytes >= windowBytes) await this.#changed.promise;
    this.#waitingBytes += bytes.length;
    this.socket.send(bytes);
  }

  passed(bytes: number): void {
    this.#waitingBytes -= bytes;
    this.#changed.resolve();
    this.#changed = deferred();
  }

  close(): void {
    this.#isClosed = true;
    this.#changed.resolve();
    this.socket.close();
  }
}
