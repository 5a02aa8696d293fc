import { Agent, type ClientRequestArgs } from 'node:http';
import { connect, type NetConnectOpts, type Socket } from 'node:net';
import type { OpenPort, PortVisitor } from '../../application/sandboxes/sandboxes.ts';
import type { Skep } from '../../application/skep.ts';
import { portRefusalOf } from '../../application/sandboxes/sandbox-ports.ts';
import { Failure } from '../../domain/failure.ts';
import type { Sandbox } from '../../domain/sandbox.ts';

/** The interval in which open connections are checked: whether their credential still works, and whether to record activity. */
const tickMs = 1000;

/** The share of connections that visitors without a credential can use, at least one. The rest is for visitors with a credential. */
const anonymousShare = 0.9;

/** The `Retry-After` at too many connections, in seconds. */
const retrySeconds = 5;

interface Visits {
  readonly port: number;
  readonly visitor: PortVisitor;
  readonly ends: Set<() => void>;
}

interface SandboxConnections {
  sandbox: Sandbox;
  open: number;
  /** The number of them whose visitor has no valid credential. */
  anonymous: number;
  readonly visits: Map<string, Visits>;
}

/** Counts open connections, keeps used sandboxes awake, and closes connections whose credential no longer works. */
export class Connections {
  readonly #skep: Skep;
  readonly #max: number;
  readonly #sandboxes = new Map<string, SandboxConnections>();
  readonly #agents = new Map<string, PortAgent>();
  readonly #timer: NodeJS.Timeout;
  #isTicking = false;

  constructor(skep: Skep, max: number | null) {
    this.#skep = skep;
    this.#max = max ?? Infinity;
    this.#timer = setInterval(() => void this.#tick(), tickMs).unref();
  }

  /** Counts a connection. Throws `rate_limited` if the sandbox has too many. Returns the function to call when the connection has ended. */
  open({ sandbox, isAnonymous }: OpenPort, port: number, visitor: PortVisitor & { readonly id: string }, end: () => void): () => void {
    const { id } = sandbox;
    const connections = this.#sandboxes.get(id) ?? { sandbox, open: 0, anonymous: 0, visits: new Map<string, Visits>() };
    if (connections.open >= this.#max || (isAnonymous && connections.anonymous >= Math.max(1, Math.floor(this.#max * anonymousShare)))) {
      throw new Failure('rate_limited', { limit: 'connections_per_sandbox', retryAfterSeconds: retrySeconds });
    }
    const key = `${port} ${visitor.id}`;
    const visits = connections.visits.get(key) ?? { port, visitor, ends: new Set() };
    connections.open += 1;
    connections.anonymous += Number(isAnonymous);
    connections.visits.set(key, visits);
    this.#sandboxes.set(id, connections);
    visits.ends.add(end);
    return () => {
      if (!visits.ends.delete(end)) return;
      connections.open -= 1;
      connections.anonymous -= Number(isAnonymous);
      if (visits.ends.size === 0) connections.visits.delete(key);
      if (connections.open === 0) this.#sandboxes.delete(id);
    };
  }

  /** Returns the agent that connects to the port. Each instance of a sandbox has its own agent. */
  agent(opened: OpenPort): PortAgent {
    const key = `${opened.sandbox.instanceId} ${opened.url}`;
    const known = this.#agents.get(key);
    if (known !== undefined) return known;
    const agent = new PortAgent(new URL(opened.url), () => this.#skep.sandboxes.isPortAddress(opened));
    this.#agents.set(key, agent);
    return agent;
  }

  close(): void {
    clearInterval(this.#timer);
    for (const { visits } of this.#sandboxes.values()) for (const { ends } of visits.values()) for (const end of ends) end();
    for (const agent of this.#agents.values()) agent.destroy();
  }

  async #tick(): Promise<void> {
    if (this.#isTicking) return;
    this.#isTicking = true;
    for (const [key, agent] of this.#agents) if (agent.isUnused) this.#agents.delete(key);
    try {
      for (const [id, connections] of this.#sandboxes) await this.#checkVisits(id, connections);
    } finally {
      this.#isTicking = false;
    }
  }

  async #checkVisits(id: string, connections: SandboxConnections): Promise<void> {
    const { sandboxes, logger } = this.#skep;
    try {
      connections.sandbox = await sandboxes.notePortActivity(connections.sandbox);
      for (const { port, visitor, ends } of connections.visits.values()) {
        if (await this.#isAllowed(id, port, visitor)) continue;
        for (const end of ends) end();
      }
    } catch (error) {
      logger.warn({ sandbox: id, error }, 'the open connections of a sandbox could not be checked');
    }
  }

  async #isAllowed(id: string, port: number, visitor: PortVisitor): Promise<boolean> {
    try {
      await this.#skep.sandboxes.authorizePort(id, port, visitor);
      return true;
    } catch (error) {
      if (portRefusalOf(error)?.endsConnections === true) return false;
      throw error;
    }
  }
}

/** Another sandbox or program now has the address of the port. Nothing was sent to it. */
export class PortMoved extends Error {
  override readonly name = 'PortMoved';
}

type Callback = (error: Error | null, socket: Socket) => void;

/** An idle connection is closed after this time, in milliseconds, because servers often close one after five seconds. */
const idleMs = 4000;

/** Keeps connections for later requests. Each is checked once after it is made, because another sandbox may have the address by then. */
export class PortAgent extends Agent {
  readonly url: URL;
  readonly #isCurrentAddress: () => Promise<boolean>;
  /** The check of the address that all failed connects at this time share. */
  #checkAfterFailure: Promise<boolean> | null = null;

  constructor(url: URL, isCurrentAddress: () => Promise<boolean>) {
    super({ keepAlive: true, timeout: idleMs, scheduling: 'lifo' });
    this.url = url;
    this.#isCurrentAddress = isCurrentAddress;
  }

  /** True if no connection is open, kept or requested. */
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
    const refused = (refusal: Error): void => void this.#explain(refusal, failed);
    socket.once('error', refused);
    socket.once('connect', () => {
      socket.off('error', refused).once('error', failed);
      void this.#check(socket, failed, callback);
    });
  }

  /** Fails with the reason of a failed connect: another sandbox has the address, the runtime does not answer either, or the refusal. */
  async #explain(refusal: Error, failed: (error: Error) => void): Promise<void> {
    this.#checkAfterFailure ??= this.#isCurrentAddress().finally(() => (this.#checkAfterFailure = null));
    try {
      failed((await this.#checkAfterFailure) ? refusal : new PortMoved());
    } catch (error) {
      failed(error instanceof Error ? error : refusal);
    }
  }

  async #check(socket: Socket, failed: (error: Error) => void, callback: Callback | undefined): Promise<void> {
    try {
      if (!(await this.#isCurrentAddress())) throw new PortMoved();
      // Docker accepts connections to a closed port and then ends them. An end before this line has no other listener.
      if (socket.destroyed || socket.readableEnded) throw new Error('the connection ended at once');
    } catch (error) {
      failed(error instanceof Error ? error : new Error(String(error)));
      return;
    }
    socket.off('error', failed);
    callback?.(null, socket);
  }
}
