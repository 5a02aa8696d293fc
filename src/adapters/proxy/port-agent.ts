import { Agent, type ClientRequestArgs } from 'node:http';
import { connect, type NetConnectOpts, type Socket } from 'node:net';

/** What listens at the address now is not the sandbox that was asked for. Nothing was sent to it. */
export class PortMoved extends Error {
  override readonly name = 'PortMoved';
}

type Callback = (error: Error | null, socket: Socket) => void;

/** A connection that is not used for so long is closed: servers close such connections too, often after five seconds. */
const idleMs = 4000;

/**
 * Connects to one port of one sandbox, and keeps connections for later requests. Each is checked once, after it was made: the address
 * may be another sandbox's by then.
 */
export class PortAgent extends Agent {
  readonly #isRight: () => Promise<boolean>;

  constructor(isRight: () => Promise<boolean>) {
    super({ keepAlive: true, timeout: idleMs, scheduling: 'lifo' });
    this.#isRight = isRight;
  }

  /** True if no connection is open, kept or awaited. */
  get isUnused(): boolean {
    return [this.sockets, this.freeSockets, this.requests].every((all) => Object.keys(all).length === 0);
  }

  override createConnection(options: ClientRequestArgs & NetConnectOpts, callback?: Callback): undefined {
    const socket = connect({ ...options, timeout: undefined });
    socket.setNoDelay(true);
    const failed = (error: Error): void => {
      socket.destroy();
      callback?.(error, socket);
    };
    socket.once('error', failed);
    socket.once('connect', () => void this.#check(socket, failed, callback));
  }

  async #check(socket: Socket, failed: (error: Error) => void, callback: Callback | undefined): Promise<void> {
    try {
      if (!(await this.#isRight())) throw new PortMoved();
      // Docker takes connections to a closed port, and ends them. Nobody would see an end that came before.
      if (socket.destroyed || socket.readableEnded) throw new Error('the connection ended at once');
    } catch (error) {
      failed(error instanceof Error ? error : new Error(String(error)));
      return;
    }
    socket.off('error', failed);
    callback?.(null, socket);
  }
}
