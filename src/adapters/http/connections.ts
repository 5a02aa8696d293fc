import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** What goes on on each connection of a server, to end it in good order and to cut off who does not read. */
export class Connections {
  readonly #server: Server;
  readonly #open = new Map<Socket, Set<ServerResponse>>();
  #draining = false;

  constructor(server: Server) {
    this.#server = server;
    server.on('connection', (socket: Socket) => {
      this.#open.set(socket, new Set());
      socket.once('close', () => {
        this.#open.delete(socket);
        this.#endWhenIdle();
      });
    });
    // Silence is no fault of a client that waits for its answer; one that leaves its answer unread is cut off.
    server.on('timeout', (socket: Socket) => {
      const waits = (this.#open.get(socket)?.size ?? 0) > 0 && socket.writableLength === 0;
      if (!waits) socket.destroy();
    });
  }

  get draining(): boolean {
    return this.#draining;
  }

  /** A request is under way until its response is closed, or its connection is. */
  follow(request: IncomingMessage, response: ServerResponse): void {
    const responses = this.#open.get(request.socket);
    responses?.add(response);
    response.once('close', () => {
      responses?.delete(response);
      this.#endWhenIdle();
    });
  }

  /** Stops listening, lets the requests under way finish, and cuts off what is left after so long. */
  async drain(limitMs: number): Promise<void> {
    this.#draining = true;
    const closed = Promise.withResolvers<void>();
    this.#server.close(() => closed.resolve());
    for (const responses of this.#open.values()) for (const response of responses) response.shouldKeepAlive = false;
    const late = setTimeout(() => this.#server.closeAllConnections(), limitMs);
    this.#endWhenIdle();
    await closed.promise;
    clearTimeout(late);
  }

  #endWhenIdle(): void {
    if (!this.#draining) return;
    for (const responses of this.#open.values()) if (responses.size > 0) return;
    this.#server.closeAllConnections();
  }
}
