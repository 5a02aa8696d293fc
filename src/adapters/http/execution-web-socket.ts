import type { WebSocket } from 'ws';
import { z } from 'zod';
import type { Executions, Output } from '../../application/executions/executions.ts';
import { isFailure, isFailureOf } from '../../domain/failure.ts';
import type { Principal } from '../../domain/principal.ts';
import { onAbort } from '../../ports/abort-signals.ts';
import type { OutputStream } from '../../ports/sandbox-executions.ts';
import { parseJson } from '../shared/json.ts';
import { sentenceOfFailure } from '../shared/failure-sentences.ts';
import { presentStatus, signalName, terminalSize } from './common-schemas.ts';
import { ExecutionInputQueue } from './execution-input-queue.ts';
import type { ExecutionWriters } from './execution-writers.ts';

const confirmation = z.strictObject({ read: z.int().min(1) });
const claim = z.strictObject({ writer: z.literal(true) });
const control = z.union([
  z.strictObject({ resize: terminalSize }),
  z.strictObject({ signal: signalName }),
  z.strictObject({ close_input: z.literal(true) }),
]);

interface AttachmentDeps {
  readonly executions: Executions;
  readonly writers: ExecutionWriters;
  readonly principal: Principal;
  readonly sandboxId: string;
  readonly executionId: string;
  readonly outputs: Readonly<Partial<Record<OutputStream, Output>>>;
  readonly mayWrite: boolean;
  readonly takeover: boolean;
  /** The limit of sent bytes that the client has not confirmed. */
  readonly windowBytes: number;
  /** Fires when the attachment must end. */
  readonly ends: AbortSignal;
  /** Returns the close code of the WebSocket for that case. */
  readonly closeCode: () => number;
  readonly heartbeatMs: number;
}

/** How long a client has to close its side, in milliseconds. */
const closeWithinMs = 1000;

/**
 * One client that is attached to an execution. Binary messages are bytes in both directions; text messages are control messages in JSON.
 */
export class ExecutionWebSocket {
  readonly #socket: WebSocket;
  readonly #deps: AttachmentDeps;
  readonly #input: ExecutionInputQueue;
  /** The stream to which the last sent bytes belong. */
  #stream: OutputStream | null = null;
  #releaseWriter: (() => void) | null = null;
  #unconfirmedBytes = 0;
  #confirmed = Promise.withResolvers<void>();
  #isAlive = true;
  /** Signals and sizes are passed on one after the other. */
  #controls: Promise<void> = Promise.resolve();
  /** Closing the input is not in this order, because it waits while the command does not read. */
  #closing: Promise<void> = Promise.resolve();

  constructor(socket: WebSocket, deps: AttachmentDeps) {
    this.#socket = socket;
    this.#deps = deps;
    const { executions, principal, sandboxId, executionId, ends } = deps;
    this.#input = new ExecutionInputQueue({
      socket,
      write: (content, close) => executions.write(principal, sandboxId, executionId, content, close, ends),
      passed: (bytes) => this.#confirmInput(bytes),
      failed: (error) => this.#failInput(error),
    });
  }

  /** Serves the client until the execution ends or the client leaves. Never rejects. */
  async serve(): Promise<void> {
    const { takeover, ends, heartbeatMs } = this.#deps;
    const socket = this.#socket;
    this.#claimWriter(takeover);
    socket.on('message', (data: Buffer, isBinary) => this.#handleMessage(data, isBinary));
    socket.on('pong', () => (this.#isAlive = true));
    socket.on('error', () => socket.terminate());
    const heartbeat = setInterval(() => this.#checkAlive(), heartbeatMs);
    const ending = onAbort(ends, () => this.#close(this.#deps.closeCode()));
    socket.once('close', () => {
      clearInterval(heartbeat);
      ending[Symbol.dispose]();
      this.#releaseWriter?.();
      this.#input.end();
      this.#confirm(Infinity);
      for (const { bytes } of Object.values(this.#deps.outputs)) if (!bytes.locked) bytes.cancel().catch(() => {});
    });
    try {
      await this.#sendOutputs();
      await this.#sendEnd();
      this.#close(1000);
    } catch (error) {
      if (socket.readyState !== socket.OPEN) return;
      this.#report(error);
      this.#close(1011);
    }
  }

  async #sendOutputs(): Promise<void> {
    const { stdout, stderr } = this.#deps.outputs;
    await Promise.all([stdout && this.#sendOutput('stdout', stdout), stderr && this.#sendOutput('stderr', stderr)]);
  }

  /** Sends the bytes as fast as the client reads and confirms them. */
  async #sendOutput(stream: OutputStream, { from, bytes }: Output): Promise<void> {
    let offset = from;
    for await (const part of bytes) {
      if (this.#stream !== stream) this.#send({ stream, offset });
      this.#stream = stream;
      offset += part.length;
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      this.#socket.send(part, { binary: true }, (error) => (error == null ? resolve() : reject(error)));
      await promise;
      this.#unconfirmedBytes += part.length;
      while (this.#unconfirmedBytes >= this.#deps.windowBytes) await this.#confirmed.promise;
    }
  }

  /** A client with a window waits for this before it sends more. */
  #confirmInput(bytes: number): void {
    if (this.#deps.windowBytes < Infinity) this.#send({ passed: bytes });
  }

  #confirm(bytes: number): void {
    this.#unconfirmedBytes -= bytes;
    this.#confirmed.resolve();
    this.#confirmed = Promise.withResolvers();
  }

  async #sendEnd(): Promise<void> {
    const { executions, principal, sandboxId, executionId } = this.#deps;
    const { status, exitCode, statusReason } = await executions.get(principal, sandboxId, executionId);
    this.#send({ status, exit_code: exitCode, ...presentStatus(statusReason) });
  }

  #handleMessage(data: Buffer, isBinary: boolean): void {
    this.#isAlive = true;
    const message = isBinary ? undefined : parseJson(z.union([confirmation, claim, control]), data.toString());
    if (message !== undefined && 'read' in message) return this.#confirm(message.read);
    if (message !== undefined && 'writer' in message) return this.#claimWriter(true);
    if (this.#releaseWriter === null) {
      if (isBinary) this.#confirmInput(data.length);
      return this.#sendError('not_writer', 'You are not the writer. Send {"writer": true} to become it, if your key may write.');
    }
    if (isBinary) return this.#input.push(data);
    if (message === undefined) {
      return this.#sendError('invalid_request', 'A text message must be JSON with resize, signal, close_input, read or writer.');
    }
    this.#control(message);
  }

  #control(message: z.output<typeof control>): void {
    const { executions, principal, sandboxId, executionId } = this.#deps;
    if ('close_input' in message) {
      this.#closing = this.#closing.then(() => this.#closeInput()).catch((error: unknown) => this.#failInput(error));
      return;
    }
    this.#controls = this.#controls.then(() =>
      'signal' in message
        ? executions.signal(principal, sandboxId, executionId, message.signal)
        : executions.resize(principal, sandboxId, executionId, message.resize)).catch((error: unknown) => this.#report(error));
  }

  /** The client can't know which bytes the command got, or that its input ended. In a terminal, it attaches again. */
  #failInput(error: unknown): void {
    this.#report(error);
    if (!isFailureOf(error, 'input_closed')) this.#close(1011);
  }

  async #closeInput(): Promise<void> {
    await this.#input.close();
    this.#send({ input_closed: true });
  }

  #claimWriter(takeover: boolean): void {
    const { writers, executionId, mayWrite } = this.#deps;
    if (mayWrite) this.#releaseWriter ??= writers.claim(executionId, takeover, () => this.#loseWriter());
    this.#send({ writer: this.#releaseWriter !== null });
  }

  #loseWriter(): void {
    this.#releaseWriter = null;
    this.#input.end();
    this.#send({ writer: false });
  }

  /**
   * Disconnects a client from which nothing arrives. On a slow connection, the answer to a ping is late, since the ping comes after the
   * output before it, but the client confirms output meanwhile. While the socket is paused to hold back input, nothing can arrive. Browsers
   * hide pings from the page, so a message is sent too.
   */
  #checkAlive(): void {
    if (!this.#isAlive && !this.#socket.isPaused) {
      this.#socket.terminate();
      return;
    }
    this.#isAlive = false;
    this.#socket.ping();
    this.#send({ writer: this.#releaseWriter !== null });
  }

  #report(error: unknown): void {
    const oldest = isFailureOf(error, 'output_dropped') ? error.context.oldest : undefined;
    if (isFailure(error)) this.#sendError(error.code, sentenceOfFailure(error), oldest);
    else this.#sendError('internal', 'An internal error occurred.');
  }

  #sendError(code: string, detail: string, oldest?: number): void {
    this.#send({ error: { code, detail, ...(oldest !== undefined && { oldest }) } });
  }

  #send(message: object): void {
    if (this.#socket.readyState === this.#socket.OPEN) this.#socket.send(JSON.stringify(message));
  }

  #close(code: number): void {
    const socket = this.#socket;
    socket.resume();
    socket.close(code);
    setTimeout(() => socket.terminate(), closeWithinMs).unref();
  }
}
