import { spawn, type ChildProcess } from 'node:child_process';
import { Agent, type AgentOptions } from 'node:http';
import { Duplex } from 'node:stream';
import type { Endpoint } from './endpoint.ts';

/**
 * Carries HTTP over the machine's own `ssh`, as Docker's client does: so its keys, known hosts and configuration hold, and a
 * host that is not known is refused.
 */
export class SshAgent extends Agent {
  readonly #arguments: readonly string[];

  constructor({ host, user, port }: Extract<Endpoint, { kind: 'ssh' }>, options: AgentOptions) {
    super(options);
    const destination = user === null ? host : `${user}@${host}`;
    this.#arguments = ['-T', '-o', 'BatchMode=yes', '-o', 'ConnectTimeout=30', ...(port === null ? [] : ['-p', port]), '--', destination, 'docker', 'system', 'dial-stdio'];
  }

  override createConnection(): Duplex {
    return new ChildSocket(spawn('ssh', this.#arguments, { stdio: ['pipe', 'pipe', 'ignore'] }));
  }
}

/** The standard streams of a child as a socket. */
class ChildSocket extends Duplex {
  readonly #child: ChildProcess;

  constructor(child: ChildProcess) {
    super();
    this.#child = child;
    const fail = (error: Error): void => void this.destroy(error);
    child.on('error', fail);
    child.stdin?.on('error', fail);
    child.stdout?.on('error', fail);
    child.stdout?.on('data', (chunk: Buffer) => {
      if (!this.push(chunk)) child.stdout?.pause();
    });
    child.stdout?.on('end', () => this.push(null));
  }

  override _read(): void {
    this.#child.stdout?.resume();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#child.stdin?.write(chunk, done);
  }

  override _final(done: (error?: Error | null) => void): void {
    this.#child.stdin?.end(done);
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#child.kill();
    done(error);
  }

  // What an agent asks of a socket, and a pipe has not.
  setKeepAlive(): this {
    return this;
  }
  setNoDelay(): this {
    return this;
  }
  setTimeout(): this {
    return this;
  }
  ref(): this {
    this.#child.ref();
    return this;
  }
  unref(): this {
    this.#child.unref();
    return this;
  }
}
