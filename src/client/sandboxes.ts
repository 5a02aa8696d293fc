/// <reference lib="esnext.disposable" preserve="true" />
import type { Answer, CallOptions, Connection } from './connection.ts';
import { type CommandLine, Executions, type Finished, type RunOptions } from './executions.ts';
import { SkepError } from './failures.ts';
import { Files } from './files.ts';
import type { Operations, PortLink, PortLinkRequest, Sandbox as SandboxState, SandboxStartRequest } from './openapi.ts';
import { poll } from './waiting.ts';

type SearchQuery = Operations['GET /api/v1/sandboxes/search']['query'];

export interface StartOptions extends Omit<SandboxStartRequest, 'sandbox_spec_id'>, CallOptions {
  /** The id of a sandbox spec. Default: the deployment's default. */
  readonly spec?: string | undefined;
  /** Resolves when the sandbox is running. Default: when it has begun to start. */
  readonly waitUntil?: 'running' | undefined;
}

export class Sandboxes {
  readonly #connection: Connection;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  async start({ spec, waitUntil, signal, silenceMs, ...options }: StartOptions = {}): Promise<Sandbox> {
    const input = { body: { ...options, sandbox_spec_id: spec }, signal, silenceMs };
    const sandbox = new Sandbox(this.#connection, await this.#connection.request('POST /api/v1/sandboxes', input));
    if (waitUntil === 'running') await sandbox.untilRunning({ signal });
    return sandbox;
  }

  async get(id: string, options: CallOptions = {}): Promise<Sandbox> {
    return new Sandbox(this.#connection, await this.#connection.request('GET /api/v1/sandboxes/{id}', { path: { id }, ...options }));
  }

  /** Yields the sandboxes, the newest first. */
  list(query?: SearchQuery, options: CallOptions = {}): AsyncGenerator<SandboxState, void> {
    return this.#connection.items('GET /api/v1/sandboxes/search', { query, ...options });
  }
}

/** A sandbox. Reading its state never wakes it. */
export class Sandbox implements AsyncDisposable {
  readonly #connection: Connection;
  /** The state at the last request. */
  state: SandboxState;
  readonly executions: Executions;
  readonly files: Files;

  constructor(connection: Connection, state: SandboxState) {
    this.#connection = connection;
    this.state = state;
    this.executions = new Executions(connection, state.id);
    this.files = new Files(connection, state.id);
  }

  get id(): string {
    return this.state.id;
  }

  /** Runs a command to its end: a command line for the shell, or a program with its arguments. */
  async run(command: CommandLine, options?: RunOptions): Promise<Finished> {
    return await this.executions.run(command, options);
  }

  async refresh(options: CallOptions = {}): Promise<SandboxState> {
    this.state = await this.#connection.request('GET /api/v1/sandboxes/{id}', this.#input(options));
    return this.state;
  }

  /** Resolves when the sandbox is running. Throws `never_reached` with the server's reason if it never will be. */
  async untilRunning({ signal }: CallOptions = {}): Promise<SandboxState> {
    return await poll(() => this.refresh({ signal }), ({ id, status, status_detail }) => {
      if (status === 'STARTING' || status === 'RESUMING' || status === 'RUNNING') return status === 'RUNNING';
      const message = `The sandbox ${id} is ${status} instead of RUNNING${status_detail === null ? '' : `: ${status_detail}`}`;
      throw new SkepError('never_reached', message, { context: { sandbox_id: id, wanted: 'RUNNING', status } });
    }, signal);
  }

  /** Pauses the sandbox. `freeze` keeps memory and processes; `stop` keeps only the files. */
  async pause(kind?: 'freeze' | 'stop', options: CallOptions = {}): Promise<SandboxState> {
    const input = { ...this.#input(options), body: { pause_kind: kind } };
    this.state = await this.#connection.request('POST /api/v1/sandboxes/{id}/pause', input);
    return this.state;
  }

  async resume(options: CallOptions = {}): Promise<SandboxState> {
    this.state = await this.#connection.request('POST /api/v1/sandboxes/{id}/resume', this.#input(options));
    return this.state;
  }

  /** Returns a signed link to a port, for a browser. */
  async link(port: number, { signal, silenceMs, ...body }: PortLinkRequest & CallOptions = {}): Promise<PortLink> {
    const input = { path: { id: this.id, port }, body, signal, silenceMs };
    return await this.#connection.request('POST /api/v1/sandboxes/{id}/ports/{port}/links', input);
  }

  /** Returns the response with the output of the sandbox's own command. */
  async logs({ tail_bytes, ...options }: CallOptions & { readonly tail_bytes?: number } = {}): Promise<Response> {
    return await this.#connection.stream('GET /api/v1/sandboxes/{id}/logs', { ...this.#input(options), query: { tail_bytes } });
  }

  async usage(options: CallOptions = {}): Promise<Answer<'GET /api/v1/sandboxes/{id}/usage'>> {
    return await this.#connection.request('GET /api/v1/sandboxes/{id}/usage', this.#input(options));
  }

  /** Deletes the sandbox with its files. */
  async delete(options: CallOptions = {}): Promise<void> {
    await this.#connection.request('DELETE /api/v1/sandboxes/{id}', this.#input(options));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.delete();
  }

  #input(options: CallOptions) {
    return { path: { id: this.id }, ...options };
  }
}
