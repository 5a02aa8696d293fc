import type { Control, ExecutionEnd, OutputPart, OutputStream } from './attachment-messages.ts';
import { AttachmentSocket, outputWindowBytes } from './attachment-socket.ts';
import { addressOf, type Connection } from './connection.ts';
import { connectionLost, isTemporary, SkepError } from './failures.ts';
import type { Execution, ExecutionSignal, TerminalSize } from './openapi.ts';
import { type FollowOptions, Reconnection } from './reconnection.ts';
import { deferred } from './waiting.ts';

export interface AttachOptions extends FollowOptions {
  /** Whether to take over from another writer. Default: input is accepted only if no other client writes. */
  readonly takeover?: boolean | undefined;
  /** Whether the command waits while its output is not read, like one that writes to a pipe. Default: output may be dropped instead. */
  readonly hold?: boolean | undefined;
  /** Called when this client becomes the writer, or another one does. At the start, it is expected to be the writer. */
  readonly onWriter?: ((isWriter: boolean) => void) | undefined;
  /** Called when the server refuses what was sent. */
  readonly onRefused?: ((message: string) => void) | undefined;
}

const one = '/api/v1/sandboxes/{id}/executions/{execution_id}';
const maxMessageBytes = 256 << 10;
/** The highest offset of the API. No output is so long. */
const maxOffset = 999_999_999_999_999;
/** After so many refusals in a row by a server that answers, the client gives up. One can be chance: the server may have restarted. */
const maxRefusals = 3;

/**
 * A client that is attached to an execution by a WebSocket. The WebSocket is open while the output is iterated. After a lost connection it
 * reconnects and continues at the same byte. Input that was on its way may be lost, so input that must arrive completely fails instead.
 */
export class Attachment implements AsyncIterable<OutputPart> {
  /** How the execution ended; null while it runs. */
  end: ExecutionEnd | null = null;
  readonly #connection: Connection;
  readonly #execution: Execution;
  readonly #options: AttachOptions;
  readonly #offsets: Partial<Record<OutputStream, number>> = {};
  #stream: OutputStream = 'stdout';
  #isWriter = true;
  /** True from the first input until the server confirms that it has passed on all of it and closed the input. */
  #hasInputOnItsWay = false;
  /** The open socket. Pending until there is one, rejected after an iteration. */
  #socket = deferred<AttachmentSocket>();
  /** Whether an iteration has ended. */
  #isLeft = false;

  constructor(connection: Connection, execution: Execution, options: AttachOptions = {}) {
    this.#connection = connection;
    this.#execution = execution;
    this.#options = options;
  }

  /** Yields the output, each byte once, until the execution ends. Throws a {@link SkepError}. Input that waits then fails. */
  async *[Symbol.asyncIterator](): AsyncGenerator<OutputPart, void> {
    if (this.#isLeft) [this.#isLeft, this.#socket] = [false, deferred()];
    let reason: unknown = connectionLost('The client is not attached any more.');
    try {
      yield* this.#follow();
    } catch (error) {
      reason = error;
      throw error;
    } finally {
      this.#isLeft = true;
      this.#socket.reject(reason);
    }
  }

  async *#follow(): AsyncGenerator<OutputPart, void> {
    const reconnection = new Reconnection(this.#connection, this.#options);
    // The server has returned the execution.
    reconnection.succeeded();
    let refusals = 0;
    for (;;) {
      let error: unknown = connectionLost();
      try {
        const socket = await this.#connect();
        if (await socket.opened) {
          reconnection.succeeded();
          refusals = 0;
          this.#sendInputBy(socket);
          yield* socket.output();
          if (this.end !== null) return;
        } else {
          error = await this.#refusal();
          refusals += 1;
        }
      } catch (caught) {
        error = caught;
      }
      this.#options.signal?.throwIfAborted();
      if (refusals === maxRefusals || !isTemporary(error)) throw error;
      // In a terminal, a person sees what arrived.
      if (this.#hasInputOnItsWay && !this.#execution.tty) throw this.#inputLost();
      await reconnection.wait(error);
    }
  }

  /** Input goes to this socket until it is closed. Later input waits for the next one. */
  #sendInputBy(socket: AttachmentSocket): void {
    if (socket.closed.aborted) return;
    this.#socket.resolve(socket);
    socket.closed.addEventListener('abort', () => (this.#socket = deferred()));
  }

  /** Sends input. Resolves when more can be sent. */
  async write(content: string | Uint8Array): Promise<void> {
    const bytes = typeof content === 'string' ? new TextEncoder().encode(content) : content;
    for (let at = 0; at < bytes.length; at += maxMessageBytes) {
      const socket = await this.#socket.promise;
      this.#hasInputOnItsWay = true;
      await socket.sendInput(bytes.slice(at, at + maxMessageBytes));
    }
  }

  async closeInput(): Promise<void> {
    const socket = await this.#socket.promise;
    this.#hasInputOnItsWay = true;
    socket.send({ close_input: true });
  }

  async resize(size: TerminalSize): Promise<void> {
    await this.#send({ resize: size });
  }

  async signal(signal: ExecutionSignal['signal']): Promise<void> {
    await this.#send({ signal });
  }

  /** Makes this client the writer. */
  async takeOver(): Promise<void> {
    await this.#send({ writer: true });
  }

  async #send(control: object): Promise<void> {
    (await this.#socket.promise).send(control);
  }

  async #connect(): Promise<AttachmentSocket> {
    const { id, sandbox_id } = this.#execution;
    const { hold, signal } = this.#options;
    // A reconnect does not take over from a client that has become the writer meanwhile.
    const takeover = this.#options.takeover === true && this.#isWriter;
    const { ticket } = await this.#connection.request('GET /api/v1/events/ticket', { signal });
    const { stdout: after, stderr: after_stderr } = this.#offsets;
    const query = { after, after_stderr, ticket, takeover, hold, window: outputWindowBytes };
    const path = addressOf(`${one}/attach`, { id: sandbox_id, execution_id: id }, query);
    return new AttachmentSocket(this.#connection.url.replace(/^http/i, 'ws') + path, this.#connection, {
      signal,
      output: (bytes) => this.#partOf(bytes),
      control: (control) => this.#handle(control),
    });
  }

  /**
   * Throws the reason for a refusal. A WebSocket client does not get it, but these requests are refused for the same reason. Returns a
   * failure if they are not refused.
   */
  async #refusal(): Promise<SkepError> {
    const { id, sandbox_id } = this.#execution;
    const input = { path: { id: sandbox_id, execution_id: id }, signal: this.#options.signal };
    await (await this.#connection.open(`GET ${one}`, input)).body?.cancel();
    // The output can be dropped at each offset that the WebSocket asked for. Without an offset, it asked for what is kept.
    const asked = (['stdout', 'stderr'] as const).filter((stream) => this.#offsets[stream] !== undefined);
    for (const stream of asked.length === 0 ? (['stdout'] as const) : asked) {
      const query = { stream, after: this.#offsets[stream] ?? maxOffset };
      await (await this.#connection.open(`GET ${one}/output`, { ...input, query })).body?.cancel();
    }
    return connectionLost('The server answers, but no WebSocket opens. A proxy in front of the server may not pass WebSockets on.');
  }

  #inputLost(): SkepError {
    const { id } = this.#execution;
    return connectionLost(`The connection was lost while input was sent. The execution ${id} did not get the rest of it.`);
  }

  #partOf(data: ArrayBuffer): OutputPart {
    const stream = this.#stream;
    const offset = this.#offsets[stream] ?? 0;
    this.#offsets[stream] = offset + data.byteLength;
    return { stream, offset, bytes: new Uint8Array(data) };
  }

  #handle(control: Control): void {
    const { stream, offset = 0, writer, error, status, exit_code = null, status_detail = null } = control;
    if (stream !== undefined) this.#startStream(stream, offset);
    else if (control.input_closed === true) this.#hasInputOnItsWay = false;
    else if (error?.code === 'output_dropped') {
      throw new SkepError('output_dropped', error.detail, { context: { oldest: error.oldest ?? 0 } });
    } else if (error !== undefined && error.code !== 'input_closed') this.#options.onRefused?.(error.detail);
    else if (status !== undefined) this.end = { status, exit_code, status_detail };
    if (writer === undefined || writer === this.#isWriter) return;
    this.#isWriter = writer;
    this.#options.onWriter?.(writer);
    if (!writer) this.#options.onRefused?.('Another client writes to this execution.');
  }

  /** The following output belongs to this stream, and begins at this offset. */
  #startStream(stream: OutputStream, found: number): void {
    const expected = (this.#offsets[stream] ??= found);
    this.#stream = stream;
    if (found === expected) return;
    const message = `Output is missing: it continues at byte ${found} instead of ${expected}.`;
    throw new SkepError('gap', message, { context: { expected, found } });
  }
}
