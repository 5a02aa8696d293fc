import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { createProxyServer } from 'httpxy';
import type { api, SkepClient } from '../../client/index.ts';
import { CommandError, type JsonOption, notice, stopSignal } from './console.ts';

/** Returns a link to the port, which is a number or a name. Default: the first port of the sandbox. */
export async function linkTo(
  client: SkepClient, id: string, port: string | undefined, expiresInSeconds: number | undefined,
): Promise<api.PortLink> {
  const path = { id, port: await portNumber(client, id, port) };
  return await client.request('POST /api/v1/sandboxes/{id}/ports/{port}/links', { path, body: { expires_in_seconds: expiresInSeconds } });
}

/** Returns the number of a port that is given by its number or its name. Default: the first port of the sandbox. */
async function portNumber(client: SkepClient, id: string, name: string | undefined): Promise<number> {
  if (name !== undefined && /^\d+$/.test(name)) return Number(name);
  const ports = await portsOf(client, id);
  const found = name === undefined ? ports[0] : ports.find((port) => port.name === name);
  if (found !== undefined) return found.port;
  if (ports.length === 0) throw new CommandError(`The spec of the sandbox ${id} names no port. Add one to it, or give a number.`);
  const known = ports.map((port) => `${port.name} (${port.port})`).join(', ');
  throw new CommandError(`The sandbox ${id} has no port ${name}. Its ports: ${known}.`);
}

/** Only a RUNNING sandbox shows its ports. Otherwise they are those of its spec. */
async function portsOf(client: SkepClient, id: string): Promise<readonly { readonly name: string; readonly port: number }[]> {
  const { exposed_urls: exposed, sandbox_spec_id: specId } = await client.request('GET /api/v1/sandboxes/{id}', { path: { id } });
  return exposed ?? (await portsOfSpec(client, specId));
}

async function portsOfSpec(client: SkepClient, specId: string): Promise<readonly api.SandboxPort[]> {
  const { items } = await client.request('GET /api/v1/sandbox-specs/search');
  return items.find((spec) => spec.id === specId)?.ports ?? [];
}

/** Throws if the client's key may not reach the port: a key that can only read reaches public ports only. */
async function requireAccess(client: SkepClient, specId: string, port: number): Promise<void> {
  const { access } = await client.request('GET /api/v1/me');
  if (access !== 'read' || (await portsOfSpec(client, specId)).some((one) => one.port === port && one.public)) return;
  throw new CommandError(`This API key may not reach the port ${port}, which is not public. Use one with full access.`);
}

/** Parses `8080:8000`, where `8000` may be a name; alone it means the same port on both sides. Returns null for any other text. */
export function parsePorts(text: string): { readonly local: number | undefined; readonly remote: string } | null {
  const [, first, remote = ''] = /^(?:(\d{1,5}):)?([\w-]+)$/.exec(text) ?? [];
  const local = first === undefined ? undefined : Number(first);
  return remote === '' || (local ?? 0) > 65_535 ? null : { local, remote };
}

/** Tells the proxy the address on this machine, so the program sees it instead of the address of the proxy. */
function setOrigin({ headers }: IncomingMessage): void {
  headers['x-skep-origin'] = `http://${headers.host ?? ''}`;
}

const localName = /^(?:(?:[\w-]+\.)*localhost|127(?:\.\d+){3}|\[::1\])$/;

function isLocal(url: string): boolean {
  return localName.test(URL.parse(url)?.hostname ?? '');
}

/**
 * Returns false for what may not use the key of the sandbox: a page of another site that the user visits, and a name of another site that
 * leads to this machine. A link to a page may come from anywhere, but not a frame.
 */
function isOfThisMachine({ method, headers }: IncomingMessage): boolean {
  const { host = '', origin, referer = '', 'sec-fetch-site': site, 'sec-fetch-dest': target } = headers;
  if (!isLocal(`http://${host}`)) return false;
  // A form of a page that sends no referrer has the origin `null`, also for its own site.
  if (site === 'same-origin') return true;
  if (origin !== undefined) return isLocal(origin);
  return site !== 'cross-site' || isLocal(referer) || (method === 'GET' && target === 'document');
}

/** Other upgrades, such as to HTTP/2, are ignored: the request gets a normal response. */
function isWebSocketRequest({ headers }: IncomingMessage): boolean {
  return headers.upgrade?.toLowerCase() === 'websocket';
}

type Ports = NonNullable<ReturnType<typeof parsePorts>>;

/**
 * Forwards HTTP and WebSockets until a stop signal. Sends only the sandbox's own key, because the sandbox can read it; none if the client's
 * key may not see it.
 */
export async function forwardPort(client: SkepClient, id: string, { local, remote }: Ports, { json = false }: JsonOption): Promise<void> {
  const port = await portNumber(client, id, remote);
  const sandbox = await client.sandboxes.get(id);
  await requireAccess(client, sandbox.state.sandbox_spec_id, port);
  if (sandbox.state.status === 'PAUSED') await sandbox.resume();
  const { session_api_key: key, exposed_urls: exposed } = await sandbox.untilRunning();
  const url = exposed?.find((one) => one.port === port)?.url;
  if (url === undefined) throw new CommandError(`The sandbox ${id} does not expose the port ${port}. Add it to the ports of its spec.`);
  const stop = stopSignal();
  const headers = { ...(key !== null && { 'X-Session-API-Key': key }), 'X-Skep-Sandbox-Id': id, 'X-Skep-Port': String(port) };
  const { origin } = new URL(url);
  const proxy = createProxyServer({ target: origin, headers, changeOrigin: true });
  const server = createServer({ requestTimeout: 0, shouldUpgradeCallback: isWebSocketRequest }, (request, response) => {
    if (!isOfThisMachine(request)) {
      response.writeHead(403, { 'Content-Type': 'text/plain' });
      return void response.end('Only programs and pages of this machine may use this port, at http://localhost.\n');
    }
    setOrigin(request);
    proxy.web(request, response).catch((error: unknown) => {
      if (response.headersSent) response.destroy();
      else response.writeHead(502, { 'Content-Type': 'text/plain' }).end(`Skep's proxy at ${origin} can't be reached: ${String(error)}\n`);
    });
  });
  const sockets = new Set<Socket>();
  server.on('upgrade', (request, socket: Socket, head) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
    socket.on('error', () => socket.destroy());
    if (!isOfThisMachine(request)) return void socket.end('HTTP/1.1 403 Forbidden\r\nConnection: close\r\n\r\n');
    setOrigin(request);
    proxy.ws(request, socket, {}, head).catch(() => socket.destroy());
  });
  server.listen(local ?? port, '127.0.0.1');
  await once(server, 'listening').catch((error: Error) => {
    throw new CommandError(`Can't listen on port ${local ?? port}: ${error.message}. Choose another port, or 0 for any free port.`);
  });
  const address = server.address();
  const shown = typeof address === 'object' && address !== null ? address.port : port;
  const localAddress = `http://127.0.0.1:${shown}`;
  // One line, since a script reads it while the command runs.
  if (json) process.stdout.write(`${JSON.stringify({ url: localAddress, sandbox_id: id, port })}\n`);
  notice(`${localAddress} leads to the port ${port} of ${id}. Ctrl-C ends it.`);
  if (!stop.aborted) await once(stop, 'abort');
  server.close();
  server.closeAllConnections();
  for (const socket of sockets) socket.destroy();
}
