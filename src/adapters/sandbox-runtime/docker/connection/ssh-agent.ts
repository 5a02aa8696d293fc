import { spawn } from 'node:child_process';
import { Agent, type AgentOptions, type ClientRequestArgs } from 'node:http';
import type { Duplex } from 'node:stream';
import { createSemaphore } from '../../../shared/semaphore.ts';
import { realTimers } from '../../../shared/timeout.ts';
import { ChildSocket } from './child-socket.ts';
import type { Endpoint } from './endpoint.ts';
import { isAuthenticated, sshFailure, withoutSsh } from './ssh-failures.ts';

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
