import type { ChildProcessWithoutNullStreams } from 'node:child_process';
import { Duplex } from 'node:stream';

/** What is to be made of a child that has given nothing yet. `said` is the beginning of its standard error. */
export interface ChildReading {
  /** Does it speak to the other side by now? */
  readonly isConnected: (said: string) => boolean;
  /** Why it could not be started. */
  readonly whyAbsent: (cause: Error) => Error;
  /** Why it ended; null where it is as if the other side had closed the connection. */
  readonly whyEnded: (code: number | null, said: string) => Error | null;
}

const maxSaid = 16_384;

/** The standard streams of a child as a socket. Its `connect` tells that the child speaks to the other side. */
export class ChildSocket extends Duplex {
  readonly #child: ChildProcessWithoutNullStreams;
  #idle: NodeJS.Timeout | undefined;
  #hasGiven = false;
  #isConnected = false;

  constructor(child: ChildProcessWithoutNullStreams, { isConnected, whyAbsent, whyEnded }: ChildReading) {
    super();
    this.#child = child;
    let said = '';
    child.stderr.setEncoding('utf8');
    child.stderr.on('data', (text: string) => {
      if (said.length >= maxSaid) return;
      said = (said + text).slice(0, maxSaid);
      if (isConnected(said)) this.#connected();
    });
    child.on('error', (error) => void this.destroy(whyAbsent(error)));
    // A child that ends without an answer tells why on its standard error, and not by the streams that break.
    child.on('close', (code) => {
      const why = this.#hasGiven ? null : whyEnded(code, said);
      if (why === null) this.push(null);
      else this.destroy(why);
    });
    for (const stream of [child.stdin, child.stdout, child.stderr]) stream.on('error', (error) => this.#broken(error));
    child.stdout.on('data', (chunk: Buffer) => {
      this.#hasGiven = true;
      this.#connected();
      this.#idle?.refresh();
      if (!this.push(chunk)) child.stdout.pause();
    });
    child.stdout.on('end', () => {
      if (this.#hasGiven) this.push(null);
    });
  }

  #connected(): void {
    if (!this.#isConnected) this.emit('connect');
    this.#isConnected = true;
  }

  #broken(error: Error): void {
    if (this.#hasGiven) this.destroy(error);
  }

  override _read(): void {
    this.#child.stdout.resume();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#idle?.refresh();
    this.#child.stdin.write(chunk, (error) => {
      const tellsLater = error instanceof Error && !this.#hasGiven && !this.destroyed;
      if (tellsLater) this.once('close', () => done(error));
      else done(error);
    });
  }

  override _final(done: () => void): void {
    this.#child.stdin.end(() => done());
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    clearTimeout(this.#idle);
    this.#child.kill();
    // Whoever waits for a write is told.
    this.#child.stdin.destroy();
    this.#child.stdout.destroy();
    done(error);
  }

  /** An agent lets go of a connection that rests for so long. */
  setTimeout(ms: number): this {
    clearTimeout(this.#idle);
    this.#idle = ms === 0 ? undefined : setTimeout(() => this.emit('timeout'), ms).unref();
    return this;
  }

  // What else an agent asks of a socket, and a pipe has not.
  setKeepAlive(): this {
    return this;
  }
  setNoDelay(): this {
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
