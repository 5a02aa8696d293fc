import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { cleanEnv, executable } from '../../support/server.ts';
import { secondsUntilProbe, showsProbes } from '../../support/tcp-probes.ts';
import { until } from '../../support/until.ts';
import { open, send, withKey } from './send.ts';
import { createWorld, deepSpec, guestSpec, type World } from './world.ts';

let world: World;
let id: string;
let key: string;
let port: number;
beforeAll(async () => {
  world = await createWorld({ specs: [guestSpec, deepSpec], proxy: { failedLoginsPerMinute: 100_000 } });
  ({ id, key } = await world.start());
  ({ port } = world.proxy);
});
afterAll(() => world.close());

const byPath = (path = '/', at = 8000): string => `/${id}/${at}${path}`;
const byHost = (at = 8000): Readonly<Record<string, string>> => ({ Host: `${at}-${id}.localhost:${port}` });

describe('a request to the sandbox', () => {
  test('has X-Forwarded headers of the proxy, and not those of the client', async () => {
    const claims = { 'X-Forwarded-For': '1.2.3.4', 'X-Forwarded-Proto': 'gopher', 'X-Forwarded-User': 'root', Forwarded: 'for=1.2.3.4', 'X-Real-IP': '1.2.3.4' };
    const { body } = await send(port, byPath('/x'), withKey(key, { Host: 'my.host:1', ...claims }));
    const { headers } = JSON.parse(body) as { headers: string[] };
    const pairs = Object.fromEntries(headers.flatMap((name, index) => (index % 2 === 0 ? [[name.toLowerCase(), headers[index + 1]]] : [])));
    expect(pairs).toEqual({
      host: 'my.host:1', connection: expect.any(String), 'x-forwarded-for': '127.0.0.1', 'x-forwarded-proto': 'http', 'x-forwarded-host': 'my.host:1',
      'x-forwarded-prefix': `/${id}/8000`,
    });
  });

  test.each(['gopher://x', '//x', 'x', ''])('sees its own host if a client names the origin %s', async (origin) => {
    const { body } = await send(port, '/x', withKey(key, { 'X-Skep-Sandbox-Id': id, 'X-Skep-Port': '8000', 'X-Skep-Origin': origin, Host: 'my.host' }));
    const { headers } = JSON.parse(body) as { headers: string[] };
    expect(headers).toContain('my.host');
    expect(headers.join().toLowerCase()).not.toContain('x-skep');
  });

  test('sees the address of skep forward as its own', async () => {
    await using tunnel = await forward(id, world.keys.ann);
    const { origin } = tunnel;
    const { host } = new URL(origin);
    const { headers } = (await (await fetch(`${origin}/x`)).json()) as { headers: string[] };
    expect(headers.filter((_, index) => /^(host|x-forwarded-host|x-forwarded-proto|x-skep-.*)$/i.test(headers[index - 1] ?? ''))).toEqual([host, 'http', host]);
    const set = encodeURIComponent(JSON.stringify([['Location', `${origin}/y`]]));
    expect((await fetch(`${origin}/headers?status=302&set=${set}`, { redirect: 'manual' })).headers.get('Location')).toBe('/y');
  });

  test('reaches a public port by skep forward with a key that can only read', async () => {
    const { id: deep } = await world.start('deep');
    await using tunnel = await forward(deep, world.keys.reader);
    const response = await fetch(`${tunnel.origin}/x`);
    expect([response.status, await response.text()]).toEqual([200, expect.not.stringMatching(/x-session-api-key/i)]);
    await world.ann('DELETE', `/api/v1/sandboxes/${deep}`);
  });
});

/** Runs `skep forward` for the port 8000 of the sandbox. */
async function forward(sandbox: string, apiKey: string) {
  const tunnel = spawn(process.execPath, [executable, 'forward', sandbox, '0:8000'], {
    env: cleanEnv({ SKEP_API_KEY: apiKey, SKEP_PUBLIC_URL: world.api.url }), stdio: ['ignore', 'ignore', 'pipe'],
  });
  const [line] = (await once(tunnel.stderr.setEncoding('utf8'), 'data')) as [string];
  const close = async () => {
    tunnel.kill();
    await once(tunnel, 'exit');
  };
  return { origin: /http:\S+/.exec(line)?.[0] ?? line, [Symbol.asyncDispose]: close };
}

const answered = async (set: readonly (readonly [string, string])[], host = false, status = 200): Promise<Awaited<ReturnType<typeof send>>> => {
  const path = `/headers?status=${status}&set=${encodeURIComponent(JSON.stringify(set))}`;
  return await send(port, host ? path : byPath(path), { headers: { 'X-Session-API-Key': key, ...(host ? byHost() : { Host: `127.0.0.1:${port}` }) } });
};

describe('a response of the sandbox', () => {
  test('sets cookies only for its own address', async () => {
    const cookies = [
      'a=1', 'b=2; Path=/', 'c=3; path=/x; HttpOnly; Domain=localhost', 'd=4; Domain=.example.com; Path=relative', 'e=5; Path=/x; Path=/',
      'skep_port=6', '__Host-skep_x=7; Path=/', '=skep_port=8', 'nameless', 'SKEP_Y=9', 'f=10; DOMAIN = 127.0.0.1 ;Secure',
    ];
    const set = cookies.map((cookie) => ['Set-Cookie', cookie] as const);
    const prefix = `/${id}/8000`;
    expect((await answered(set)).headers['set-cookie']).toEqual([
      `a=1; Path=${prefix}/`, `b=2; Path=${prefix}/`, `c=3; HttpOnly; Path=${prefix}/x`, `d=4; Path=${prefix}/`, `e=5; Path=${prefix}/`,
      `f=10; Secure; Path=${prefix}/`,
    ]);
    expect((await answered(set, true)).headers['set-cookie']).toEqual(['a=1', 'b=2; Path=/', 'c=3; path=/x; HttpOnly', 'd=4; Path=relative', 'e=5; Path=/x; Path=/', 'f=10; Secure']);
  });

  test.each([
    ['/login?x', (at: string) => `${at}/login?x`],
    ['//elsewhere.example/x', () => '//elsewhere.example/x'],
    ['next', () => 'next'],
    ['https://elsewhere.example/x', () => 'https://elsewhere.example/x'],
    ['http://localhost:8000/x', (at: string) => `${at}/x`],
    ['http://127.0.0.1:8000', (at: string) => `${at}/`],
  ])('with a redirect to %s stays in its own address, unless the target is elsewhere', async (location, expected) => {
    expect((await answered([['Location', location]], false, 302)).headers.location).toBe(expected(`/${id}/8000`));
    expect((await answered([['Location', location]], true, 302)).headers.location).toBe(expected(''));
  });

  test('with a redirect to the host of the request stays in its own address', async () => {
    const own = `http://127.0.0.1:${port}`;
    expect((await answered([['Location', `${own}/x`]], false, 302)).headers.location).toBe(`/${id}/8000/x`);
    expect((await answered([['Location', `${own}/${id}/8000/x`]], false, 302)).headers.location).toBe(`/${id}/8000/x`);
    expect((await answered([['Location', 'https://' + own.slice('http://'.length)]], false, 302)).headers.location).toBe(`https://127.0.0.1:${port}/${id}/8000/`);
    // As nginx does, with the port on which it listens.
    expect((await answered([['Location', 'http://127.0.0.1:8000/x/']], false, 302)).headers.location).toBe(`/${id}/8000/x/`);
    const name = `8000-${id}.localhost`;
    expect((await answered([['Location', `http://${name}:8000/x/`]], true, 302)).headers.location).toBe('/x/');
    expect((await answered([['Location', `http://${name}:8001/x/`]], true, 302)).headers.location).toBe(`http://${name}:8001/x/`);
  });

  test('with a redirect to its own host keeps the scheme of the client', async () => {
    const set = encodeURIComponent(JSON.stringify([['Location', 'http://my.host/x']]));
    const origin = { 'X-Skep-Sandbox-Id': id, 'X-Skep-Port': '8000', 'X-Skep-Origin': 'https://my.host' };
    const { headers } = await send(port, `/headers?status=302&set=${set}`, withKey(key, origin));
    expect(headers.location).toBe('/x');
  });

  test('has no headers that affect the whole origin', async () => {
    const set = [['Service-Worker-Allowed', '/'], ['Clear-Site-Data', '"cookies"'], ['Alt-Svc', 'h2=":1"'], ['Strict-Transport-Security', 'max-age=1'], ['X-Own', '1']] as const;
    const { headers } = await answered(set);
    expect(headers).toMatchObject({ 'x-own': '1' });
    for (const [name] of set.slice(0, 4)) expect(headers).not.toHaveProperty(name.toLowerCase());
    const byHost = (await answered(set, true)).headers;
    for (const name of ['service-worker-allowed', 'clear-site-data']) expect(byHost).not.toHaveProperty(name);
  });

  test.each([
    ['an invalid reason phrase', 'HTTP/1.1 200 O\x01K\r\nContent-Length: 2\r\n\r\nok', 200],
    ['an invalid status', 'HTTP/1.1 099 OK\r\nContent-Length: 2\r\n\r\nok', 502],
    ['an upgrade that was not requested', 'HTTP/1.1 101 OK\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n', 502],
    ['a body without a length', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: x\r\nX-Accel-Redirect: /etc\r\n\r\nHTTP/1.1 200 OK\r\n\r\n', 200],
  ])('cannot break the proxy or its connections: %s', async (_, answer, status) => {
    const response = await open(port, byPath(`/raw?answer=${encodeURIComponent(answer)}`), withKey(key));
    response.resume();
    await once(response, 'end');
    expect(response.statusCode).toBe(status);
    expect([undefined, 'chunked']).toContain(response.headers['transfer-encoding']);
    expect(response.headers).not.toHaveProperty('x-accel-redirect');
  });

  test('on a WebSocket that is reset ends without an HTTP response inside', async () => {
    const socket = new WebSocket(`ws://127.0.0.1:${port}${byPath('/reset')}`, withKey(key));
    const errors: unknown[] = [];
    socket.on('error', (error) => errors.push(error));
    expect((await once(socket, 'close'))[0]).toBe(1006);
    expect(errors).toEqual([]);
  });

  test('is streamed as it comes, and so is a request', async () => {
    const stream = await open(port, byPath('/stream'), withKey(key));
    const lines = stream.setEncoding('utf8')[Symbol.asyncIterator]();
    expect((await lines.next()).value).toBe('first\n');
    await send(port, byPath('/next'), withKey(key));
    expect((await lines.next()).value).toBe('next\n');
    stream.destroy();
    // The program notices that the client has disconnected.
    await until(() => send(port, byPath('/next'), withKey(key)), ({ body }) => body === '0');

    const bytes = 50_000_000;
    const uploaded = await send(port, byPath('/upload'), { method: 'POST', ...withKey(key), body: Buffer.alloc(bytes) });
    expect(JSON.parse(uploaded.body)).toMatchObject({ bytes });
    let got = 0;
    for await (const chunk of await open(port, byPath(`/download?bytes=${bytes}`), withKey(key))) got += (chunk as Buffer).length;
    expect(got).toBe(bytes);
  });

  test('on a WebSocket can be text or bytes, by path and by host', async () => {
    for (const [path, headers] of [[byPath('/ws'), {}], ['/ws', byHost()]] as const) {
      const socket = new WebSocket(`ws://127.0.0.1:${port}${path}`, { headers: { ...headers, 'X-Session-API-Key': key } });
      await once(socket, 'open');
      socket.send('hello');
      expect(String((await once(socket, 'message'))[0])).toBe('hello');
      const bytes = Buffer.alloc(1_000_000, 7);
      socket.send(bytes);
      expect(bytes.equals((await once(socket, 'message'))[0] as Buffer)).toBe(true);
      socket.close(4321, 'enough');
      expect((await once(socket, 'close'))[0]).toBe(4321);
    }
    const closed = new WebSocket(`ws://127.0.0.1:${port}${byPath('/', 8001)}`, withKey(key));
    const [, { statusCode }] = (await once(closed, 'unexpected-response')) as [unknown, { statusCode: number }];
    expect(statusCode).toBe(502);
  });

  test.runIf(showsProbes)('is given up when the machine of the client is gone, so that it does not keep the sandbox awake', async () => {
    const stream = await open(port, byPath('/stream'), withKey(key));
    const socket = new WebSocket(`ws://127.0.0.1:${port}${byPath('/ws')}`, withKey(key));
    const [upgraded] = (await once(socket, 'upgrade')) as [IncomingMessage];
    for (const { localPort } of [stream.socket, upgraded.socket]) {
      expect(await until(() => secondsUntilProbe(localPort), (seconds) => seconds !== null)).toBeLessThanOrEqual(60);
    }
    stream.destroy();
    socket.terminate();
  });

  test('comes without an upgrade if the client requests another protocol than WebSocket', async () => {
    const { status, headers, body } = await send(port, byPath('/x'), withKey(key, { Connection: 'Upgrade, HTTP2-Settings', Upgrade: 'h2c', 'HTTP2-Settings': 'x' }));
    expect([status, headers.upgrade]).toEqual([200, undefined]);
    const received = JSON.parse(body) as { url: string; headers: string[] };
    expect(received.url).toBe('/x');
    expect(received.headers.join('\n')).not.toMatch(/upgrade|http2-settings|h2c/i);
  });
});
