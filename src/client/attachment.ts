import type { Control, ExecutionEnd, OutputStream } from './attachment-messages.ts';
import { partsOf } from './byte-stream.ts';
import { addressOf, type ClientSocket, type Connection } from './connection.ts';
import { connectionLost, SkepError } from './failures.ts';
import type { Execution, ExecutionSignal, TerminalSize } from './openapi.ts';
import { type FollowOptions, Reconnection } from './reconnection.ts';
import { SocketInput } from './socket-input.ts';
import { deferred, Watchdog } from './waiting.ts';

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

/** Bytes of an output. A terminal has only `stdout`. */
export interface OutputPart {
  readonly stream: OutputStream;
  readonly bytes: Uint8Array;
}

const one = '/api/v1/sandboxes/{id}/executions/{execution_id}';
/** The server sends at most this many bytes that are not confirmed, because a WebSocket can't slow down the server. */
const windowBytes = 4 << 20;
const confirmedBytes = windowBytes / 4;
const maxMessageBytes = 256 << 10;
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
  #inputState: 'none' | 'sent' | 'closing' | 'closed' = 'none';
  /** The error that makes a reconnect useless. */
  #failure: unknown = null;
  /** The present input; null while there is none. */
  #input: SocketInput | null = null;
  /** The next input. Rejects if there is none because the output is not iterated any more. */
  #ready = deferred<SocketInput>();
  /** Whether an iteration has ended. */
  #isLeft = false;
  #refusals = 0;

  constructor(connection: Connection, execution: Execution, options: AttachOptions = {}) {
    this.#connection = connection;
    this.#execution = execution;
    this.#options = options;
  }

  /** Yields the output, each byte once, until the execution ends. Throws a {@link SkepError}. Input that waits then fails. */
  async *[Symbol.asyncIterator](): AsyncGenerator<OutputPart, void> {
    if (this.#isLeft) [this.#isLeft, this.#ready] = [false, deferred()];
    let reason: unknown = connectionLost('The client is not attached any more.');
    try {
      yield* this.#follow();
    } catch (error) {
      reason = error;
      throw error;
    } finally {
      this.#isLeft = true;
      this.#ready.reject(reason);
    }
  }

  async *#follow(): AsyncGenerator<OutputPart, void> {
    const reconnection = new Reconnection(this.#connection, this.#options);
    // The server has returned the execution.
    reconnection.succeeded();
    for (;;) {
      let error: unknown = connectionLost();
      try {
        const { input, opened, parts } = await this.#connect();
        if (!(await opened)) await this.#throwRefusal();
        else {
          reconnection.succeeded();
          this.#refusals = 0;
          this.#input = input;
          this.#ready.resolve(input);
          yield* this.#read(parts, input.socket);
          if (this.end !== null) return;
        }
      } catch (caught) {
        error = caught;
      }
      this.#options.signal?.throwIfAborted();
      if (this.#failure !== null) throw this.#failure;
      await reconnection.wait(error);
    }
  }

  /** Sends input. Resolves when more can be sent. */
  async write(content: string | Uint8Array): Promise<void> {
    const bytes = typeof content === 'string' ? new TextEncoder().encode(content) : content;
    for (let at = 0; at < bytes.length; at += maxMessageBytes) {
      const input = await this.#ready.promise;
      this.#inputState = 'sent';
      await input.send(bytes.slice(at, at + maxMessageBytes));
    }
  }

  async closeInput(): Promise<void> {
    this.#inputState = 'closing';
    await this.#send({ close_input: true });
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

  async #send(message: object): Promise<void> {
    (await this.#ready.promise).socket.send(JSON.stringify(message));
  }

  async *#read(parts: ReadableStream<OutputPart>, socket: ClientSocket): AsyncGenerator<OutputPart, void> {
    let unconfirmed = 0;
    for await (const part of partsOf(parts)) {
      yield part;
      unconfirmed += part.bytes.length;
      if (unconfirmed < confirmedBytes) continue;
      socket.send(JSON.stringify({ read: unconfirmed }));
      unconfirmed = 0;
    }
  }

  /** `opened` resolves with true when the connection opens, with false if it never does. `parts` is the output, and ends with it. */
  async #connect() {
    const { connectMs, silenceMs, url, options } = this.#connection;
    const { id, sandbox_id } = this.#execution;
    const { hold, signal } = this.#options;
    // A reconnect does not take over from a client that has become the writer meanwhile.
    const takeover = this.#options.takeover === true && this.#isWriter;
    const { ticket } = await this.#connection.request('GET /api/v1/events/ticket', { signal });
    const { stdout: after, stderr: after_stderr } = this.#offsets;
    const query = { after, after_stderr, ticket, takeover, hold, window: windowBytes };
    const address = url.replace(/^http/i, 'ws') + addressOf(`${one}/attach`, { id: sandbox_id, execution_id: id }, query);
    const watch = new Watchdog(signal);
    const socket: ClientSocket = options.openSocket === undefined ? new WebSocket(address) : options.openSocket(address);
    socket.binaryType = 'arraybuffer';
    const input = new SocketInput(socket);
    const opened = deferred<boolean>();
    const left = new AbortController();
    const detach = (): void => {
      left.abort();
      // Later input waits for the next socket.
      if (this.#input === input) [this.#input, this.#ready] = [null, deferred()];
      watch.stop();
      input.close();
    };
    const parts = new ReadableStream<OutputPart>({
      start: (controller) => {
        const leave = (): void => {
          detach();
          opened.resolve(false);
          controller.close();
        };
        const onDisconnect = (): void => {
          if (left.signal.aborted) return;
          const lost = `The connection was lost while input was sent. The execution ${id} continues without the rest of it.`;
          if (this.end === null && !this.#canReconnect()) this.#failure ??= connectionLost(lost);
          leave();
        };
        watch.restart('connect', connectMs);
        watch.signal.addEventListener('abort', onDisconnect, { signal: left.signal });
        socket.addEventListener('open', () => opened.resolve(true));
        socket.addEventListener('message', ({ data }: { readonly data: unknown }) => {
          if (left.signal.aborted) return;
          watch.restart('silence', silenceMs);
          if (data instanceof ArrayBuffer) controller.enqueue(this.#partOf(data));
          else this.#take(JSON.parse(String(data)) as Control, input);
          if (this.#failure !== null) leave();
        });
        // A close event follows.
        socket.addEventListener('error', () => {});
        socket.addEventListener('close', onDisconnect);
      },
      cancel: detach,
    });
    return { input, opened: opened.promise, parts };
  }

  /** Throws the reason for the refusal. A WebSocket client does not get it, but these requests are refused for the same reason. */
  async #throwRefusal(): Promise<never> {
    const { id, sandbox_id } = this.#execution;
    const input = { path: { id: sandbox_id, execution_id: id }, signal: this.#options.signal };
    await (await this.#connection.open(`GET ${one}`, input)).body?.cancel();
    const query = { after: this.#offsets.stdout ?? 0 };
    await (await this.#connection.open(`GET ${one}/output`, { ...input, query })).body?.cancel();
    const refused = 'The server answers, but no WebSocket opens. A proxy in front of the server may not pass WebSockets on.';
    this.#refusals += 1;
    if (this.#refusals === maxRefusals) this.#failure = connectionLost(refused);
    throw connectionLost(refused);
  }

  #partOf(data: ArrayBuffer): OutputPart {
    const stream = this.#stream;
    this.#offsets[stream] = (this.#offsets[stream] ?? 0) + data.byteLength;
    return { stream, bytes: new Uint8Array(data) };
  }

  #take(control: Control, input: SocketInput): void {
    const { stream, offset = 0, writer, passed, error, status, exit_code = null, status_detail = null } = control;
    if (stream !== undefined) {
      const expected = (this.#offsets[stream] ??= offset);
      this.#stream = stream;
      if (offset !== expected) {
        const message = `Output is missing: it continues at byte ${offset} instead of ${expected}.`;
        this.#failure = new SkepError('gap', message, { context: { expected, found: offset } });
      }
    } else if (passed !== undefined) input.passed(passed);
    else if (control.input_closed === true) this.#inputState = 'closed';
    else if (error?.code === 'output_dropped') {
      this.#failure = new SkepError('output_dropped', error.detail, { context: { oldest: error.oldest ?? 0 } });
    } else if (error !== undefined && error.code !== 'input_closed') this.#options.onRefused?.(error.detail);
    else if (status !== undefined) this.end = { status, exit_code, status_detail };
    if (writer === undefined || writer === this.#isWriter) return;
    this.#isWriter = writer;
    this.#options.onWriter?.(writer);
    if (!writer) this.#options.onRefused?.('Another client writes to this execution.');
  }

  /** Returns true if a lost connection loses no input. In a terminal, a person sees what arrived. */
  #canReconnect(): boolean {
    return this.#execution.tty || this.#inputState === 'none' || this.#inputState === 'closed';
  }
}
