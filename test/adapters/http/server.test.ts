import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createHttpServer } from '../../../src/adapters/http/index.ts';
import { secondsUntilProbe, showsProbes } from '../../support/tcp-probes.ts';
import { until } from '../../support/until.ts';
import { runningSandbox } from './executions-support.ts';
import { startWorld, type World } from './world.ts';

async function connected({ port }: World): Promise<Socket> {
  const socket = connect(port, '127.0.0.1');
  onTestFinished(() => void socket.destroy());
  await once(socket, 'connect');
  return socket;
}

const listing = (world: World) => `GET /api/user/repository/acme/shop/microagents HTTP/1.1\r\nHost: x\r\nX-Session-API-Key: ${world.keys.ann}\r\n`;

/** The server's end of the connection, as long as it is open. */
function serverEnd(world: World, { localPort }: Socket): Socket | undefined {
  return [...world.connections].find(({ remotePort }) => remotePort === localPort);
}

/** Everything that is received until the connection ends. */
const allOf = (socket: Socket) => text(socket);

/** What is received until the connection is cut off. A client that still writes then may lose the response. */
async function allUntilCut(socket: Socket): Promise<string> {
  let received = '';
  socket.on('data', (chunk: Buffer) => (received += chunk.toString()));
  socket.on('error', () => {});
  const closed = Promise.withResolvers<void>();
  // `once` of node:events would reject if the client's own writes cause a reset.
  if (!socket.closed) socket.once('close', () => closed.resolve());
  else closed.resolve();
  await closed.promise;
  return received;
}

/** What is received until it contains the text. */
async function receive(socket: Socket, words: string): Promise<string> {
  let received = '';
  socket.on('data', (chunk: Buffer) => (received += chunk.toString()));
  return await until(() => received, (all) => all.includes(words));
}

/** Waits for a line of the log, or for one that the test writes. */
async function told(world: World, wanted: string): Promise<void> {
  await until(() => world.lines.some(({ message }) => message === wanted), Boolean);
}

/** Writes the text again and again, as long as the server's end is open. Returns what is received until the connection is closed. */
async function receiveWhileWriting(world: World, socket: Socket, text: string): Promise<string> {
  const writing = setInterval(() => serverEnd(world, socket) !== undefined && socket.write(text), 50);
  return await allUntilCut(socket).finally(() => clearInterval(writing));
}

// In each test, only the limit that it proves is short, and still long enough for the first request of `startWorld` on a busy machine.
describe('a slow client is cut off', () => {
  test('if it sends the head of a request too slowly', async () => {
    const world = await startWorld({ server: { headersTimeoutMs: 1000 } });
    const socket = await connected(world);
    socket.write('GET /health HTTP/1.1\r\nHost: x\r\n');
    expect(await receiveWhileWriting(world, socket, 'X-Drip: 1\r\n')).toMatch(/^HTTP\/1\.1 408 /);
  });

  test.each([['headersTimeoutMs', /^HTTP\/1\.1 408 /], ['writeTimeoutMs', /^$/]])('if it sends nothing within the limit %s', async (limit, received) => {
    const world = await startWorld({ server: { [limit]: 1000 } });
    const since = performance.now();
    expect(await allOf(await connected(world))).toMatch(received);
    expect(performance.now() - since).toBeGreaterThan(990);
  });

  test('if it sends the body too slowly', async () => {
    const world = await startWorld({ server: { requestTimeoutMs: 1000 } });
    const socket = await connected(world);
    const since = performance.now();
    socket.write(`POST /api/v1/sandboxes HTTP/1.1\r\nHost: x\r\nX-Session-API-Key: ${world.keys.ann}\r\nContent-Length: 1000\r\n\r\n{`);
    expect(await receiveWhileWriting(world, socket, ' ')).toBe('');
    expect(performance.now() - since).toBeGreaterThan(990);
    await until(() => world.lines.at(-1), (line) => line?.['aborted'] === true);
    expect(world.lines.filter(({ level }) => level === 'error')).toEqual([]);
  });

  test('if it sends no next request', async () => {
    const socket = await connected(await startWorld({ server: { keepAliveTimeoutMs: 200 } }));
    socket.write('GET /health HTTP/1.1\r\nHost: x\r\n\r\n');
    expect(await allOf(socket)).toMatch(/^HTTP\/1\.1 200 .*\{"status":"ok"\}$/s);
  });

  test('if it does not read the responses', async () => {
    const world = await startWorld({ server: { writeTimeoutMs: 1000, keepAliveTimeoutMs: 60_000 } });
    const socket = await connected(world);
    const closed = new Promise((resolve) => socket.once('close', resolve));
    socket.on('error', () => {});
    socket.pause();
    // More than the buffers of the connection hold.
    socket.write('GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(400));
    await until(() => serverEnd(world, socket), (end) => end === undefined);
    socket.resume();
    await closed;
  });

  test('but not if it waits for its response', async () => {
    const world = await startWorld({ server: { headersTimeoutMs: 1000, requestTimeoutMs: 1000, keepAliveTimeoutMs: 200, writeTimeoutMs: 1500 } });
    const { promise: hold, resolve: release } = Promise.withResolvers<void>();
    world.faults.hold = hold;
    const socket = await connected(world);
    socket.write(`${listing(world)}Connection: close\r\n\r\n`);
    const end = await until(() => serverEnd(world, socket), Boolean);
    // The longest of the limits has passed.
    await once(end!, 'timeout');
    release();
    expect(await allOf(socket)).toMatch(/^HTTP\/1\.1 200 .*deploy\/aws/s);
  });
});

test.runIf(showsProbes)('an idle connection is probed, so that it ends when the machine of its client is gone', async () => {
  const socket = await connected(await startWorld());
  const seconds = await until(() => secondsUntilProbe(socket.localPort), (found) => found !== null);
  expect(seconds).toBeLessThanOrEqual(60);
});

test('a request head that is too large is a 431, and a request that is not HTTP is a 400', async () => {
  const world = await startWorld({ server: { maxHeaderBytes: 2000 } });
  const large = await connected(world);
  large.on('error', () => {});
  large.write(`GET /health HTTP/1.1\r\nHost: x\r\nX-Large: ${'x'.repeat(4000)}\r\n\r\n`);
  expect(await allOf(large)).toMatch(/^HTTP\/1\.1 431 /);
  const other = await connected(world);
  other.write('hello\r\n\r\n');
  expect(await allOf(other)).toMatch(/^HTTP\/1\.1 400 /);
});

test('work is stopped when the client disconnects', async () => {
  const world = await startWorld();
  const { promise: hold, resolve: release } = Promise.withResolvers<void>();
  world.faults.hold = hold;
  const socket = await connected(world);
  socket.write(`${listing(world)}\r\n`);
  await told(world, 'a listing begins');
  socket.destroy();
  await told(world, 'the client went away');
  release();
  await until(() => world.lines.some((line) => line['aborted'] === true), Boolean);
  expect(world.lines.filter(({ level }) => level === 'error')).toEqual([]);
});

describe('closing the server', () => {
  test('finishes running requests, refuses new ones, and closes idle connections', async () => {
    const world = await startWorld({ server: { keepAliveTimeoutMs: 60_000 } });
    const { promise: hold, resolve: release } = Promise.withResolvers<void>();
    world.faults.hold = hold;
    const [working, resting, late] = [await connected(world), await connected(world), await connected(world)];
    working.write(`${listing(world)}\r\n`);
    resting.write('GET /health HTTP/1.1\r\nHost: x\r\n\r\n');
    await receive(resting, '{"status":"ok"}');
    late.write('GET /health HTTP/1.1\r\n');
    await told(world, 'a listing begins');
    await until(() => serverEnd(world, late)?.bytesRead, (heard = 0) => heard > 0);

    const closing = world.server.close();
    await once(resting, 'end');
    late.write('Host: x\r\n\r\n');
    const refused = await allOf(late);
    expect(refused).toMatch(/^HTTP\/1\.1 503 /);
    expect(refused).toMatch(/\r\nRetry-After: 5\r\n/);
    expect(refused).toMatch(/\r\nConnection: close\r\n/);
    expect(JSON.parse(refused.slice(refused.indexOf('{')))).toMatchObject({ code: 'shutting_down', status: 503 });
    await expect(fetch(`${world.url}/health`)).rejects.toThrow(TypeError);

    release();
    const finished = await allOf(working);
    expect(finished).toMatch(/^HTTP\/1\.1 200 .*deploy\/aws/s);
    expect(finished).toMatch(/\r\nConnection: close\r\n/);
    await closing;
    await world.server.close();
  });

  test('waits for the upload of a file', async () => {
    const world = await startWorld({ server: { drainMs: 3_600_000 } });
    const { id } = await runningSandbox(world);
    const working = await connected(world);
    const half = 'x'.repeat(1_000_000);
    working.write(`PUT /api/v1/sandboxes/${id}/files?path=/a HTTP/1.1\r\nHost: x\r\nX-Session-API-Key: ${world.keys.ann}\r\nContent-Length: 2000000\r\n\r\n${half}`);
    // The server reads so much only if the upload has begun.
    await until(() => serverEnd(world, working)?.bytesRead, (bytes = 0) => bytes > half.length);
    const closing = world.server.close();
    await expect(fetch(`${world.url}/health`)).rejects.toThrow(TypeError);
    working.write(half);
    expect(await allOf(working)).toMatch(/^HTTP\/1\.1 200 .*"size":2000000/s);
    await closing;
    expect(world.lines.filter(({ level }) => level === 'error')).toEqual([]);
  });

  test('does not wait for connections without a request', async () => {
    const world = await startWorld({ server: { keepAliveTimeoutMs: 60_000, headersTimeoutMs: 60_000 } });
    const silent = await connected(world);
    await until(() => serverEnd(world, silent), (end) => end !== undefined);
    const ended = once(silent, 'close');
    silent.resume();
    await world.server.close();
    await ended;
  });

  test('waits no longer than the drain time', async () => {
    const world = await startWorld({ server: { drainMs: 100 } });
    const { promise: hold, resolve: release } = Promise.withResolvers<void>();
    world.faults.hold = hold;
    const working = await connected(world);
    working.on('error', () => {});
    working.write(`${listing(world)}\r\n`);
    await told(world, 'a listing begins');
    await world.server.close();
    expect(await allOf(working).catch(() => '')).toBe('');
    release();
  });
});

test('a server fails with EADDRINUSE if its port is taken', async () => {
  const world = await startWorld();
  await expect(createHttpServer(world.skep, { port: world.port })).rejects.toMatchObject({ code: 'EADDRINUSE' });
});
