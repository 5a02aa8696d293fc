import type { Control, OutputPart } from './attachment-messages.ts';
import type { ClientSocket, Connection } from './connection.ts';
import { deferred, Watchdog } from './waiting.ts';

/** The server sends at most this many bytes of output that are not confirmed, because a WebSocket can't slow down the server. */
export const outputWindowBytes = 4 << 20;
const confirmedBytes = outputWindowBytes / 4;
/** How much input may be sent that the server has not passed on. Beyond it, the server would read nothing more, also no confirmations. */
const inputWindowBytes = 1 << 20;

interface Handlers {
  /** Closes the socket when it fires. */
  readonly signal: AbortSignal | undefined;
  /** Returns the output that a binary message contains. */
  readonly output: (bytes: ArrayBuffer) => OutputPart;
  /** Handles a control message. If it throws, the socket is closed, and reading its output throws the error. */
  readonly control: (control: Control) => void;
}

/** One WebSocket to an execution. It is also closed if the server is silent for too long. */
export class AttachmentSocket {
  /** Resolves with true when it opens, with false if it is closed before. */
  readonly opened: Promise<boolean>;
  readonly #closing = new AbortController();
  readonly #socket: ClientSocket;
  readonly #handlers: Handlers;
  readonly #watch: Watchdog;
  readonly #silenceMs: number;
  /** Output that has arrived and is not read yet. */
  readonly #parts: OutputPart[] = [];
  #waitingInputBytes = 0;
  #failure: unknown = null;
  /** Resolves when output arrives, when input was passed on, and when the socket is closed. */
  #changed = deferred<void>();

  constructor(address: string, { connectMs, silenceMs, options: { openSocket } }: Connection, handlers: Handlers) {
    this.#handlers = handlers;
    this.#silenceMs = silenceMs;
    this.#watch = new Watchdog(handlers.signal);
    const socket: ClientSocket = openSocket === undefined ? new WebSocket(address) : openSocket(address);
    socket.binaryType = 'arraybuffer';
    this.#socket = socket;
    const { promise, resolve } = deferred<boolean>();
    this.opened = promise;
    const close = (): void => this.close();
    socket.addEventListener('open', () => resolve(true));
    socket.addEventListener('message', ({ data }) => this.#receive(data));
    // A close event follows.
    socket.addEventListener('error', () => {});
    socket.addEventListener('close', close);
    this.closed.addEventListener('abort', () => resolve(false));
    this.#watch.signal.addEventListener('abort', close, { signal: this.closed });
    this.#watch.restart('connect', connectMs);
  }

  /** Fires when the socket is closed, by either side. */
  get closed(): AbortSignal {
    return this.#closing.signal;
  }

  close(): void {
    if (this.closed.aborted) return;
    this.#closing.abort();
    this.#watch.stop();
    this.#socket.close();
    this.#noteChange();
  }

  /** Yields the output that arrives, and confirms what was read. Ends when the socket is closed, and closes it if the reader leaves. */
  async *output(): AsyncGenerator<OutputPart, void> {
    let unconfirmedBytes = 0;
    try {
      for (;;) {
        for (let part = this.#parts.shift(); part !== undefined; part = this.#parts.shift()) {
          yield part;
          unconfirmedBytes += part.bytes.length;
          if (unconfirmedBytes < confirmedBytes) continue;
          this.send({ read: unconfirmedBytes });
          unconfirmedBytes = 0;
        }
        if (this.closed.aborted) break;
        await this.#changed.promise;
      }
    } finally {
      this.close();
    }
    if (this.#failure !== null) throw this.#failure;
  }

  send(control: object): void {
    this.#socket.send(JSON.stringify(control));
  }

  /** Sends input when the server has passed on enough of what was sent before, or the socket is closed. */
  async sendInput(bytes: Uint8Array<ArrayBuffer>): Promise<void> {
    while (!this.closed.aborted && this.#waitingInputBytes >= inputWindowBytes) await this.#changed.promise;
    this.#waitingInputBytes += bytes.length;
    this.#socket.send(bytes);
  }

  #receive(data: unknown): void {
    if (this.closed.aborted) return;
    this.#watch.restart('silence', this.#silenceMs);
    try {
      if (data instanceof ArrayBuffer) this.#parts.push(this.#handlers.output(data));
      else this.#handle(JSON.parse(String(data)) as Control);
      this.#noteChange();
    } catch (error) {
      this.#failure = error;
      this.close();
    }
  }

  #handle(control: Control): void {
    if (control.passed === undefined) this.#handlers.control(control);
    else this.#waitingInputBytes -= control.passed;
  }

  #noteChange(): void {
    this.#changed.resolve();
    this.#changed = deferred();
  }
}
