import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createProxy, type Proxy } from '../../../src/adapters/proxy/index.ts';
import { until } from '../../support/until.ts';
import { send, withKey } from './send.ts';
import { createWorld, type World } from './world.ts';

// Only one connection may be open at a time, so a successful request proves that the connection before it was released.

let world: World;
let proxy: Proxy;
let id: string;
let key: string;
const server = createServer();
beforeAll(async () => {
  world = await createWorld();
  ({ id, key } = await world.start());
  proxy = createProxy(world.skep, { url: 'http://127.0.0.1', connectionsPerSandbox: 1 });
  server.on('request', proxy.handleRequest).on('upgrade', proxy.handleUpgrade).listen(0, '127.0.0.1');
  await once(server, 'listening');
});
afterAll(async () => {
  proxy.close();
  server.close();
  await world.close();
});

const portOf = (): number => (server.address() as AddressInfo).port;

/** Sends the head of a request, on a connection that the client does not end by itself. */
function sendHead(headers: string): Socket {
  const socket = connect({ host: '127.0.0.1', port: portOf(), allowHalfOpen: true });
  socket.on('error', () => {}).resume();
  socket.write(`GET /${id}/8000/stream HTTP/1.1\r\nHost: h\r\nX-Session-API-Key: ${key}\r\n${headers}\r\n`);
  return socket;
}

const released = (): Promise<unknown> => until(() => send(portOf(), `/${id}/8000/x`, withKey(key)), ({ status }) => status === 200);

test('the connection of a declined upgrade is released, even if the client does not end its side', async () => {
  const socket = sendHead('Connection: Upgrade\r\nUpgrade: websocket\r\n');
  await once(socket, 'end');
  await released();
  socket.destroy();
});

test('the connection of a client that disconnects while its credential is checked is released', async () => {
  const { auth } = world.skep;
  const authenticate = auth.authenticate.bind(auth);
  const [asked, answered] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  auth.authenticate = async (credential) => {
    if (credential === 'of-the-program') {
      asked.resolve();
      await answered.promise;
    }
    return await authenticate(credential);
  };
  const gone = Promise.withResolvers<void>();
  server.once('request', (_, response: ServerResponse) => response.once('close', gone.resolve));
  const socket = sendHead('Authorization: Bearer of-the-program\r\n');
  await asked.promise;
  socket.destroy();
  await gone.promise;
  auth.authenticate = authenticate;
  answered.resolve();
  await released();
  expect((await send(portOf(), `/${id}/8000/next`, withKey(key))).body).toBe('0');
});

test('a copy of the proxy can be closed', () => {
  const copy = { ...createProxy(world.skep, { url: 'http://127.0.0.1' }) };
  copy.drain();
  copy.close();
});
