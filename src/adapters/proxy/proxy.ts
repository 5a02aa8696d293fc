import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import proxyAddress from 'proxy-addr';
import { portRefusalOf } from '../../application/sandboxes/sandbox-ports.ts';
import type { OpenPort } from '../../application/sandboxes/sandboxes.ts';
import type { Skep } from '../../application/skep.ts';
import { Failure, isFailure } from '../../domain/failure.ts';
import type { Principal } from '../../domain/principal.ts';
import { exposedPort } from '../../domain/sandbox.ts';
import { Authenticator, clientAddress } from '../http/authentication.ts';
import { createPortTokens } from '../http/port-links.ts';
import { HttpProblem, problemOf } from '../http/problems.ts';
import { keyFields } from '../http/request-log.ts';
import { shuttingDown } from '../../application/skep.ts';
import { isWebSocketRequest } from '../http/web-socket.ts';
import { Connections, PortMoved } from './port-connections.ts';
import { ownCredentialHeaders, type Visitor, type VisitorDeps, visitorOf } from './port-visitor.ts';
import { forwardRequest, forwardUpgrade } from './forwarder.ts';
import { defaultConnectionsPerSandbox, type ProxyOptions } from './proxy-options.ts';
import { isForPerson, responseFor, type WholeResponse } from './problem-page.ts';
import { setPortCookie } from './port-cookie.ts';
import { type PortTarget, targetOf } from './port-target.ts';
import type { ForwardedRequest } from './proxied-headers.ts';

export interface Proxy {
  /** Listener of the event `request`. */
  readonly handleRequest: (request: IncomingMessage, response: ServerResponse) => void;
  /** Listener of the event `upgrade`. */
  readonly handleUpgrade: (request: IncomingMessage, socket: Duplex, head: Buffer) => void;
  /** Refuses new requests and closes all sockets at once. Active requests continue until `close`. */
  drain(): void;
  close(): void;
}

/** Use a separate server: a sandbox must not share an origin with the API. Throws a TypeError if `skep` is a promise. */
export function createProxy(skep: Skep, options: ProxyOptions): Proxy {
  const given: { readonly sandboxes?: unknown } | null | undefined = skep;
  if (given?.sandboxes === undefined) throw new TypeError('createProxy needs the Skep that createSkep resolves to; did you forget await?');
  return new PortRequests(skep, options);
}

/** A request to a port, with what is known of its sender. */
interface Visit {
  readonly target: PortTarget;
  readonly visitor: Visitor;
  /** The owner of the visitor's valid credential, for the log. Null until it is known, or if there is none. */
  principal: Principal | null;
}

class PortRequests implements Proxy {
  readonly #skep: Skep;
  readonly #options: ProxyOptions;
  readonly #connections: Connections;
  readonly #visitorDeps: VisitorDeps;
  readonly #protocol: string;
  readonly #sockets = new Set<Duplex>();
  #isDraining = false;

  constructor(skep: Skep, options: ProxyOptions) {
    const { connectionsPerSandbox: max = defaultConnectionsPerSandbox, failedLoginsPerMinute, trustProxy = [], url } = options;
    this.#skep = skep;
    this.#options = options;
    this.#protocol = new URL(url).protocol.slice(0, -1);
    this.#connections = new Connections(skep, max);
    const limits = { requestsPerMinute: null, streamsPerKey: null, ...(failedLoginsPerMinute !== undefined && { failedLoginsPerMinute }) };
    this.#visitorDeps = {
      skep, authenticator: new Authenticator(skep.auth, limits), tokens: createPortTokens(skep), url,
      isTrusted: proxyAddress.compile([...trustProxy]),
    };
  }

  readonly handleRequest: Proxy['handleRequest'] = (request, response) => void this.#serve(request, response);
  readonly handleUpgrade: Proxy['handleUpgrade'] = (request, socket, head) => void this.#upgrade(request, socket, head);

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let visit: Visit | null = null;
    try {
      visit = this.#visitOf(request);
      if (this.#isDraining) throw shuttingDown;
      if (visit === null) throw new HttpProblem('not_found', {});
      const redirect = await this.#redirectOf(request, visit);
      if (redirect !== null) sendResponse(response, redirect);
      else await this.#forward(request, response, visit);
    } catch (error) {
      if (response.headersSent || response.destroyed) response.destroy();
      else sendResponse(response, this.#responseTo(request, error, visit));
    }
  }

  async #upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    // A client may disconnect while it waits; this is not an error.
    socket.on('error', () => socket.destroy());
    // Destroys the socket when everything is written, even if the client never ends its side.
    socket.once('finish', () => socket.destroy());
    this.#sockets.add(socket);
    socket.once('close', () => this.#sockets.delete(socket));
    let visit: Visit | null = null;
    const refuse = (error: unknown): void => writeResponse(socket, this.#responseTo(request, error, visit));
    try {
      visit = this.#visitOf(request);
      const isWebSocket = request.method === 'GET' && isWebSocketRequest(request);
      if (isWebSocket && this.#isDraining) throw shuttingDown;
      if (!isWebSocket || visit === null) throw new HttpProblem('not_found', {});
      const { target, visitor } = visit;
      const opened = await this.#skep.sandboxes.openPort(target.sandboxId, target.port, visitor);
      const close = this.#connections.open(opened, target.port, visitor.forRechecks, () => socket.destroy());
      socket.once('close', close);
      if (socket.destroyed) return close();
      const forwarded = await this.#forwardedRequest(request, visit, opened, true);
      if (socket.destroyed) return;
      forwardUpgrade(request, socket, head, forwarded, (error) => refuse(this.#portProblem(error, target)));
    } catch (error) {
      refuse(error);
    }
  }

  readonly drain = (): void => {
    this.#isDraining = true;
    for (const socket of this.#sockets) socket.destroy();
  };

  readonly close = (): void => {
    this.drain();
    this.#connections.close();
  };

  /** Reads the request before it is forwarded, which changes its path and removes the credentials. Null if it addresses no port. */
  #visitOf(request: IncomingMessage): Visit | null {
    const target = targetOf(request, this.#options);
    if (target === null) return null;
    const visitor = visitorOf(this.#visitorDeps, request, target, (principal) => (visit.principal = principal));
    const visit: Visit = { target, visitor, principal: null };
    return visit;
  }

  /** Redirects a link to the address without the token, and sets a cookie if the token is valid. Adds a page's missing slash. */
  async #redirectOf(request: IncomingMessage, { target, visitor }: Visit): Promise<WholeResponse | null> {
    if (request.method !== 'GET' && request.method !== 'HEAD') return null;
    const { token, lacksSlash, prefix, path, by } = target;
    const isLink = token !== null && by !== 'headers';
    if (!isLink && !(lacksSlash && by === 'path' && isForPerson(request))) return null;
    // By host there is no prefix, and browsers would read two slashes at the beginning as another host.
    const Location = prefix + (prefix === '' ? path.replace(/^[/\\\t]{2,}/, '/') : path);
    const headers = { Location, 'Cache-Control': 'no-store', 'Referrer-Policy': 'no-referrer' };
    if (!isLink) return { status: 302, headers, body: '' };
    const { isAnonymous } = await this.#skep.sandboxes.authorizePort(target.sandboxId, target.port, visitor);
    const { grant } = visitor;
    const isSet = !isAnonymous && grant?.text === token;
    const cookie = isSet ? { 'Set-Cookie': setPortCookie(this.#skep, this.#options, target, grant) } : {};
    return { status: 302, headers: { ...headers, ...cookie }, body: '' };
  }

  async #forwardedRequest(
    request: IncomingMessage, { target, visitor }: Visit, opened: OpenPort, isWebSocket: boolean,
  ): Promise<ForwardedRequest> {
    return {
      target, client: visitor.client, protocol: target.protocol ?? this.#protocol, isWebSocket,
      keepsPrefix: exposedPort(opened.sandbox, target.port)?.keepsPrefix === true,
      ownCredentials: await ownCredentialHeaders(this.#skep, request, opened.sandbox),
      sessionKey: opened.sessionKey, agent: this.#connections.agent(opened),
    };
  }

  async #forward(request: IncomingMessage, response: ServerResponse, visit: Visit): Promise<void> {
    const { target, visitor } = visit;
    for (let attempt = 1; ; attempt += 1) {
      const opened = await this.#skep.sandboxes.openPort(target.sandboxId, target.port, visitor);
      if (response.destroyed) return;
      const close = this.#connections.open(opened, target.port, visitor.forRechecks, () => response.destroy());
      try {
        const forwarded = await this.#forwardedRequest(request, visit, opened, false);
        // For a response that has already ended, the library would wait forever.
        if (!response.destroyed) await forwardRequest(request, response, forwarded);
        return;
      } catch (error) {
        // Nothing was sent, so the sandbox can be read again for a new try.
        if (!(error instanceof PortMoved) || attempt > 1) throw this.#portProblem(error, target);
      } finally {
        close();
      }
    }
  }

  /** Returns the failure. Every connection error means that nothing answers on the port. */
  #portProblem(error: unknown, { sandboxId: id, port }: PortTarget): unknown {
    if (isFailure(error)) return error;
    this.#skep.logger.debug({ sandbox: id, port, error }, 'a request to a port got no valid response');
    const problem = parserProblemOf(error);
    if (problem !== null) return new Failure('port_response_invalid', { id, port, problem }, { cause: error });
    return new Failure('port_closed', { id, port }, { cause: error });
  }

  #responseTo(request: IncomingMessage, error: unknown, visit: Visit | null): WholeResponse {
    const problem = problemOf(error) ?? this.#logUnexpected(error);
    if (visit !== null && portRefusalOf(error)?.isLogged === true) {
      const { target: { sandboxId: sandbox, port }, visitor, principal } = visit;
      const client = clientAddress({ ip: visitor.client });
      const key = keyFields(principal, problem);
      this.#skep.logger.info({ client, sandbox, port, ...key, code: problem.code }, 'a request to a port was refused');
    }
    return responseFor(request, problem);
  }

  #logUnexpected(error: unknown): Failure<'internal'> {
    const incident = this.#skep.random.id('inc');
    this.#skep.logger.error({ incident, error }, 'a request to a port failed with an unexpected error');
    return new Failure('internal', { incident }, { cause: error });
  }
}

/** Returns what Node's HTTP parser found wrong in a response. Null for any other error. */
function parserProblemOf(error: unknown): string | null {
  const isOfParser = error instanceof Error && 'code' in error && 'reason' in error && String(error.code).startsWith('HPE_');
  return isOfParser ? String(error.reason) : null;
}

function sendResponse(response: ServerResponse, { status, headers, body }: WholeResponse): void {
  response.writeHead(status, { ...headers, 'Content-Length': Buffer.byteLength(body) });
  response.end(body);
}

function writeResponse(socket: Duplex, { status, headers, body }: WholeResponse): void {
  if (socket.destroyed || !socket.writable) return;
  const fields = { ...headers, 'Content-Length': String(Buffer.byteLength(body)), Connection: 'close' };
  const head = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`).join('');
  socket.end(`HTTP/1.1 ${status} Refused\r\n${head}\r\n${body}`);
}
