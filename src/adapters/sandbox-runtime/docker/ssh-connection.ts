import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { Agent, type AgentOptions, type ClientRequestArgs } from 'node:http';
import { Duplex } from 'node:stream';
import type { Failure } from '../../../domain/failure.ts';
import { createSemaphore } from '../../shared/semaphore.ts';
import { spawned } from '../../shared/spawned.ts';
import { errorCode } from '../../shared/system-errors.ts';
import { misconfigured, unavailable } from './engine.ts';

/** If ten logins (`MaxStartups`) of all clients are in progress, an SSH server drops connections at random. */
const loginsAtOnce = 5;
/** How long to wait for the login. A connection multiplexed through another one never reports it. */
const longestLoginMs = 5_000;

type Done = (error: Error | null, socket?: Duplex) => void;

/**
 * Runs HTTP over the machine's own `ssh`, as Docker's client does. So its keys, known hosts and configuration apply, and an unknown host is
 * refused.
 */
export class SshAgent extends Agent {
  readonly #arguments: readonly string[];
  readonly #logins = createSemaphore(loginsAtOnce);
  readonly #destroyed = new AbortController();

  /** `user` and `port` may be empty. */
  constructor({ host, user, port }: Readonly<Record<'host' | 'user' | 'port', string>>, options: AgentOptions) {
    super(options);
    const destination = user === '' ? host : `${user}@${host}`;
    // LogLevel=VERBOSE makes ssh report its login. ServerAliveInterval detects a lost host, like TCP keep-alive.
    const asked = ['BatchMode=yes', 'ConnectTimeout=30', 'LogLevel=VERBOSE', 'ServerAliveInterval=15'].flatMap((option) => ['-o', option]);
    this.#arguments = ['-T', ...asked, ...(port === '' ? [] : ['-p', port]), '--', destination, 'docker', 'system', 'dial-stdio'];
  }

  override createConnection(_: ClientRequestArgs, done: Done): undefined {
    void this.#connectInTurn(done);
  }

  async #connectInTurn(done: Done): Promise<void> {
    try {
      await this.#logins.use(this.#destroyed.signal, async () => {
        const socket = new SshSocket(await spawned(spawn('ssh', this.#arguments, { stdio: 'pipe' })).catch(cannotStart));
        done(null, socket);
        // The agent destroys only the sockets that it has.
        if (this.#destroyed.signal.aborted) socket.destroy();
        const over = { signal: AbortSignal.timeout(longestLoginMs) };
        await Promise.race([once(socket, 'connect', over), once(socket, 'close', over)]).catch(() => {});
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

function cannotStart(error: unknown): never {
  if (errorCode(error) === 'ENOENT') throw misconfigured('this machine has no ssh command; install an OpenSSH client', error);
  throw unavailable('ssh could not be started', error);
}

const maxMessages = 16_384;

/** The standard streams of an `ssh` as a socket. It emits `connect` after the login. */
class SshSocket extends Duplex {
  readonly #child: ChildProcessWithoutNullStreams;
  #idle: NodeJS.Timeout | undefined;
  #hasOutput = false;
  #isConnected = false;

  constructor(child: ChildProcessWithoutNullStreams) {
    super();
    this.#child = child;
    let messages = '';
    child.stderr.setEncoding('utf8');
    child.stderr.on('data', (text: string) => {
      if (messages.length >= maxMessages) return;
      messages = (messages + text).slice(0, maxMessages);
      if (/^Authenticated to /m.test(messages)) this.#connected();
    });
    // If the process ends without output, the reason is in its messages, not in the errors of its streams.
    child.on('close', (code) => {
      const failure = this.#hasOutput ? null : sshFailure(code, messages);
      if (failure === null) this.push(null);
      else this.destroy(failure);
    });
    for (const stream of [child.stdin, child.stdout, child.stderr]) {
      stream.on('error', (error) => {
        if (this.#hasOutput) this.destroy(error);
      });
    }
    child.stdout.on('data', (chunk: Buffer) => {
      this.#hasOutput = true;
      this.#connected();
      this.#idle?.refresh();
      if (!this.push(chunk)) child.stdout.pause();
    });
    child.stdout.on('end', () => {
      if (this.#hasOutput) this.push(null);
    });
  }

  #connected(): void {
    if (!this.#isConnected) this.emit('connect');
    this.#isConnected = true;
  }

  override _read(): void {
    this.#child.stdout.resume();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#idle?.refresh();
    this.#child.stdin.write(chunk, (error) => {
      const isExplainedLater = error instanceof Error && !this.#hasOutput && !this.destroyed;
      if (isExplainedLater) this.once('close', () => done(error));
      else done(error);
    });
  }

  override _final(done: () => void): void {
    this.#child.stdin.end(() => done());
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    clearTimeout(this.#idle);
    this.#child.kill();
    // Makes pending writes fail.
    this.#child.stdin.destroy();
    this.#child.stdout.destroy();
    done(error);
  }

  /** The agent closes a connection that is idle for this long. */
  setTimeout(ms: number): this {
    clearTimeout(this.#idle);
    this.#idle = ms === 0 ? undefined : setTimeout(() => this.emit('timeout'), ms).unref();
    return this;
  }

  // An agent also calls these methods of a socket. A pipe has no such settings.
  readonly setKeepAlive = (): this => this;
  readonly setNoDelay = (): this => this;

  ref(): this {
    this.#child.ref();
    return this;
  }
  unref(): this {
    this.#child.unref();
    return this;
  }
}

/** The exit code if `ssh` itself failed. Any other code is from the command on the remote host. */
const sshFailed = 255;
const commandNotFound = 127;

const tryIt = 'try it as the user that the server runs as: ssh with the user and host of SKEP_DOCKER_HOST, and then docker version';
const change = "the key of its engine's host is another than the one in ssh's known_hosts; find out why, and correct known_hosts";
const unknown = "the key of its engine's host is not in ssh's known_hosts; compare it, and add it for the user that the server runs as";
const permissions = 'ssh does not use its key or its configuration, since other users may read or change them; correct their permissions';
const noDocker = "the host of its engine has no docker command for ssh's user; install Docker's client there, or correct that user's PATH";

/** The advice for each message of `ssh`. */
const mistakes: readonly (readonly [RegExp, string])[] = [
  [/REMOTE HOST IDENTIFICATION HAS CHANGED/, change],
  [/Host key verification failed|host key is known/i, unknown],
  [/Permission denied|Too many authentication failures/i, `its engine's host refused ssh's keys; ${tryIt}`],
  [/UNPROTECTED PRIVATE KEY FILE|bad permissions|Bad owner or permissions/i, permissions],
  [/Could not resolve hostname/i, "its engine's host is not known; correct SKEP_DOCKER_HOST or DOCKER_HOST"],
];

/** Returns why `ssh` ended before the engine answered, without addresses or paths. Null if it ended with 0. */
function sshFailure(code: number | null, messages: string): Failure<'runtime_unavailable'> | null {
  if (code === 0) return null;
  if (code === commandNotFound) return misconfigured(noDocker);
  if (code !== sshFailed) {
    return unavailable(`its engine does not answer on its host; start Docker there, and let ssh's user use its socket; ${tryIt}`);
  }
  const mistake = mistakes.find(([pattern]) => pattern.test(messages))?.[1];
  if (mistake !== undefined) return misconfigured(mistake);
  // These errors may be temporary.
  if (!/Connection refused/i.test(messages)) return unavailable(`ssh lost its engine's host, or does not get there; ${tryIt}`);
  return unavailable("ssh is refused by its engine's host; start the SSH server there, or correct the port");
}
