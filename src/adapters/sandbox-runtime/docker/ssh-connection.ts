import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { Agent, type AgentOptions, type ClientRequestArgs } from 'node:http';
import { Duplex } from 'node:stream';
import { Failure } from '../../../domain/failure.ts';
import { createSemaphore } from '../../shared/semaphore.ts';
import { realTimers } from '../../shared/timeout.ts';
import { type Endpoint, misconfigured } from './engine-address.ts';

/** An SSH server drops connections at random while ten (`MaxStartups`) have not proven yet who they are, those of others included. */
const greetingsAtOnce = 5;
/** One that goes through another's connection does not tell when it is let in. */
const longestGreetingMs = 5_000;

type Done = (error: Error | null, socket?: Duplex) => void;

const reading = { isConnected: isAuthenticated, whyAbsent: withoutSsh, whyEnded: sshFailure };

/**
 * Carries HTTP over the machine's own `ssh`, as Docker's client does: so its keys, known hosts and configuration hold, and a
 * host that is not known is refused.
 */
export class SshAgent extends Agent {
  readonly #arguments: readonly string[];
  readonly #greetings = createSemaphore(greetingsAtOnce);
  readonly #destroyed = new AbortController();

  constructor({ host, user, port }: Extract<Endpoint, { kind: 'ssh' }>, options: AgentOptions) {
    super(options);
    const destination = user === null ? host : `${user}@${host}`;
    // It says when it is let in. And a host that went without a word is noticed, as by the probes of a TCP connection.
    const asked = ['BatchMode=yes', 'ConnectTimeout=30', 'LogLevel=VERBOSE', 'ServerAliveInterval=15'].flatMap((option) => ['-o', option]);
    this.#arguments = ['-T', ...asked, ...(port === null ? [] : ['-p', port]), '--', destination, 'docker', 'system', 'dial-stdio'];
  }

  override createConnection(_: ClientRequestArgs, done: Done): undefined {
    void this.#connectInTurn(done);
  }

  async #connectInTurn(done: Done): Promise<void> {
    try {
      await this.#greetings.use(this.#destroyed.signal, async () => {
        const socket = new ChildSocket(spawn('ssh', this.#arguments, { stdio: 'pipe' }), reading);
        done(null, socket);
        await greeted(socket);
      });
    } catch (error) {
      done(error instanceof Error ? error : new Error('ssh could not be started', { cause: error }));
    }
  }

  override destroy(): void {
    this.#destroyed.abort(new Error('the connection to the engine is closed'));
    super.destroy();
  }
}

/** Waits until the other side has let it in, or not. */
function greeted(socket: Duplex): Promise<void> {
  return new Promise((resolve) => {
    const cancel = realTimers.after(longestGreetingMs, resolve);
    const over = (): void => {
      cancel();
      resolve();
    };
    socket.once('connect', over).once('close', over);
  });
}

/** What is to be made of a child that has given nothing yet. `said` is the beginning of its standard error. */
interface ChildReading {
  /** Does it speak to the other side by now? */
  readonly isConnected: (said: string) => boolean;
  /** Why it could not be started. */
  readonly whyAbsent: (cause: Error) => Error;
  /** Why it ended; null where it is as if the other side had closed the connection. */
  readonly whyEnded: (code: number | null, said: string) => Error | null;
}

const maxSaid = 16_384;

/** The standard streams of a child as a socket. Its `connect` tells that the child speaks to the other side. */
class ChildSocket extends Duplex {
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

/** The code that `ssh` exits with where it itself failed; any other is that of the command on the other host. */
const sshFailed = 255;
const commandNotFound = 127;

const tryIt = 'try it as the user that the server runs as: ssh with the user and host of SKEP_DOCKER_HOST, and then docker version';

/** What somebody has to change, by what `ssh` says. */
const mistakes: readonly (readonly [RegExp, string])[] = [
  [
    /REMOTE HOST IDENTIFICATION HAS CHANGED/,
    "the key of its engine's host is another than the one in ssh's known_hosts; find out why, and correct known_hosts",
  ],
  [
    /Host key verification failed|host key is known/i,
    "the key of its engine's host is not in ssh's known_hosts; compare it, and add it for the user that the server runs as",
  ],
  [/Permission denied|Too many authentication failures/i, `its engine's host refused ssh's keys; ${tryIt}`],
  [
    /UNPROTECTED PRIVATE KEY FILE|bad permissions|Bad owner or permissions/i,
    'ssh does not use its key or its configuration, since other users may read or change them; correct their permissions',
  ],
  [/Could not resolve hostname/i, "its engine's host is not known; correct SKEP_DOCKER_HOST or DOCKER_HOST"],
];

/** What may pass by itself. */
const troubles: readonly (readonly [RegExp, string])[] = [
  [/Connection refused/i, "ssh is refused by its engine's host; start the SSH server there, or correct the port"],
  [/No route to host|Network is unreachable/i, "its engine's host can't be reached"],
  [/timed out/i, "its engine's host does not answer"],
];

/** Has `ssh` been let in, by what it says when it is asked to be verbose? */
function isAuthenticated(said: string): boolean {
  return /^Authenticated to /m.test(said);
}

/**
 * Why `ssh` ended before the engine answered, in words without addresses or paths; null where it ended as if all were well.
 * `said` is its standard error.
 */
function sshFailure(code: number | null, said: string): Failure<'runtime_unavailable'> | null {
  if (code === 0) return null;
  if (code === commandNotFound)
    return misconfigured(
      "the host of its engine has no docker command for ssh's user; install Docker's client there, or correct that user's PATH",
    );
  if (code !== sshFailed)
    return unavailable(`its engine does not answer on its host; start Docker there, and let ssh's user use its socket; ${tryIt}`);
  const mistake = mistakes.find(([pattern]) => pattern.test(said));
  if (mistake !== undefined) return misconfigured(mistake[1]);
  return unavailable(
    troubles.find(([pattern]) => pattern.test(said))?.[1] ?? `ssh lost its engine's host, or does not get there; ${tryIt}`,
  );
}

/** Why there is no `ssh` at all. */
function withoutSsh(cause: Error): Failure<'runtime_unavailable'> {
  const absent = 'code' in cause && cause.code === 'ENOENT';
  return absent
    ? misconfigured('this machine has no ssh command; install an OpenSSH client', cause)
    : unavailable('ssh could not be started', cause);
}

function unavailable(reason: string, cause?: Error): Failure<'runtime_unavailable'> {
  return new Failure('runtime_unavailable', { runtime: 'docker', reason, retryAfterSeconds: 5 }, { cause });
}
