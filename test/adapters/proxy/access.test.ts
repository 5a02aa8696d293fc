import { once } from 'node:events';
import { createConnection } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { WebSocket } from 'ws';
import { Failure } from '../../../src/domain/failure.ts';
import { object } from '../../support/client.ts';
import { until } from '../../support/until.ts';
import { codeOf, cookieOf, open, send, type SendOptions, withKey } from './send.ts';
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

describe('a request for a port', () => {
  test.each<[string, () => [string, SendOptions]]>([
    ['by path', () => [byPath('/a/b?c=%2F'), {}]],
    ['by host', () => ['/a/b?c=%2F', { headers: byHost() }]],
    ['by headers', () => ['/a/b?c=%2F', { headers: { 'X-Skep-Sandbox-Id': id, 'X-Skep-Port': '8000' } }]],
    ["by the headers of E2B's clients", () => ['/a/b?c=%2F', { headers: { 'E2b-Sandbox-Id': id, 'E2b-Sandbox-Port': '8000' } }]],
  ])('finds the port %s, and keeps its path unchanged', async (_, target) => {
    const [path, { headers }] = target();
    const { status, body } = await send(port, path, { headers: { ...headers, 'X-Session-API-Key': key } });
    expect([status, (JSON.parse(body) as { url: string }).url]).toEqual([200, '/a/b?c=%2F']);
  });

  test.each(['/', '/x', '/x/y', '/x/0/', '/x/65536/', '/x/8000', '/X_/8000/', `/x/8000x/`, '//8000/', '/-a/8000/', '/%2e%2e/8000/'])(
    'is a 404 at %s', async (path) => {
      const answer = await send(port, path, withKey(world.keys.ann));
      expect(answer.status).toBe(404);
      expect(['not_found', 'sandbox_not_found']).toContain(codeOf(answer));
      expect(answer.body).not.toContain('openapi');
    });

  test('is a 404 with the exposed ports if the spec does not have the port', async () => {
    const answer = await send(port, byPath('/', 5173), withKey(key));
    expect(answer.status).toBe(404);
    expect(JSON.parse(answer.body)).toMatchObject({ code: 'port_not_exposed', sandbox_id: id, port: 5173, exposed: [8000, 8001, 8002] });
  });

  test('is a 502 if the port is closed, with a page for browsers and problem details for other clients', async () => {
    const answer = await send(port, byPath('/', 8001), withKey(key));
    expect([answer.status, codeOf(answer)]).toEqual([502, 'port_closed']);
    const page = await send(port, byPath('/', 8001), withKey(key, { Accept: 'text/html' }));
    expect([page.status, page.headers['content-type']]).toEqual([502, 'text/html; charset=utf-8']);
    const fetched = await send(port, byPath('/', 8001), withKey(key, { Accept: 'text/html', 'Sec-Fetch-Mode': 'cors' }));
    expect(codeOf(fetched)).toBe('port_closed');
    expect(codeOf(await send(port, byPath('/broken'), withKey(key)))).toBe('port_closed');
  });

  test('is a 503 if the port refuses the connection because the runtime is down, which is asked once for many requests', async () => {
    const failure = new Failure('runtime_unavailable', { runtime: 'docker', reason: { code: 'unreachable' }, retryAfterSeconds: 5 });
    const down = async (): Promise<boolean> => await Promise.reject(failure);
    const asked = vi.spyOn(world.skep.sandboxes, 'isPortAddress').mockImplementation(() => sleep(200).then(down));
    try {
      const answers = await Promise.all([1, 2, 3].map(() => send(port, byPath('/', 8001), withKey(key))));
      expect(answers.map((answer) => [answer.status, codeOf(answer)])).toEqual(answers.map(() => [503, 'runtime_unavailable']));
      expect(asked).toHaveBeenCalledTimes(1);
    } finally {
      asked.mockRestore();
    }
  });

  test('is a 502 that says so if the program does not send valid HTTP', async () => {
    const answer = await send(port, byPath(`/raw?answer=${encodeURIComponent('HTTP/1.1 200 OK\nA: b\n\n')}`), withKey(key));
    expect([answer.status, codeOf(answer)]).toEqual([502, 'port_response_invalid']);
    expect(answer.body).toContain('Missing expected CR');
  });

  test('gets a response for any path and headers, and passes no key or link to the sandbox', async () => {
    const token = fc.stringMatching(/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,20}$/);
    const value = fc.stringMatching(/^[\x20-\x7e\x80-\xff]{0,60}$/);
    const path = fc.oneof(
      fc.stringMatching(/^\/[\x21-\x7e]{0,60}$/),
      fc.stringMatching(/^[\x21-\x7e]{0,40}$/).map((rest) => `/${id}/8000/${rest}`),
      fc.tuple(fc.constantFrom(id, 'sb-other'), fc.integer({ min: -1, max: 70_000 })).map(([name, at]) => `/${name}/${at}/?skep_link=x`),
    );
    const known = fc.constantFrom('Cookie', 'Connection', 'X-Skep-Port', 'X-Skep-Sandbox-Id', 'Authorization', 'Referer', 'Origin', 'X-Forwarded-For', 'Expect');
    const headers = fc.array(fc.tuple(fc.oneof(known, token), value), { maxLength: 6 });
    await fc.assert(fc.asyncProperty(path, headers, async (target, fields) => {
      const head = fields.filter(([name]) => !/^(content-length|transfer-encoding|host|upgrade)$/i.test(name)).map(([name, text]) => `${name}: ${text}\r\n`).join('');
      const socket = createConnection({ host: '127.0.0.1', port });
      socket.write(`GET ${target} HTTP/1.1\r\nHost: x\r\nX-Session-API-Key: ${key}\r\n${head}Connection: close\r\n\r\n`, 'latin1');
      let text = '';
      for await (const chunk of socket.setEncoding('latin1')) text += String(chunk);
      expect(text).toMatch(/^HTTP\/1\.1 (?:200|302|400|401|404|417|502) /);
    }), { numRuns: 300 });
    expect(world.lines.filter(({ level }) => level === 'error')).toEqual([]);
    const received = await world.received(id);
    expect(received).not.toContain(key);
    expect(received).not.toContain('skep_link');
  });
});

describe('access to a port', () => {
  test.each<[string, () => SendOptions, number]>([
    ['is refused without a key', () => ({}), 401],
    ['is refused with a wrong key', () => withKey('wrong'), 401],
    ['is refused with an empty key', () => withKey(''), 401],
    ['is allowed with a key of the owner', () => withKey(world.keys.ann), 200],
    ['is allowed with a key of the owner as bearer token', () => ({ headers: { Authorization: `Bearer ${world.keys.ann}` } }), 200],
    ['is allowed with a bearer token beside an empty key', () => withKey(' ', { Authorization: `Bearer ${world.keys.ann}` }), 200],
    ['is allowed with the key of the sandbox', () => withKey(key), 200],
    ['is allowed with the key of the sandbox as bearer token', () => ({ headers: { Authorization: `Bearer ${key}` } }), 200],
    ['is allowed with a key of an administrator', () => withKey(world.keys.admin), 200],
    ['is a 404 with a key of another owner', () => withKey(world.keys.ben), 404],
    ['is refused with a read-only key', () => withKey(world.keys.reader), 403],
  ])('%s', async (_, options, status) => {
    expect((await send(port, byPath(), options())).status).toBe(status);
  });

  test('is refused with the same response for an unknown sandbox and a sandbox of another owner', async () => {
    const [other, unknown] = await Promise.all([send(port, byPath(), withKey(world.keys.ben)), send(port, '/sb-none/8000/', withKey(world.keys.ben))]);
    expect(other.body.replaceAll(id, 'sb-none')).toBe(unknown.body);
    expect((await send(port, '/sb-none/8000/')).body).toBe((await send(port, byPath())).body);
  });

  test('is logged with its user if the key may not reach the port', async () => {
    world.lines.length = 0;
    await send(port, byPath(), withKey(world.keys.reader));
    await send(port, byPath(), withKey(world.keys.ben));
    await send(port, byPath('/ws'), withKey(world.keys.ben, { Connection: 'Upgrade', Upgrade: 'websocket' }));
    await send(port, byPath('/', 8002), withKey(world.keys.ben));
    const refused = { level: 'info', message: 'a request to a port was refused', client: '127.0.0.1', sandbox: id, port: 8000 };
    const ofBen = { ...refused, key_name: 'ben-ci', user: 'ben', code: 'sandbox_not_found' };
    expect(world.lines.filter(({ level }) => level !== 'debug')).toEqual([
      { ...refused, key_name: 'ann-dashboard', user: 'ann', code: 'forbidden' }, ofBen, ofBen,
    ]);
  });

  test('needs no credential for a public port, and any other credential is ignored', async () => {
    for (const options of [{}, withKey('wrong'), { headers: { Authorization: 'Bearer of-the-program' } }, { headers: { Cookie: 'skep_port=x' } }]) {
      expect(codeOf(await send(port, byPath('/', 8002), options))).toBe('port_closed');
    }
  });

  test('with a wrong key counts as a wrong login, also for a public port, and is logged', async () => {
    const strict = await createWorld({ proxy: { failedLoginsPerMinute: 2 } });
    try {
      const { id: own } = await strict.start();
      const statusOf = async (at: number, options: SendOptions): Promise<number> => (await send(strict.proxy.port, `/${own}/${at}/`, options)).status;
      const wrong = withKey('wrong');
      expect([await statusOf(8002, wrong), await statusOf(8002, wrong), await statusOf(8002, wrong)]).toEqual([502, 502, 429]);
      expect([await statusOf(8000, wrong), await statusOf(8002, {})]).toEqual([429, 502]);
      // This token may be for the program in the sandbox.
      expect(await statusOf(8002, { headers: { Authorization: 'Bearer of-the-program' } })).toBe(502);
      const logged = strict.lines.filter(({ message }) => message === 'a request to a port was refused');
      expect(logged.map((line) => (line as { port?: number }).port)).toEqual([8002, 8000]);
      expect(logged).toMatchObject(Array.from({ length: 2 }, () => ({ level: 'info', client: '127.0.0.1', sandbox: own, code: 'rate_limited' })));
    } finally {
      await strict.close();
    }
  });

  test('with a link sets a cookie for this port only, and redirects to the URL without the link', async () => {
    const { search } = new URL(await world.link(id));
    const answer = await send(port, byPath(`/a${search}&b=1`));
    expect([answer.status, answer.headers.location, answer.headers['cache-control']]).toEqual([302, byPath('/a?b=1'), 'no-store']);
    const [cookie = ''] = answer.headers['set-cookie'] ?? [];
    expect(cookie).toMatch(new RegExp(`^skep_port=[\\w-]+; Path=/${id}/8000/; Max-Age=\\d+; HttpOnly; SameSite=Lax$`));
    for (const slashes of ['//', '/\\', '\\/']) {
      const onHost = await send(port, `/${slashes}evil.example/${search}`, { headers: byHost() });
      expect([onHost.headers.location, onHost.headers['set-cookie']?.[0]]).toEqual(['/evil.example/', expect.stringMatching(/; Path=\/; .*HttpOnly/)]);
    }

    const sent = { Cookie: cookie.split(';')[0] ?? '' };
    expect((await send(port, byPath(), { headers: sent })).status).toBe(200);
    expect((await send(port, byPath(), { headers: { Cookie: `skep_port=tossed; ${sent.Cookie}` } })).status).toBe(200);
    expect((await send(port, byPath('/', 8001), { headers: sent })).status).toBe(401);
    const byHeaders = { ...sent, 'X-Skep-Sandbox-Id': id, 'X-Skep-Port': '8000' };
    expect((await send(port, '/', { headers: byHeaders })).status).toBe(401);
    const { id: other } = await world.start();
    expect((await send(port, `/${other}/8000/`, { headers: sent })).status).toBe(401);
    await world.ann('DELETE', `/api/v1/sandboxes/${other}`);
  });

  test('with the cookie is allowed also beside an empty key', async () => {
    const cookie = await cookieOf(port, byPath(), await world.link(id));
    expect((await send(port, byPath(), withKey('', { Cookie: cookie }))).status).toBe(200);
  });

  test('with the cookie is refused for pages of other origins, including other ports of the host', async () => {
    const cookie = await cookieOf(port, byPath(), await world.link(id));
    const asked = async (headers: Readonly<Record<string, string>>, method = 'GET'): Promise<number> =>
      (await send(port, byPath(), { method, headers: { Host: `127.0.0.1:${port}`, Cookie: cookie, ...headers } })).status;
    expect(await asked({ Origin: `http://127.0.0.1:${port}` }, 'POST')).toBe(200);
    expect(await asked({ 'Sec-Fetch-Site': 'cross-site', 'Sec-Fetch-Mode': 'navigate' })).toBe(200);
    expect(await asked({ 'Sec-Fetch-Site': 'same-site', 'Sec-Fetch-Mode': 'navigate', Origin: 'http://127.0.0.1:1' }, 'POST')).toBe(401);
    expect(await asked({ Origin: 'http://127.0.0.1:1' }, 'POST')).toBe(401);
    expect(await asked({ 'Sec-Fetch-Site': 'same-site', 'Sec-Fetch-Mode': 'no-cors' })).toBe(401);
    // If ports are found by path, pages of all sandboxes have the public URL as their origin.
    for (const [origin, status] of [[`http://${byHost()['Host'] ?? ''}`, 200], [world.proxy.url, 401]] as const) {
      expect((await send(port, '/x', { headers: { ...byHost(), Cookie: cookie, Origin: origin } })).status).toBe(status);
    }
    expect(await asked({ Host: 'inner:1', Origin: world.proxy.url }, 'POST')).toBe(200);
    const socket = new WebSocket(`ws://127.0.0.1:${port}${byPath()}`, { headers: { Cookie: cookie, Origin: 'http://evil.example' } });
    const [, { statusCode }] = (await once(socket, 'unexpected-response')) as [unknown, { statusCode: number }];
    expect(statusCode).toBe(401);
  });

  test('with a link or its cookie ends when the link expires, and when its key is revoked', async () => {
    const later = world.auth.issue({ userId: 'ann', keyName: 'later', access: 'full' });
    const made = await world.client(later)('POST', `/api/v1/sandboxes/${id}/ports/8000/links`, {});
    const link = (made.body as { url: string }).url;
    const cookie = await cookieOf(port, byPath(), link);
    const opened = await open(port, byPath('/stream'), { headers: { Cookie: cookie } });
    const socket = new WebSocket(`ws://127.0.0.1:${port}${byPath()}`, { headers: { Cookie: cookie } });
    await once(socket, 'open');
    const ended = [once(socket, 'close'), once(opened, 'error')];
    world.auth.revoke(later);
    expect((await send(port, byPath(), { headers: { Cookie: cookie } })).status).toBe(401);
    expect((await send(port, `${byPath()}${new URL(link).search}`)).status).toBe(401);
    opened.resume();
    await Promise.all(ended);

    const short = await world.link(id, 8000, 5);
    const briefly = await cookieOf(port, byPath(), short);
    // A request that runs when the link expires is cut off.
    const asked = () => send(port, byPath(), { headers: { Cookie: briefly } }).catch(() => null);
    await until(asked, (answer) => answer?.status === 401);
    expect(await send(port, `${byPath()}${new URL(short).search}`)).toMatchObject({ status: 401, body: expect.stringContaining('valid link') });
  });

  test('with a link ends at the latest when its key expires, as the response says', async () => {
    const brief = world.client(world.auth.issue({ userId: 'ann', keyName: 'brief', access: 'full' }, 600_000));
    const minutesOf = async (seconds: number): Promise<number> => {
      const made = object(await brief('POST', `/api/v1/sandboxes/${id}/ports/8000/links`, { expires_in_seconds: seconds }));
      return Math.round((Date.parse(String(made['expires_at'])) - Date.now()) / 60_000);
    };
    expect([await minutesOf(3600), await minutesOf(120)]).toEqual([10, 2]);
  });

  test('is refused with a changed token, and with a text that was encrypted for another purpose', async () => {
    const page = (await world.ann('GET', '/api/v1/sandboxes/search?limit=1')).body as { next_page_id: string | null };
    const { search } = new URL(await world.link(id));
    const token = search.slice('?skep_link='.length);
    const made = [page.next_page_id ?? 'x', '', 'x', token.slice(1), `${token}A`, token.toUpperCase(), '%00'];
    for (const text of made) expect((await send(port, byPath(`/?skep_link=${text}`))).status).toBe(401);
    for (const text of made) expect((await send(port, byPath(), { headers: { Cookie: `skep_port=${text}` } })).status).toBe(401);
  });
});
