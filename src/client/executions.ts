import { Attachment, type AttachOptions } from './attachment.ts';
import { partsOf } from './byte-stream.ts';
import type { CallOptions, Connection, RequestInput } from './connection.ts';
import { isFailure, connectionLost } from './failures.ts';
import type { Execution as ExecutionState, ExecutionRequest, ExecutionSignal, TerminalSize } from './openapi.ts';
import { type FollowOptions, Reconnection } from './reconnection.ts';
import { Watchdog } from './waiting.ts';

const executionPath = '/api/v1/sandboxes/{id}/executions/{execution_id}';

/** A command line for `/bin/sh`, or a program with its arguments. */
export type CommandLine = string | readonly string[];
/** The command of a terminal for a person: bash if the image has it, otherwise sh. */
export const loginShell = ['/bin/sh', '-c', 'if command -v bash >/dev/null; then exec bash -l; else exec /bin/sh -l; fi'];

export type RunOptions = Omit<ExecutionRequest, 'command' | 'shell'> & CallOptions;

export interface OutputOptions extends FollowOptions {
  /** The offset of the first byte. */
  readonly after?: number | undefined;
  /** Whether the command waits while its output is not read, like one that writes to a pipe. Default: output may be dropped instead. */
  readonly hold?: boolean | undefined;
}

export interface Finished {
  /** Null if the exit code is unknown. */
  readonly exit_code: number | null;
  /** Why the exit code is unknown, or that `timeout_seconds` has ended the command. Otherwise null. */
  readonly status_reason: ExecutionState['status_reason'];
  readonly stdout: string;
  readonly stderr: string;
}

/** The commands of one sandbox. */
export class Executions {
  readonly #connection: Connection;
  readonly #sandboxId: string;

  constructor(connection: Connection, sandboxId: string) {
    this.#connection = connection;
    this.#sandboxId = sandboxId;
  }

  /** Starts a command. The command keeps running when this program ends. */
  async start(command: CommandLine, { signal, silenceMs, ...options }: RunOptions = {}): Promise<Execution> {
    const body = { ...options, ...(typeof command === 'string' ? { shell: command } : { command }) };
    const input = { path: { id: this.#sandboxId }, body, signal, silenceMs };
    return new Execution(this.#connection, await this.#connection.request('POST /api/v1/sandboxes/{id}/executions', input));
  }

  /** Runs a command to its end, then deletes the execution. If the signal fires or the output can't be read, the command is ended. */
  async run(command: CommandLine, options: RunOptions = {}): Promise<Finished> {
    const { signal: left, ...rest } = options;
    // An aborted request could start the command unseen.
    const execution = await new Watchdog(left).race(this.start(command, rest), (late) => late.delete());
    const failed = new AbortController();
    const signal = left === undefined ? failed.signal : AbortSignal.any([left, failed.signal]);
    try {
      const reading = { signal, hold: true };
      const [stdout, stderr] = await Promise.all([execution.text('stdout', reading), execution.text('stderr', reading)]);
      const { exit_code, status_reason } = await execution.refresh({ signal });
      await execution.delete({ signal });
      return { exit_code, status_reason, stdout, stderr };
    } catch (error) {
      // Ends the other output too. The caller gets this error even if the command can't be ended.
      failed.abort(error);
      await execution.delete().catch(() => {});
      throw error;
    }
  }

  async get(id: string, options: CallOptions = {}): Promise<Execution> {
    const input = { path: { id: this.#sandboxId, execution_id: id }, ...options };
    return new Execution(this.#connection, await this.#connection.request(`GET ${executionPath}`, input));
  }

  /** Yields all executions, the newest first. */
  list(options: CallOptions = {}): AsyncGenerator<ExecutionState, void> {
    return this.#connection.items('GET /api/v1/sandboxes/{id}/executions', { path: { id: this.#sandboxId }, ...options });
  }
}

/** A command in a sandbox. */
export class Execution {
  readonly #connection: Connection;
  /** The state at the last request. */
  state: ExecutionState;

  constructor(connection: Connection, state: ExecutionState) {
    this.#connection = connection;
    this.state = state;
  }

  get id(): string {
    return this.state.id;
  }

  async refresh(options: CallOptions = {}): Promise<ExecutionState> {
    this.state = await this.#connection.request(`GET ${executionPath}`, this.#input(options));
    return this.state;
  }

  /**
   * Yields the bytes of an output, each once, until the execution ends. Throws `output_dropped`, with the oldest kept offset, if bytes are
   * no longer kept.
   */
  async *output(stream: 'stdout' | 'stderr' = 'stdout', options: OutputOptions = {}): AsyncGenerator<Uint8Array, void> {
    const { signal } = options;
    const reconnection = new Reconnection(this.#connection, options);
    // The server has returned the execution.
    reconnection.succeeded();
    let after = options.after ?? 0;
    for (let isOpen = false; ;) {
      let error: unknown = connectionLost();
      try {
        const query = { stream, after, follow: true, hold: options.hold };
        const response = await this.#connection.open(`GET ${executionPath}/output`, { ...this.#input({ signal }), query });
        isOpen = true;
        reconnection.succeeded();
        for await (const part of partsOf(response.body)) {
          after += part.length;
          yield part;
        }
        const { status, stdout_bytes, stderr_bytes } = await this.refresh({ signal });
        if (status !== 'running' && (status === 'lost' || after >= (stream === 'stderr' ? stderr_bytes : stdout_bytes))) return;
      } catch (caught) {
        if (isOpen && isFailure(caught, 'execution_not_found', 'sandbox_not_found')) return;
        error = caught;
      }
      await reconnection.wait(error);
    }
  }

  /** Returns an output as text after the execution has ended. */
  async text(stream: 'stdout' | 'stderr' = 'stdout', options: OutputOptions = {}): Promise<string> {
    const decoder = new TextDecoder();
    let text = '';
    for await (const part of this.output(stream, options)) text += decoder.decode(part, { stream: true });
    return text + decoder.decode();
  }

  /** Attaches to input and output, for terminals and pipes. */
  attach(options: AttachOptions = {}): Attachment {
    return new Attachment(this.#connection, this.state, options);
  }

  /** Writes to the input. Resolves when the input is handed to the execution. */
  async write(input: string | Uint8Array<ArrayBuffer>, { close = false, ...options }: CallOptions & { readonly close?: boolean } = {}) {
    const body = typeof input === 'string' ? new TextEncoder().encode(input) : input;
    await this.#connection.request(`POST ${executionPath}/input`, { ...this.#input(options), query: { close }, body });
  }

  /** Sends a signal to the process group. */
  async signal(signal: ExecutionSignal['signal'], options: CallOptions = {}): Promise<void> {
    await this.#connection.request(`POST ${executionPath}/signal`, { ...this.#input(options), body: { signal } });
  }

  async resize(size: TerminalSize, options: CallOptions = {}): Promise<void> {
    await this.#connection.request(`POST ${executionPath}/resize`, { ...this.#input(options), body: size });
  }

  /** Stops the execution with all processes that it started, and deletes its record. */
  async delete(options: CallOptions = {}): Promise<void> {
    await this.#connection.request(`DELETE ${executionPath}`, this.#input(options));
  }

  #input(options: CallOptions): RequestInput<`GET ${typeof executionPath}`> {
    return { path: { id: this.state.sandbox_id, execution_id: this.state.id }, ...options };
  }
}
