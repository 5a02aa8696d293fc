import { hash, randomBytes } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { describe, expect, test, vi } from 'vitest';
import { e2b } from '../../../src/adapters/e2b/index.ts';
import { Failure } from '../../../src/domain/failure.ts';
import { createClient, object } from '../../support/client.ts';
import { until } from '../../support/until.ts';
import { startWorld } from '../http/world.ts';
import { type Door, openDoor, stream, wrapped } from './door.ts';

/** Calls a method of the files with one message. */
const filesystemOf = ({ as, headers }: Door) => async (method: string, message: object) =>
  object(await as(null)('POST', `/e2b/filesystem.Filesystem/${method}`, message, headers));

/** The changes that a new file with content is. */
const newFile = [{ name: 'new', type: 'EVENT_TYPE_CREATE' }, { name: 'new', type: 'EVENT_TYPE_WRITE' }];

/** Watches a directory that gets a file. Each further reading of it waits for `release`. */
async function watchWithHeldReadings() {
  const door = await openDoor();
  const { id, world } = door;
  const call = filesystemOf(door);
  const { watcherId } = await call('CreateWatcher', { path: '/workspace' });
  expect((await world.ann('PUT', `/api/v1/sandboxes/${id}/files?path=/workspace/new`, 'x')).status).toBe(200);
  const held = Promise.withResolvers<void>();
  const { files } = world.skep;
  const list = files.list.bind(files);
  const readings = vi.spyOn(files, 'list').mockImplementation(async (...args) => {
    const found = await list(...args);
    await held.promise;
    return found;
  });
  return {
    poll: async () => await call('GetWatcherEvents', { watcherId }), remove: async () => await call('RemoveWatcher', { watcherId }),
    readingsBegin: async (count: number) => void (await until(() => readings.mock.calls.length, (begun) => begun === count)),
    release: held.resolve,
  };
}

const formOf = (content: string): string =>
  `--x\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n${content}\r\n--x--\r\n`;

const partOf = (name: number): string => `--x\r\nContent-Disposition: form-data; name="file"; filename="${name}"\r\n\r\n\r\n`;

describe("the files of E2B's clients", () => {
  test('lists the changes in a directory for clients without streams', async () => {
    const door = await openDoor();
    const { world, id } = door;
    const call = filesystemOf(door);
    const { watcherId } = await call('CreateWatcher', { path: '/workspace' });
    expect(await call('GetWatcherEvents', { watcherId })).toEqual({ events: [] });
    const file = `${world.url}/api/v1/sandboxes/${id}/files?path=/workspace/new`;
    await fetch(file, { method: 'PUT', body: 'x', headers: { 'X-Session-API-Key': world.keys.ann } });
    expect(await call('GetWatcherEvents', { watcherId })).toEqual({ events: newFile });
    expect(await call('GetWatcherEvents', { watcherId })).toEqual({ events: [] });
    expect(await call('RemoveWatcher', { watcherId })).toEqual({});
    expect(await call('GetWatcherEvents', { watcherId })).toMatchObject({ code: 'not_found' });
  });

  test('reports each change once, also if two requests ask at the same time', async () => {
    const { poll, readingsBegin, release } = await watchWithHeldReadings();
    const polls = [poll(), poll()];
    await readingsBegin(2);
    release();
    const events = (await Promise.all(polls)).flatMap((answer) => answer['events']);
    expect(events).toEqual(newFile);
    expect(await poll()).toEqual({ events: [] });
  });

  test('forgets a watch that is removed while a request reads its directory', async () => {
    const { poll, remove, readingsBegin, release } = await watchWithHeldReadings();
    const polled = poll();
    await readingsBegin(1);
    await remove();
    release();
    expect(await polled).toEqual({ events: [] });
    expect(await poll()).toMatchObject({ code: 'not_found' });
  });

  test('reports a renamed file as removed and created, but not as written', async () => {
    const door = await openDoor();
    const { world } = door;
    const call = filesystemOf(door);
    const list = vi.spyOn(world.skep.files, 'list');
    const show = (...names: readonly [string, number][]) => list.mockResolvedValueOnce({
      items: names.map(([name, modifiedAt]) => ({ path: `/workspace/${name}`, type: 'file', size: 1, mode: 0o644, modifiedAt, target: null, owner: null })),
      next: null,
    });
    show(['old', 1000.25]);
    const { watcherId } = await call('CreateWatcher', { path: '/workspace' });
    show(['new', 1000.25], ['other', 1000.5]);
    expect((await call('GetWatcherEvents', { watcherId }))['events']).toEqual([
      { name: 'old', type: 'EVENT_TYPE_REMOVE' }, { name: 'new', type: 'EVENT_TYPE_CREATE' },
      { name: 'other', type: 'EVENT_TYPE_CREATE' }, { name: 'other', type: 'EVENT_TYPE_WRITE' },
    ]);
  });

  test('reports an entry whose type changes as removed and created', async () => {
    const door = await openDoor();
    const call = filesystemOf(door);
    const list = vi.spyOn(door.world.skep.files, 'list');
    const show = (type: 'file' | 'directory', mode: number) => list.mockResolvedValueOnce({
      items: [{ path: '/workspace/a', type, size: 0, mode, modifiedAt: 1000, target: null, owner: null }], next: null,
    });
    show('file', 0o644);
    const { watcherId } = await call('CreateWatcher', { path: '/workspace' });
    show('directory', 0o755);
    const replaced = [{ name: 'a', type: 'EVENT_TYPE_REMOVE' }, { name: 'a', type: 'EVENT_TYPE_CREATE' }];
    expect((await call('GetWatcherEvents', { watcherId }))['events']).toEqual(replaced);
    show('file', 0o644);
    expect((await call('GetWatcherEvents', { watcherId }))['events']).toEqual(replaced);
  });

  test('handles paths as E2B does: relative ones, missing ones, and those of a wrong type', async () => {
    const door = await openDoor();
    const { as, world, headers, id } = door;
    const call = filesystemOf(door);
    const start = await stream({ world, headers }, 'Start', wrapped(JSON.stringify({ process: { cmd: 'echo', cwd: '..' } })));
    expect(start).toContainEqual({ event: { end: expect.objectContaining({ exitCode: 0 }) } });
    expect((await world.ann('PUT', `/api/v1/sandboxes/${id}/files?path=/workspace/file`, 'x')).status).toBe(200);
    expect(await call('ListDir', { path: 'file' })).toMatchObject({ code: 'invalid_argument' });
    expect((await as(null)('GET', '/e2b/files?path=/workspace', undefined, headers)).status).toBe(400);
    expect([await call('Remove', { path: 'file' }), await call('Remove', { path: 'file' })]).toEqual([{}, {}]);
    vi.spyOn(world.skep.files, 'list').mockResolvedValue({ items: [], next: { value: 1, id: 'more' } });
    expect(await call('ListDir', { path: '.' })).toMatchObject({ code: 'invalid_argument', message: expect.stringContaining('more than 10000') });
  });

  test('writes no file after an aborted upload, and can then delete the sandbox', async () => {
    const { world, id, headers, as } = await openDoor();
    const leaving = new AbortController();
    const form = `--x\r\nContent-Disposition: form-data; name="file"; filename="half"\r\n\r\n${'half of '.repeat(10_000)}`;
    const body = new ReadableStream<Uint8Array>({ start: (controller) => controller.enqueue(new TextEncoder().encode(form)) });
    const init = { method: 'POST', headers: { ...headers, 'Content-Type': 'multipart/form-data; boundary=x' }, body, duplex: 'half', signal: leaving.signal };
    const sent = fetch(`${world.url}/e2b/files`, init as RequestInit).catch((error: unknown) => error);
    await until(() => [...world.connections].some(({ bytesRead }) => bytesRead > form.length), Boolean);
    leaving.abort();
    expect(await sent).toMatchObject({ name: 'AbortError' });
    await until(() => world.lines.some(({ method, aborted }) => method === 'POST' && aborted === true), Boolean);
    expect((await fetch(`${world.url}/e2b/files?path=half`, { headers })).status).toBe(404);
    expect((await as(world.keys.ann)('DELETE', `/e2b/sandboxes/${id}`)).status).toBe(204);
  });

  test('writes the field `file` of a form, with and without a file name, to the path', async () => {
    const { world, headers } = await openDoor();
    const send = async (path: string, fields: Readonly<Record<string, string>>) => {
      const form = new FormData();
      for (const [name, value] of Object.entries(fields)) form.append(name, value);
      const answer = await fetch(`${world.url}/e2b/files?path=${path}`, { method: 'POST', headers, body: form });
      return [answer.status, await answer.json()];
    };
    expect(await send('/a', { other: 'ignored', file: 'file content' })).toEqual([200, [{ name: 'a', type: 'file', path: '/a' }]]);
    expect(await (await fetch(`${world.url}/e2b/files?path=/a`, { headers })).text()).toBe('file content');
    expect(await send('', { file: 'nowhere' })).toMatchObject([400, { message: expect.stringContaining('path') }]);
    for (const fields of [{}, { other: 'field' }]) expect(await send('/b', fields)).toMatchObject([400, { message: expect.stringContaining('no file') }]);
    expect((await fetch(`${world.url}/e2b/files?path=/b`, { headers })).status).toBe(404);
  });

  test.each([
    ['a form without a boundary', { 'Content-Type': 'multipart/form-data' }, 'x'],
    ['a form that ends too early', { 'Content-Type': 'multipart/form-data; boundary=x' }, '--x\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\nb'],
    ['in another encoding', { 'Content-Encoding': 'br', 'Content-Type': 'application/octet-stream' }, 'plain'],
    ['a part of the file', { 'Content-Range': 'bytes 0-4/9', 'Content-Type': 'application/octet-stream' }, 'plain'],
    ['a compressed part', { 'Content-Encoding': 'gzip', 'Content-Range': 'bytes 0-4/9' }, new Uint8Array(gzipSync('plain'))],
    ['not gzip', { 'Content-Encoding': 'gzip', 'Content-Type': 'application/octet-stream' }, 'plain'],
  ])('refuses an upload that is %s', async (_, contentHeaders, body) => {
    const { world, headers } = await openDoor();
    const answer = await fetch(`${world.url}/e2b/files?path=/a`, { method: 'POST', headers: { ...headers, ...contentHeaders }, body });
    expect(answer.status).toBe(400);
  });

  test.each([
    ['a form', { 'Content-Type': 'multipart/form-data; boundary=x' }, formOf('b'.repeat(4 << 20))],
    ['a form whose type has capitals', { 'Content-Type': 'Multipart/Form-Data; boundary=x' }, formOf('b')],
    ['gzip', { 'Content-Encoding': 'gzip', 'Content-Type': 'application/octet-stream' }, new Uint8Array(gzipSync(randomBytes(1 << 20)))],
  ])('logs an unexpected error of a write, and does not blame the body (%s)', async (_, contentHeaders, body) => {
    const { world, headers } = await openDoor();
    const bug = new TypeError('a bug');
    const write = vi.spyOn(world.skep.files, 'write').mockImplementationOnce(async (_caller, _id, _path, content) => {
      await content.getReader().read();
      throw bug;
    });
    const send = () => fetch(`${world.url}/e2b/files?path=/a`, { method: 'POST', headers: { ...headers, ...contentHeaders }, body });
    expect((await send()).status).toBe(500);
    expect(world.lines).toContainEqual(expect.objectContaining({ error: bug }));
    write.mockRestore();
    expect((await send()).status).toBe(200);
    expect((await (await fetch(`${world.url}/e2b/files?path=/a`, { headers })).text()).slice(0, 2)).not.toBe('--');
  });

  test.each([
    ['', 400], ['?path=/workspace', 400], ['?path=/a', 500],
  ])('answers when a compressed upload is refused unread (%s)', async (query, status) => {
    const { world, headers } = await openDoor();
    if (status === 500) vi.spyOn(world.skep.files, 'write').mockRejectedValueOnce(new TypeError('a bug'));
    const gzipHeaders = { ...headers, 'Content-Encoding': 'gzip', 'Content-Type': 'application/octet-stream' };
    const body = new Uint8Array(gzipSync(randomBytes(4 << 20)));
    const signal = AbortSignal.timeout(4000);
    const answer = await fetch(`${world.url}/e2b/files${query}`, { method: 'POST', headers: gzipHeaders, body, signal });
    expect(answer.status).toBe(status);
  });

  test('refuses two files of a form for one path', async () => {
    const { world, headers } = await openDoor();
    const statusOf = async (...names: readonly string[]): Promise<number> => {
      const form = new FormData();
      for (const name of names) form.append('file', new Blob([name]), name);
      return (await fetch(`${world.url}/e2b/files`, { method: 'POST', headers, body: form })).status;
    };
    expect([await statusOf('a', './a'), await statusOf('b', 'c')]).toEqual([400, 200]);
  });

  test('writes the files of a form one after the other, until the first error', async () => {
    const { world, headers } = await openDoor();
    const { files } = world.skep;
    const write = files.write.bind(files);
    let [now, most] = [0, 0];
    const writes = vi.spyOn(files, 'write').mockImplementation(async (...args) => {
      now += 1;
      most = Math.max(most, now);
      return await write(...args).finally(() => (now -= 1));
    });
    const init = { method: 'POST', headers: { ...headers, 'Content-Type': 'multipart/form-data; boundary=x' } };
    const statusOf = async (count: number): Promise<number> => {
      const body = `${Array.from({ length: count }, (_, name) => partOf(name)).join('')}--x--\r\n`;
      return (await fetch(`${world.url}/e2b/files`, { ...init, body })).status;
    };
    expect([await statusOf(50), most, writes.mock.calls.length]).toEqual([200, 1, 50]);
    writes.mockRejectedValueOnce(new Failure('file_not_found', { path: 'a' }));
    expect([await statusOf(50), writes.mock.calls.length]).toEqual([404, 51]);
  });

  test('refuses a file whose name is not UTF-8', async () => {
    const { world, headers } = await openDoor();
    const form = '--x\r\nContent-Disposition: form-data; name="file"; filename="NAME"\r\n\r\nb\r\n--x--\r\n';
    const statusOf = async (name: string): Promise<number> => {
      const init = { method: 'POST', headers: { ...headers, 'Content-Type': 'multipart/form-data; boundary=x' }, body: Buffer.from(form.replace('NAME', name), 'latin1') };
      return (await fetch(`${world.url}/e2b/files`, init)).status;
    };
    expect([await statusOf('caf\u00c3\u00a9'), await statusOf('caf\u00e9')]).toEqual([200, 400]);
  });

  test('refuses a URL with a made-up signature', async () => {
    const { as } = await openDoor();
    expect((await as(null)('GET', '/files?path=/etc/passwd&signature=v1_made-up')).status).toBe(401);
    expect((await as(null)('POST', '/files?path=/etc/passwd&signature=v1_made-up', {})).status).toBe(401);
  });

  test('counts wrong signatures, but not expired ones, which it does not search, as wrong keys of the address, and then refuses even a valid signature', async () => {
    const { world, id, headers } = await openDoor({ failedLoginsPerMinute: 2 });
    const signature = `v1_${hash('sha256', `/a:read::${headers['X-Access-Token']}`, 'base64').replace(/=+$/, '')}`;
    const get = async (given: string) => (await fetch(`${world.url}/files?path=/a&signature=${encodeURIComponent(given)}`)).status;
    expect((await world.ann('PUT', `/api/v1/sandboxes/${id}/files?path=/a`, 'x')).status).toBe(200);
    expect(await get(signature)).toBe(200);
    const search = vi.spyOn(world.skep.sandboxes, 'search');
    const expired = `v1_${hash('sha256', `/a:read::${headers['X-Access-Token']}:1`, 'base64').replace(/=+$/, '')}`;
    for (let count = 0; count < 4; count++) {
      const answer = await fetch(`${world.url}/files?path=/a&signature=${encodeURIComponent(expired)}&signature_expiration=1`);
      expect([answer.status, await answer.json()]).toEqual([401, { code: 401, message: 'signature is already expired' }]);
    }
    expect(search).not.toHaveBeenCalled();
    const wrong = `v1_${'A'.repeat(43)}`;
    expect([await get(wrong), await get(wrong), await get(wrong), await get(signature)]).toEqual([401, 401, 429, 429]);
    const { status } = await createClient(world.url, null)('GET', '/api/v1/me', undefined, { 'X-Session-API-Key': 'wrong' });
    expect(status).toBe(429);
    expect((await world.ann('GET', '/api/v1/me')).status).toBe(200);
  });

  test('logs the sandbox of a request, but nothing that the client has not proven', async () => {
    const { world, id, headers, as } = await openDoor();
    const signature = `v1_${hash('sha256', `/a:read::${headers['X-Access-Token']}`, 'base64').replace(/=+$/, '')}`;
    const secret = { 'E2b-Sandbox-Id': 'a-secret' };
    await as(world.keys.ann)('GET', '/e2b/v2/sandboxes', undefined, secret);
    await as(null)('GET', '/e2b/files?path=/a', undefined, { ...headers, ...secret });
    await as(null)('GET', `/files?path=/a&signature=${encodeURIComponent(signature)}`);
    const requests = () => world.lines.filter(({ message }) => message === 'request').map(({ method, path, sandbox }) => [method, path, sandbox]);
    await until(requests, (lines) => lines.some(([, path]) => path === '/files'));
    expect(requests().filter(([, path]) => path !== '/openapi.json')).toEqual([
      ['POST', '/e2b/v2/sandboxes', id], ['GET', '/e2b/v2/sandboxes', undefined], ['GET', '/e2b/files', undefined], ['GET', '/files', id],
    ]);
  });

  test('accepts the user of the spec in the query of a file', async () => {
    const world = await startWorld({ specs: [{ id: 'web', isolation: { user: '1000', readOnlyRoot: false, network: 'isolated' } }], server: { mounts: [e2b] } });
    const made = object(await createClient(world.url, null)('POST', '/e2b/v2/sandboxes', { templateID: 'web' }, { 'X-API-Key': world.keys.ann }));
    const headers = { 'E2b-Sandbox-Id': String(made['sandboxID']), 'X-Access-Token': String(made['envdAccessToken']) };
    const get = async (user: string) => (await createClient(world.url, null)('GET', `/e2b/files?path=x&username=${user}`, undefined, headers)).status;
    expect([await get('1000'), await get('root')]).toEqual([404, 400]);
  });
});
