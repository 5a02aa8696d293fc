import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { OutgoingHttpHeaders } from 'node:http';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { open, send } from '../adapters/proxy/send.ts';
import { createClient, object, type Client, type Json } from '../support/client.ts';
import { clearEngine, deploymentOf } from '../support/deployment.ts';
import { describeWithDocker, images } from '../support/docker.ts';
import { cleanEnv, executable, removeFolder, runSkep, type Server, startSandbox, startServer } from '../support/server.ts';
import { forwardPort } from '../../src/adapters/cli/port-forwarding.ts';
import { createClient as createSkepClient } from '../../src/client/index.ts';

const key = 'a-static-key-of-this-test';
let server: Server;
let call: Client;

const urlOf = (found: Json): string => (found['exposed_urls'] as { url: string }[])[0]?.url ?? '';

/** Returns how often a sandbox was resumed. */
async function resumptions(): Promise<number> {
  const { items } = object(await call('GET', '/api/v1/events?kinds=sandbox_moved&limit=100')) as { items?: { data: { to: string } }[] };
  return (items ?? []).filter(({ data }) => data.to === 'RESUMING').length;
}

/** A client whose key has the access, and whose sandbox has these states in turn. Keeps the requests in `sent`. */
function clientOf(access: string, states: readonly Json[], sent: string[] = []) {
  const left = states.map((state) => ({ sandbox_spec_id: 'web', session_api_key: null, exposed_urls: null, ...state }));
  const items = [{ id: 'web', ports: [{ name: 'WEB', port: 8000, public: false }, { name: 'OPEN', port: 8001, public: true }] }];
  const answerTo = (path: string) => (path === '/api/v1/me' ? { access } : path === '/api/v1/sandbox-specs/search' ? { items } : left.shift());
  return createSkepClient({
    url: 'http://skep.test',
    fetch: async (input, init) => {
      const { pathname } = new URL(input instanceof Request ? input.url : input);
      sent.push(`${init?.method ?? 'GET'} ${pathname}`);
      return Response.json(answerTo(pathname));
    },
  });
}

test('skep forward waits until the sandbox runs', async () => {
  const client = clientOf('full', ['PAUSED', 'RESUMING', 'RESUMING', 'RUNNING'].map((status) => ({ status, exposed_urls: status === 'RUNNING' ? [] : null })));
  await expect(forwardPort(client, 'sb-1', { local: 0, remote: '8000' }, {})).rejects.toThrow('does not expose the port 8000');
});

test('skep forward with a read-only key is refused at once for a port that is not public', async () => {
  const sent: string[] = [];
  const client = clientOf('read', [{ status: 'PAUSED' }], sent);
  await expect(forwardPort(client, 'sb-1', { local: 0, remote: '8000' }, {})).rejects.toThrow('the port 8000, which is not public. Use one with full access.');
  expect(sent).toEqual(['GET /api/v1/sandboxes/sb-1', 'GET /api/v1/me', 'GET /api/v1/sandbox-specs/search']);
});

describe('With the process runtime', () => {
  beforeAll(async () => {
    server = await startServer({ env: { SKEP_API_KEY: key, SKEP_KEEP_ALIVE_TIMEOUT: '65s' } });
    call = createClient(server.url, key);
  });
  afterAll(() => server.close());

  test('exposed URLs, links and skep forward reach the sandbox until the server stops', async () => {
    const found = await startSandbox(call);
    const { id } = found;
    const env = { SKEP_API_KEY: key, SKEP_PUBLIC_URL: server.url };
    const url = new URL(urlOf(found));
    expect(url.pathname).toBe(`/${id}/8000`);
    const headers = { 'X-Session-API-Key': String(found['session_api_key']) };
    expect((await fetch(url, { headers })).status).toBe(200);
    expect((await fetch(url)).status).toBe(401);
    for (const address of [url, `${server.url}/health`]) expect((await fetch(address)).headers.get('keep-alive')).toBe('timeout=65');

    const { stdout } = await runSkep(['open', id], env);
    const link = new URL(stdout.trim());
    expect(link.host).toBe(`8000-${id}.localhost:${url.port}`);
    const Host = link.host;
    const redirected = await send(Number(url.port), link.pathname + link.search, { headers: { Host } });
    const Cookie = redirected.headers['set-cookie']?.[0]?.split(';')[0] ?? '';
    expect((await send(Number(url.port), redirected.headers.location ?? '', { headers: { Host, Cookie } })).status).toBe(200);
    expect((await runSkep(['open', id, 'FILES'], env)).stdout).toMatch(new RegExp(`^http://${link.host}/`));
    const { expires_at } = JSON.parse((await runSkep(['open', id, '--expires', '1h', '--json'], env)).stdout) as { expires_at: string };
    expect(Math.round((Date.parse(expires_at) - Date.now()) / 60_000)).toBe(60);
    expect(await runSkep(['open', id, '--expires', 'soon'], env)).toMatchObject({ code: 1, stderr: expect.stringContaining('Expected a duration') });
    expect(await runSkep(['open', id, '--expires', '8d'], env)).toMatchObject({ code: 1, stderr: expect.stringMatching(/^skep: --expires: /) });
    expect(await runSkep(['open', id, 'WEB'], env)).toMatchObject({ code: 1, stderr: `skep: The sandbox ${id} has no port WEB. Its ports: FILES (8000).\n` });
    expect(await runSkep(['open', id, '5173'], env)).toMatchObject({ code: 1, stderr: expect.stringContaining('5173') });
    expect(await runSkep(['forward', id, '8080:'], env)).toMatchObject({ code: 1, stderr: expect.stringContaining('8080:8000') });
    expect(await runSkep(['forward', id, 'WEB'], env)).toMatchObject({ code: 1, stderr: expect.stringContaining('FILES (8000)') });
    expect(await runSkep(['forward', id, '0:9999'], env)).toMatchObject({
      code: 1, stderr: `skep: The sandbox ${id} does not expose the port 9999. Add it to the ports of its spec.\n`,
    });
    expect(await runSkep(['forward', id, `${new URL(server.url).port}:8000`], env)).toMatchObject({
      code: 1, stderr: expect.stringMatching(/^skep: Can't listen on port \d+: .*EADDRINUSE.* Choose another port, or 0 .*\n$/),
    });

    await call('POST', `/api/v1/sandboxes/${id}/pause`);
    expect((await runSkep(['open', id, 'FILES'], env)).stdout).toContain(`://${link.host}/`);
    const tunnel = spawn(process.execPath, [executable, 'forward', id, '0:FILES', '--json'], { env: cleanEnv(env), stdio: ['ignore', 'pipe', 'pipe'] });
    const ended = once(tunnel, 'exit');
    const [said] = (await once(tunnel.stderr.setEncoding('utf8'), 'data')) as [string];
    const local = /http:\S+/.exec(said)?.[0] ?? '';
    const [line] = (await once(tunnel.stdout.setEncoding('utf8'), 'data')) as [string];
    expect([line.endsWith('}\n'), JSON.parse(line)]).toEqual([true, { url: local, sandbox_id: id, port: 8000 }]);
    expect((await fetch(`${local}/health`)).status).toBe(200);
    const through = async (headers: OutgoingHttpHeaders) => (await send(Number(new URL(local).port), '/health', { headers })).status;
    const pages: readonly (readonly [OutgoingHttpHeaders, number])[] = [
      [{ Host: 'evil.example' }, 403], [{ Origin: 'https://evil.example' }, 403], [{ 'Sec-Fetch-Site': 'cross-site', 'Sec-Fetch-Dest': 'iframe' }, 403],
      [{ Origin: 'null' }, 403], [{ 'Origin': 'null', 'Sec-Fetch-Site': 'same-origin' }, 200],
      [{ 'Sec-Fetch-Site': 'cross-site', 'Referer': 'http://localhost:5173/' }, 200],
      [{ 'Origin': 'https://evil.example', 'Connection': 'Upgrade', 'Upgrade': 'websocket' }, 403],
      [{ Origin: 'http://localhost:5173' }, 200], [{ 'Sec-Fetch-Site': 'cross-site', 'Sec-Fetch-Dest': 'document' }, 200],
    ];
    for (const [headers, status] of pages) expect([headers, await through(headers)]).toEqual([headers, status]);
    const toHttp2 = { 'Connection': 'Upgrade, HTTP2-Settings', 'Upgrade': 'h2c', 'HTTP2-Settings': 'AAMAAABk' };
    expect((await send(Number(new URL(local).port), '/health', { headers: toHttp2 })).status).toBe(200);

    const streaming = await open(Number(url.port), `/${id}/8000/`, { headers });
    streaming.resume();
    expect(await server.stop()).toBe(0);
    await expect(fetch(url)).rejects.toThrow('fetch failed');
    const unreachable = await fetch(`${local}/health`);
    expect([unreachable.status, await unreachable.text()]).toEqual([502, expect.stringMatching(`^Skep's proxy at ${url.origin} .*ECONNREFUSED`)]);
    tunnel.kill('SIGTERM');
    expect((await ended)[0]).toBe(0);
  });
});

describeWithDocker('With Docker', () => {
  beforeAll(async () => {
    const web = {
      id: 'web', image: images.tiny, command: ['sh', '-c', 'mkdir -p www && echo hello > www/index.html && exec httpd -f -p 8000 -h www'],
      ports: [{ name: 'WEB', port: 8000 }, { name: 'CLOSED', port: 8001 }], wake_on_access: 'stop', ready: { http: '/index.html', port: 8000 },
    };
    server = await startServer({ env: { SKEP_API_KEY: key, SKEP_SANDBOX_RUNTIME: 'docker' }, config: { specs: [web] } });
    call = createClient(server.url, key);
  });
  afterAll(async () => {
    await server.stop();
    await clearEngine(deploymentOf(server.dataDir));
    await removeFolder(server.dataDir);
  });

  test('100 concurrent requests resume a paused sandbox once, and all succeed', async () => {
    const found = await startSandbox(call, { sandbox_spec_id: 'web' });
    const { id } = found;
    const path = `/api/v1/sandboxes/${id}`;
    const url = urlOf(found);
    const headers = { 'X-Session-API-Key': key };
    expect((await fetch(`${url.replace(/8000$/, '8001')}/`, { headers })).status).toBe(502);
    for (const [nth, kind] of ['freeze', 'stop'].entries()) {
      await call('POST', `${path}/pause`, { pause_kind: kind });
      expect((await fetch(`${url}/index.html`)).status).toBe(401);
      expect(object(await call('GET', path))).toMatchObject({ status: 'PAUSED', pause_kind: kind });
      const texts = await Promise.all(Array.from({ length: 100 }, async () => await (await fetch(`${url}/index.html`, { headers })).text()));
      expect(texts).toEqual(Array.from({ length: 100 }, () => 'hello\n'));
      expect(await resumptions()).toBe(nth + 1);
    }
  });
});
