import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import { Failure } from '../../../src/domain/failure.ts';
import { neverAborts } from '../../../src/ports/abort-signals.ts';
import { object } from '../../support/client.ts';
import { until } from '../../support/until.ts';
import { codeOf, connectJson, openDoor, stream, wrapped } from './door.ts';

const data = (text: string) => ({ data: { input: { stdin: Buffer.from(text).toString('base64') } } });

const framed = (...events: object[]) => Buffer.concat(events.map((event) => wrapped(JSON.stringify(event))));

describe('the API for E2B clients', () => {
  test('streams the start, the output and the end of a process', async () => {
    const door = await openDoor();
    const messages = await stream(door, 'Start', wrapped(JSON.stringify({ process: { cmd: 'echo', args: ['hello'] }, stdin: false })));
    expect(messages).toEqual([
      { event: { start: { pid: expect.any(Number) } } },
      { event: { data: { stdout: Buffer.from('hello\n').toString('base64') } } },
      { event: { end: { exitCode: 0, exited: true, status: 'exit status 0' } } },
      {},
    ]);
    const logged = await until(async () => door.world.lines.findLast(({ message }) => message === 'request'), (line) => line?.['path'] === '/e2b/process.Process/Start');
    expect(logged).toMatchObject({ sandbox: door.id, key_name: 'ann-laptop' });
  });

  test('gives commands the variables of E2B, which a client cannot replace', async () => {
    const door = await openDoor();
    const run = vi.spyOn(door.world.skep.executions, 'run');
    const { templateID } = object(await door.as(door.world.keys.ann)('GET', `/e2b/sandboxes/${door.id}`));
    await stream(door, 'Start', wrapped(JSON.stringify({ process: { cmd: 'echo', envs: { A: 'b', E2B_SANDBOX: 'no' } } })));
    const env = { A: 'b', E2B_SANDBOX: 'true', E2B_SANDBOX_ID: door.id, E2B_TEMPLATE_ID: templateID };
    expect(run.mock.lastCall?.[2].env).toEqual(env);
  });

  test('refuses a working directory that does not exist, as E2B does', async () => {
    const door = await openDoor();
    await door.world.skep.files.write(null, door.id, '/workspace/a-file', ReadableStream.from([]), {}, neverAborts);
    const errorIn = async (cwd: string) =>
      (await stream(door, 'Start', wrapped(JSON.stringify({ process: { cmd: 'echo', cwd }, stdin: false })))).at(-1)?.['error'];
    expect(await errorIn('/workspace')).toBeUndefined();
    for (const cwd of ['missing', '/workspace/a-file']) {
      expect(await errorIn(cwd)).toMatchObject({ code: 'invalid_argument', message: expect.stringMatching(/^The working directory .* does not exist/) });
    }
    const cwd = '/outside';
    vi.spyOn(door.world.skep.files, 'stat').mockRejectedValueOnce(new Failure('invalid_request', { problems: [] }));
    expect(await errorIn(cwd)).toMatchObject({ message: `The working directory ${cwd} does not exist.` });
  });

  test('writes a stream of input, in whatever parts it arrives', async () => {
    const door = await openDoor();
    const call = async (method: string, message = {}) => object(await door.as(null)('POST', `/e2b/process.Process/${method}`, message, door.headers));
    const output = stream(door, 'Start', wrapped(JSON.stringify({ process: { cmd: 'cat' }, stdin: true })));
    const [process] = await until(async () => (await call('List'))['processes'] as { pid: number }[], (found) => found.length === 1);
    const start = { start: { process } };
    const whole = framed(start, data('one '), { keepalive: {} }, data('two'));
    const parts = ReadableStream.from<Uint8Array>(Array.from(whole, (byte) => Uint8Array.of(byte)));
    const init = { method: 'POST', headers: { ...door.headers, 'Content-Type': connectJson }, body: parts, duplex: 'half' };
    expect(await (await fetch(`${door.world.url}/e2b/process.Process/StreamInput`, init as RequestInit)).text()).not.toContain('error');
    await call('CloseStdin', { process });
    const texts = (await output).map(({ event }) => (event as { data?: { stdout: string } } | undefined)?.data?.stdout ?? '');
    expect(texts.map((text) => Buffer.from(text, 'base64').toString()).join('')).toBe('one two');
    const refused = async (body: Buffer) => codeOf(await stream(door, 'StreamInput', body));
    expect(await refused(framed(start, data('late')))).toBe('not_found');
    expect([await refused(framed(data('x'))), await refused(whole.subarray(0, 3))]).toEqual(['invalid_argument', 'invalid_argument']);
    expect(await refused(Buffer.from([0, 0xff, 0xff, 0xff, 0xff]))).toBe('invalid_argument');
  });

  test.each([
    ['no token', {}, 'unauthenticated'],
    ['a token of another sandbox', { 'X-Access-Token': 'a'.repeat(64) }, 'unauthenticated'],
    ['no id of a sandbox', { 'E2b-Sandbox-Id': '' }, 'invalid_argument'],
    ['the id of another sandbox', { 'E2b-Sandbox-Id': 'sb-other' }, 'unauthenticated'],
    ['a user name', { Authorization: `Basic ${Buffer.from('root:').toString('base64')}` }, 'invalid_argument'],
  ])('refuses a request with %s', async (what, headers, code) => {
    const door = await openDoor();
    const sent = what === 'no token' ? {} : { ...door.headers, ...headers };
    const start = wrapped(JSON.stringify({ process: { cmd: 'echo' } }));
    expect(codeOf(await stream({ ...door, headers: sent }, 'Start', start))).toBe(code);
    const answer = await door.as(null)('POST', '/e2b/process.Process/List', {}, sent);
    expect(object(answer)['code']).toBe(code);
    expect((await door.as(null)('GET', '/e2b/files?path=x', undefined, sent)).status).toBe(code === 'unauthenticated' ? 401 : 400);
  });

  test('lets a read-only key read a sandbox, but not change it or get its tokens', async () => {
    const { world, id, as } = await openDoor();
    const reader = as(world.keys.reader);
    const info = await reader('GET', `/e2b/sandboxes/${id}`);
    expect(info.status).toBe(200);
    expect(Object.keys(object(info))).not.toContain('envdAccessToken');
    expect(JSON.stringify(info.body)).not.toContain(object(await as(world.keys.ann)('GET', `/e2b/sandboxes/${id}`))['trafficAccessToken']);
    expect((await reader('DELETE', `/e2b/sandboxes/${id}`)).status).toBe(403);
    expect((await reader('POST', `/e2b/v2/sandboxes/${id}/connect`, {})).status).toBe(403);
    expect((await as(world.keys.ben)('GET', `/e2b/sandboxes/${id}`)).status).toBe(404);
    expect(await as(null)('GET', `/e2b/sandboxes/${id}`)).toMatchObject({ status: 401, body: { message: expect.stringContaining('--format e2b') } });
  });

  test('returns errors in the format of E2B for unsupported and wrong requests', async () => {
    const { as, world, headers, id } = await openDoor();
    const ann = as(world.keys.ann);
    expect(object(await ann('POST', `/e2b/sandboxes/${id}/snapshots`, {}))).toMatchObject({ code: 501 });
    expect(object(await ann('POST', '/e2b/volumes', {}))).toMatchObject({ code: 501, message: expect.stringContaining('POST /e2b/volumes') });
    expect(object(await ann('POST', '/e2b/v3/templates', {}))).toMatchObject({ code: 501, message: expect.stringContaining('template builds') });
    expect(object(await ann('POST', '/e2b/v2/sandboxes', { templateID: 'base', mcp: {} }))).toMatchObject({ code: 501 });
    expect(object(await ann('POST', '/e2b/v2/sandboxes', { templateID: 'base', timeout: 0 }))).toMatchObject({ code: 400 });
    expect(object(await ann('POST', '/e2b/v2/sandboxes', { templateID: 'nope' }))).toEqual({
      code: 404, message: 'There is no template "nope". A template is a sandbox spec of the deployment.',
    });
    expect(object(await ann('POST', '/e2b/v2/sandboxes', '{'))).toMatchObject({ code: 400 });
    expect(object(await as(null)('POST', '/e2b/process.Process/Unknown', {}, headers))['code']).toBe('unimplemented');
    expect(object(await as(null)('POST', '/e2b/process.Process/SendSignal', { process: { pid: 1 }, signal: 'SIGNAL_SIGKILL' }, headers))['code']).toBe('not_found');
  });

  test('refuses random bytes, and starts no process', async () => {
    const door = await openDoor();
    const anything = fc.oneof(
      fc.uint8Array({ maxLength: 64 }).map((bytes) => Buffer.from(bytes)),
      fc.tuple(fc.json(), fc.nat({ max: 3 })).map(([text, flags]) => wrapped(text, flags)),
    );
    await fc.assert(fc.asyncProperty(anything, async (body) => {
      expect(codeOf(await stream(door, 'Start', body))).toBe('invalid_argument');
    }), { numRuns: 100 });
    expect((await door.world.ann('GET', `/api/v1/sandboxes/${door.id}/executions`)).body).toMatchObject({ items: [] });
  });

  test('returns 502 or `unavailable` for requests to a paused or deleted sandbox, like the proxy of E2B', async () => {
    const { as, world, headers, id } = await openDoor();
    const bad = { status: 502, body: { code: 502, message: expect.stringContaining('was not found') } };
    const unavailable = { code: 'unavailable', message: expect.stringContaining('was not found') };
    const list = async () => object(await as(null)('POST', '/e2b/filesystem.Filesystem/ListDir', { path: '/' }, headers));
    const start = async () => (await stream({ world, headers }, 'Start', wrapped(JSON.stringify({ process: { cmd: 'echo' } })))).at(-1)?.['error'];
    expect((await as(world.keys.ann)('POST', `/e2b/sandboxes/${id}/pause`, {})).status).toBe(204);
    expect(await as(null)('GET', '/e2b/health', undefined, headers)).toMatchObject(bad);
    expect(await start()).toEqual(unavailable);
    expect((await as(world.keys.ann)('DELETE', `/e2b/sandboxes/${id}`)).status).toBe(204);
    expect(await as(null)('GET', '/e2b/health', undefined, headers)).toMatchObject(bad);
    expect(await as(null)('GET', '/e2b/files?path=x', undefined, headers)).toMatchObject(bad);
    expect([await start(), await list()]).toEqual([unavailable, unavailable]);
    expect((await as(world.keys.ann)('GET', `/e2b/sandboxes/${id}`)).status).toBe(404);
  });

  test('ends a process with `unavailable` if its sandbox is deleted, whatever the runtime reports meanwhile', async () => {
    const door = await openDoor();
    vi.spyOn(door.world.skep.executions, 'output').mockImplementation(async () => {
      expect((await door.world.ann('DELETE', `/api/v1/sandboxes/${door.id}`)).status).toBe(204);
      throw new Failure('output_dropped', { oldest: 0 });
    });
    const messages = await stream(door, 'Start', wrapped(JSON.stringify({ process: { cmd: 'sleep' } })));
    expect(messages.at(-1)?.['error']).toEqual({ code: 'unavailable', message: expect.stringContaining('was not found: the sandbox was killed or reached its end of life') });
  });

  test.each([
    ['process_limit_reached', 'resource_exhausted'], ['unreachable', 'internal'],
  ] as const)('reports the failure %s of the runtime as `%s`, which E2B does not take for the end of the sandbox', async (reason, code) => {
    const door = await openDoor();
    const failure = new Failure('runtime_unavailable', { runtime: 'docker', reason: { code: reason }, retryAfterSeconds: 5 });
    vi.spyOn(door.world.skep.executions, 'run').mockRejectedValue(failure);
    expect(codeOf(await stream(door, 'Start', wrapped(JSON.stringify({ process: { cmd: 'sleep' } }))))).toBe(code);
  });

  test('refuses a token after its key is revoked, and ends its open stream', async () => {
    const door = await openDoor();
    const { world, headers, as } = door;
    const list = () => as(null)('POST', '/e2b/process.Process/List', {}, headers);
    expect((await list()).status).toBe(200);
    const open = stream(door, 'Start', wrapped(JSON.stringify({ process: { cmd: 'sleep' }, stdin: false })));
    await until(async () => object(await list())['processes'] as unknown[], (running) => running.length === 1);
    world.auth.revoke(world.keys.ann);
    expect((await list()).status).toBe(401);
    expect(codeOf(await open)).toBe('unauthenticated');
    expect(world.lines.filter(({ level }) => level === 'error')).toEqual([]);
  });

  test.each([
    ['process.Process/Start', { process: { cmd: 'sleep' }, stdin: false }],
    ['filesystem.Filesystem/WatchDir', { path: '/' }],
  ])('ends %s with `internal` when the server is closed, because the sandbox still runs', async (method, message) => {
    const { world, headers } = await openDoor();
    const body = new Uint8Array(wrapped(JSON.stringify(message)));
    const response = await fetch(`${world.url}/e2b/${method}`, { method: 'POST', headers: { ...headers, 'Content-Type': connectJson }, body });
    const reader = response.body!.getReader();
    await reader.read();
    await world.server.close();
    const rest = await reader.read();
    expect(Buffer.from(rest.value ?? []).toString()).toContain('"code":"internal"');
    expect(world.lines.filter(({ level }) => level === 'error')).toEqual([]);
  });

  test.each([
    ['process.Process/Start', { process: { cmd: 'sleep' }, stdin: false }],
    ['filesystem.Filesystem/WatchDir', { path: '/' }],
  ])('ends %s with `deadline_exceeded` at the time limit of the client', async (method, message) => {
    const { world, headers } = await openDoor();
    const limited = { ...headers, 'Content-Type': connectJson, 'Connect-Timeout-Ms': '300' };
    const body = new Uint8Array(wrapped(JSON.stringify(message)));
    const response = await fetch(`${world.url}/e2b/${method}`, { method: 'POST', headers: limited, body });
    expect(await response.text()).toContain('"code":"deadline_exceeded"');
  });

  test('reports `deadline_exceeded` also to a client that connects to a process after its time limit', async () => {
    const door = await openDoor();
    const headers = { ...door.headers, 'Connect-Timeout-Ms': '100' };
    const started = await stream({ ...door, headers }, 'Start', wrapped(JSON.stringify({ process: { cmd: 'sleep' }, stdin: false })));
    const [{ event: { start: { pid } } }] = started as [{ event: { start: { pid: number } } }];
    expect(codeOf(await stream(door, 'Connect', wrapped(JSON.stringify({ process: { pid } }))))).toBe('deadline_exceeded');
  });

  test('counts requests with a token against the request limit of its key', async () => {
    const { world, headers, as } = await openDoor({ requestsPerMinute: 4 });
    const list = async () => await as(null)('POST', '/e2b/process.Process/List', {}, headers);
    const [first, second, third, fourth] = [await list(), await list(), await list(), await list()];
    // The creation of the sandbox was the first request of the key.
    expect([first, second, third].map(({ status }) => status)).toEqual([200, 200, 200]);
    expect([fourth.status, object(fourth)['code'], (await world.ann('GET', '/api/v1/me')).status]).toEqual([429, 'resource_exhausted', 429]);
  });

  test('counts only streams and transfers against the stream limit, so a client at the limit can end its process', async () => {
    const door = await openDoor({ streamsPerKey: 1 });
    const call = (method: string, body = {}) => door.as(null)('POST', `/e2b/process.Process/${method}`, body, door.headers);
    const open = stream(door, 'Start', wrapped(JSON.stringify({ process: { cmd: 'sleep' }, stdin: false })));
    const [running] = await until(async () => object(await call('List'))['processes'] as { pid: number }[], (found) => found.length === 1);
    expect((await fetch(`${door.world.url}/e2b/files?path=/a`, { headers: door.headers })).status).toBe(429);
    expect((await call('SendSignal', { process: { pid: running?.pid }, signal: 'SIGNAL_SIGKILL' })).status).toBe(200);
    expect(await open).toContainEqual({ event: { end: expect.anything() } });
  });

  test.each([
    ['too large', {}, 'x'.repeat(5 * 2 ** 20), 413],
    ['not in its encoding', { 'Content-Encoding': 'br' }, 'x', 400],
    ['cut off in its encoding', { 'Content-Encoding': 'gzip' }, new Uint8Array(gzipSync('{"a":1}').subarray(0, 12)), 400],
    ['in an unknown encoding', { 'Content-Encoding': 'none' }, 'x', 400],
  ])('checks the key, and then refuses a body that is %s with an error of E2B', async (_, contentHeaders, body, status) => {
    const { world, headers } = await openDoor();
    const post = async (path: string, credential: Readonly<Record<string, string>>) => {
      const answer = await fetch(`${world.url}${path}`, { method: 'POST', body, headers: { ...contentHeaders, ...credential } });
      return [answer.status, ((await answer.json()) as { code: unknown }).code];
    };
    const [key, list] = [{ 'X-API-Key': world.keys.ann }, '/e2b/process.Process/List'];
    expect([await post('/e2b/v2/sandboxes', key), await post('/e2b/v2/sandboxes', {})]).toEqual([[status, status], [401, 401]]);
    expect([await post(list, headers), await post(list, {})]).toEqual([[400, 'invalid_argument'], [401, 'unauthenticated']]);
    expect(world.lines.filter(({ level }) => level === 'error')).toEqual([]);
  });
});
