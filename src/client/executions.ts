import { setTimeout as pause } from 'node:timers/promises';
import { type RawData, WebSocket } from 'ws';
import { z } from 'zod';
import { ClientError, refused, type SkepClient, unreachable } from './client.ts';

export const execution = z.looseObject({ id: z.string(), sandbox_id: z.string(), tty: z.boolean() });
export type Execution = z.output<typeof execution>;

/** What an attached client is told; it skips what it does not know. */
const control = z.union([
  z.object({ stream: z.enum(['stdout', 'stderr']), offset: z.int() }),
  z.object({ writer: z.boolean() }),
  z.object({ input_closed: z.literal(true) }),
  z.object({ error: z.object({ code: z.string(), detail: z.string() }) }),
  z.object({ status: z.string(), exit_code: z.int().nullable(), status_detail: z.string().nullable() }),
]);

export interface TerminalSize {
  readonly cols: number;
  readonly rows: number;
}

/** How an execution ended. */
export interface Ended {
  /** Null: it is lost. */
  readonly exitCode: number | null;
  readonly detail: string | null;
}

export interface AttachmentEvents {
  /** Takes the bytes, and resolves when more may come. */
  readonly output: (stream: 'stdout' | 'stderr', bytes: Uint8Array) => Promise<void>;
  /** Called when the server refuses what was sent. */
  readonly refused: (message: string) => void;
  /** Called when the connection is lost, and made anew. */
  readonly lost: () => void;
}

const firstWaitMs = 250;
const longestWaitMs = 5000;
/** How long to try to connect again, in milliseconds. */
const reconnectForMs = 120_000;
/** The server sends a ping every 15 s. A connection that is silent for longer is dead. */
const maxSilenceMs = 60_000;

/**
 * A client that is attached to an execution as its writer. If the connection is lost, it connects again and reads on from where it was.
 * Input that was on its way then may be lost, so input that has to arrive whole fails instead.
 */
export class Attachment {
  readonly #client: SkepClient;
  readonly #execution: Execution;
  readonly #events: AttachmentEvents;
  readonly #offsets = { stdout: 0, stderr: 0 };
  #socket: WebSocket | null = null;
  #stream: 'stdout' | 'stderr' = 'stdout';
  #ended: Ended | null = null;
  /** Output is taken in order. */
  #taking: Promise<void> = Promise.resolve();
  #input: 'none' | 'sent' | 'closing' | 'closed' = 'none';
  #failure: ClientError | null = null;
  #open = Promise.withResolvers<void>();

  constructor(client: SkepClient, execution: Execution, events: AttachmentEvents) {
    this.#client = client;
    this.#execution = execution;
    this.#events = events;
  }

  /** Resolves when the execution has ended and all its output was taken. Throws a {@link ClientError}. */
  async run(): Promise<Ended> {
    let waitMs = firstWaitMs;
    let lostAt: number | null = null;
    for (;;) {
      const wasOpen = await this.#connect(lostAt === null);
      await this.#taking;
      if (this.#failure !== null) throw this.#failure;
      if (this.#ended !== null) return this.#ended;
      if (!this.#execution.tty && (this.#input === 'sent' || this.#input === 'closing')) {
        const { id } = this.#execution;
        throw new ClientError(`The connection was lost while input was on its way. The execution ${id} goes on without the rest.`);
      }
      if (wasOpen) [waitMs, lostAt] = [firstWaitMs, Date.now()];
      if (lostAt !== null && Date.now() - lostAt > reconnectForMs) throw unreachable(this.#client.url, null);
      this.#events.lost();
      await pause(waitMs);
      waitMs = Math.min(waitMs * 2, longestWaitMs);
    }
  }

  /** Sends input. Resolves when more may be sent. */
  async write(bytes: Uint8Array): Promise<void> {
    this.#input = 'sent';
    const socket = await this.#opened();
    const { promise, resolve } = Promise.withResolvers<void>();
    socket.send(bytes, { binary: true }, () => resolve());
    await promise;
  }

  /** Closes the input of the execution. */
  async closeInput(): Promise<void> {
    this.#input = 'closing';
    await this.#control({ close_input: true });
  }

  async resize(size: TerminalSize): Promise<void> {
    await this.#control({ resize: size });
  }

  async signal(signal: string): Promise<void> {
    await this.#control({ signal });
  }

  async #control(message: object): Promise<void> {
    (await this.#opened()).send(JSON.stringify(message), () => {});
  }

  async #opened(): Promise<WebSocket> {
    while (this.#socket?.readyState !== WebSocket.OPEN) await this.#open.promise;
    return this.#socket;
  }

  /** Returns when the connection has ended, whether it was open. */
  async #connect(isFirst: boolean): Promise<boolean> {
    const { url, headers } = this.#client;
    const { id, sandbox_id } = this.#execution;
    const path = `/api/v1/sandboxes/${encodeURIComponent(sandbox_id)}/executions/${encodeURIComponent(id)}/attach`;
    const query = `?takeover=true&after=${this.#offsets.stdout}&after_stderr=${this.#offsets.stderr}`;
    const socket = new WebSocket(url.replace(/^http/i, 'ws') + path + query, { headers, perMessageDeflate: false });
    const closed = Promise.withResolvers<boolean>();
    let wasOpen = false;
    let silence = setTimeout(() => socket.terminate(), maxSilenceMs);
    this.#stream = 'stdout';
    socket.on('open', () => {
      wasOpen = true;
      this.#socket = socket;
      const { resolve } = this.#open;
      this.#open = Promise.withResolvers<void>();
      resolve();
    });
    socket.on('message', (data, isBinary) => this.#take(socket, data, isBinary));
    socket.on('ping', () => (silence = silence.refresh()));
    socket.on('unexpected-response', (_request, response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (part: string) => (text += part)).on('end', () => {
        const status = response.statusCode ?? 0;
        // A server that is about to end, or has just started, lets one in a little later.
        if (isFirst || (status < 500 && status !== 429)) this.#failure = refused(status, text);
        closed.resolve(false);
      });
    });
    socket.on('error', (error) => {
      if (isFirst && !wasOpen) this.#failure ??= unreachable(url, { cause: error });
    });
    socket.on('close', () => closed.resolve(wasOpen));
    const result = await closed.promise;
    clearTimeout(silence);
    return result;
  }

  #take(socket: WebSocket, data: RawData, isBinary: boolean): void {
    if (!isBinary) {
      this.#told(data);
      return;
    }
    const stream = this.#stream;
    const bytes = bytesOf(data);
    this.#offsets[stream] += bytes.length;
    socket.pause();
    this.#taking = this.#taking.then(() => this.#events.output(stream, bytes)).finally(() => socket.resume());
  }

  #told(data: RawData): void {
    const message = control.safeParse(JSON.parse(bytesOf(data).toString())).data;
    if (message === undefined) return;
    if ('stream' in message) this.#stream = message.stream;
    else if ('input_closed' in message) this.#input = 'closed';
    else if ('status' in message) this.#ended = { exitCode: message.exit_code, detail: message.status_detail };
    else if ('error' in message && message.error.code === 'output_dropped') this.#failure = new ClientError(message.error.detail);
    else if ('error' in message && message.error.code !== 'input_closed') this.#events.refused(message.error.detail);
    else if ('writer' in message && !message.writer) this.#events.refused('Another client writes to this execution now.');
  }
}

function bytesOf(data: RawData): Buffer {
  if (Array.isArray(data)) return Buffer.concat(data);
  return Buffer.isBuffer(data) ? data : Buffer.from(data);
}
