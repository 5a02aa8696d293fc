import { once } from 'node:events';
import { request } from 'node:http';
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { tarEntries } from '../../../src/adapters/sandbox-runtime/tar.ts';
import { items, object } from '../../support/client.ts';
import { until } from '../../support/until.ts';
import { runningSandbox } from './executions-support.ts';
import { createWorld, startWorld, type World } from './world.ts';

let world: World;
let sandbox = '';
beforeAll(async () => {
  world = await createWorld();
  sandbox = `/api/v1/sandboxes/${(await runningSandbox(world)).id}`;
});
afterAll(() => world.close());

const bytes = { 'Content-Type': 'application/octet-stream' };
const at = (kind: string, path: string): string => `${sandbox}/${kind}?path=${encodeURIComponent(path)}`;
const put = (path: string, content: string) => world.ann('PUT', at('files', path), content, bytes);
const putIf = (headers: Readonly<Record<string, string>>) =>
  world.ann('PUT', at('files', '/workspace/guarded'), 'text', { ...bytes, ...headers });
const get = (path: string, headers: Readonly<Record<string, string>> = {}) => world.ann('GET', at('files', path), undefined, headers);

const seen = async () => object(await world.ann('GET', sandbox))['last_active_at'];

describe('a file', () => {
  test('is returned whole or in ranges, with the conditions of RFC 9110', async () => {
    const etag = (await put('/workspace/file', '0123456789')).headers.get('etag') ?? '';
    for (const [range, status, body, part] of [
      ['bytes=0-0', 206, '0', 'bytes 0-0/10'], ['bytes=3-', 206, '3456789', 'bytes 3-9/10'], ['bytes=-4', 206, '6789', 'bytes 6-9/10'],
      ['bytes=5-500', 206, '56789', 'bytes 5-9/10'], ['bytes=-500', 206, '0123456789', 'bytes 0-9/10'],
      ['bytes=0-1,5-6', 200, '0123456789', null], ['lines=1-2', 200, '0123456789', null], ['nonsense', 200, '0123456789', null],
    ] as const) {
      const answer = await get('/workspace/file', { Range: range });
      expect([answer.status, answer.body, answer.headers.get('content-range'), answer.headers.get('etag')], range).toEqual([status, body, part, etag]);
    }
    const beyond = await get('/workspace/file', { Range: 'bytes=10-' });
    expect([beyond.status, beyond.headers.get('content-range')]).toEqual([416, 'bytes */10']);
    expect(object(beyond)).toMatchObject({ code: 'range_not_satisfiable', size: 10 });
    expect((await get('/workspace/file', { 'Range': 'bytes=0-0', 'If-Range': '"other"' })).status).toBe(200);
    for (const known of [etag, `"x", W/${etag}`, '*']) expect((await get('/workspace/file', { 'If-None-Match': known })).status, known).toBe(304);
    const head = await world.ann('HEAD', at('files', '/workspace/file'));
    expect([head.status, head.body, head.headers.get('content-length')]).toEqual([200, '', '10']);
    await put('/workspace/file', 'other');
    expect((await get('/workspace/file', { 'If-None-Match': etag })).body).toBe('other');
    await put('/workspace/empty', '');
    expect((await get('/workspace/empty')).headers.get('content-length')).toBe('0');
    for (const [range, status] of [['bytes=0-99', 200], ['bytes=-5', 200], ['bytes=1-', 416]] as const) {
      expect((await get('/workspace/empty', { Range: range })).status, range).toBe(status);
    }
  });

  test('is written only if the conditions of RFC 9110 hold', async () => {
    expect((await putIf({ 'If-Match': '*' })).status).toBe(412);
    const created = await putIf({ 'If-None-Match': '*' });
    const etag = created.headers.get('etag') ?? '';
    expect([created.status, (await putIf({ 'If-None-Match': '*' })).status, (await putIf({ 'If-None-Match': etag })).status]).toEqual([200, 412, 412]);
    const refused = await putIf({ 'If-Match': '"other"' });
    expect([refused.status, object(refused)]).toEqual([412, expect.objectContaining({ code: 'precondition_failed', etag })]);
    expect((await putIf({ 'If-Match': `"other", ${etag}` })).status).toBe(200);
    // The tag as a proxy that compresses returns it.
    const weak = `W/${(await get('/workspace/guarded')).headers.get('etag')}`;
    expect((await putIf({ 'If-Match': weak })).status).toBe(200);
  });

  test('is not changed if the client disconnects during the upload', async () => {
    await put('/workspace/kept', 'old');
    const broken = request(world.url + at('files', '/workspace/kept'), {
      method: 'PUT', headers: { 'X-Session-API-Key': world.keys.ann, 'Content-Length': '1000000', 'Expect': '100-continue' },
    });
    broken.on('error', () => {});
    broken.flushHeaders();
    await once(broken, 'continue');
    broken.write(Buffer.alloc(70_000));
    broken.destroy();
    await until(() => world.lines.some(({ method, aborted }) => method === 'PUT' && aborted === true), Boolean);
    expect((await get('/workspace/kept')).body).toBe('old');
    expect(world.lines.filter(({ level }) => level === 'error')).toEqual([]);
  });

  test('counts as activity of its sandbox when it is written, not when it is read', async () => {
    await put('/workspace/file', 'one');
    const before = await seen();
    await get('/workspace/file');
    expect(await seen()).toBe(before);
    await until(async () => (await put('/workspace/file', 'two'), await seen()), (time) => time !== before);
  });
});

test('a directory is listed page by page, with page tokens for this directory only', async () => {
  for (let index = 0; index < 7; index += 1) await put(`/workspace/many/${index}/deep`, 'x');
  const names: string[] = [];
  for (let page = ''; ; ) {
    const answer = await world.ann('GET', `${at('directories', '/workspace/many')}&depth=2&limit=3${page}`);
    names.push(...items(answer).map(({ path }) => String(path).replace('/workspace/many/', '')));
    const next = object(answer)['next_page_id'] as string | null;
    if (next === null) break;
    page = `&page_id=${next}`;
    const other = await world.ann('GET', `${at('directories', '/workspace')}&limit=3${page}`);
    expect(other.status).toBe(422);
  }
  expect(names).toEqual(Array.from({ length: 7 }, (_, index) => [`${index}`, `${index}/deep`]).flat());
});

test('files cannot be changed with a read-only key, and not found by another owner', async () => {
  await put('/workspace/file', 'mine');
  const [ben, reader] = [world.client(world.keys.ben), world.client(world.keys.reader)];
  const changes = [['PUT', 'files'], ['DELETE', 'files'], ['POST', 'directories'], ['PUT', 'archive']] as const;
  for (const [method, kind] of changes) {
    expect(object(await reader(method, at(kind, '/workspace/file'))), `${method} ${kind}`).toMatchObject({ code: 'forbidden' });
    expect(object(await ben(method, at(kind, '/workspace/file'))), `${method} ${kind}`).toMatchObject({ code: 'sandbox_not_found' });
  }
  expect((await reader('GET', at('files', '/workspace/file'))).body).toBe('mine');
  for (const kind of ['files', 'directories', 'archive']) {
    expect(object(await ben('GET', at(kind, '/workspace/file')))).toMatchObject({ code: 'sandbox_not_found' });
  }
  expect((await get('/workspace/file')).body).toBe('mine');
});

test('a malformed path or parameter is a 422, and a path of a missing or wrong file is a problem', async () => {
  for (const path of ['relative', '/a/../b', '']) {
    const answer = await get(path);
    expect([answer.status, JSON.stringify(answer.body)], path).toEqual([422, expect.stringContaining('["query","path"]')]);
  }
  expect((await world.ann('GET', `${sandbox}/files`)).status).toBe(422);
  for (const query of ['depth=0', 'depth=33', 'depth=x']) {
    expect((await world.ann('GET', `${at('directories', '/workspace')}&${query}`)).status, query).toBe(422);
  }
  expect((await world.ann('PUT', `${at('files', '/workspace/file')}&mode=999`, 'x', bytes)).status).toBe(422);
  expect(object(await get('/workspace'))).toMatchObject({ code: 'wrong_file_type', path: '/workspace', file_type: 'directory' });
  expect(object(await world.ann('DELETE', at('files', '/workspace')))).toMatchObject({ code: 'wrong_file_type' });
  expect(object(await get('/workspace/none'))).toMatchObject({ code: 'file_not_found', path: '/workspace/none' });
});

test('a part of a file, and a compressed body, are refused and change nothing', async () => {
  await put('/workspace/kept', 'whole');
  const headers = [['content-range', 'bytes 0-3/5'], ['content-encoding', 'gzip']] as const;
  for (const [name, value] of headers) {
    for (const kind of ['files', 'archive']) {
      const answer = await world.ann('PUT', at(kind, '/workspace/kept'), 'part', { ...bytes, [name]: value });
      expect(answer, `${kind} ${name}`).toMatchObject({ status: 422, body: { detail: [{ loc: ['header', name] }] } });
    }
  }
  expect((await get('/workspace/kept')).body).toBe('whole');
  expect((await world.ann('PUT', at('files', '/workspace/kept'), 'same', { ...bytes, 'Content-Encoding': 'identity' })).status).toBe(200);
});

/** Sends `sent` of `length` bytes, and returns the response's text as soon as it contains the pattern. */
async function upload({ url, keys }: World, target: string, length: number, sent: number, pattern: RegExp): Promise<string> {
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  socket.write(`PUT ${target} HTTP/1.1\r\nHost: skep\r\nX-Session-API-Key: ${keys.ann}\r\nContent-Length: ${length}\r\n\r\n`);
  socket.write(Buffer.alloc(sent, 'x'));
  try {
    let response = '';
    for await (const chunk of socket) if (pattern.test((response += String(chunk)))) return response;
    return response;
  } finally {
    socket.destroy();
  }
}

describe.each([['whole', 10_240, 10_240], ['large', 3_000_000, 3_000_000], ['not complete', 3_000_000, 70_000]])(
  'a refused upload that is %s gets its response', (_, length, sent) => {
    test('for a file', async () => {
      await put('/workspace/directory/file', 'x');
      const response = await upload(world, at('files', '/workspace/directory'), length, sent, /wrong_file_type/);
      expect(response).toMatch(/^HTTP\/1.1 409 [^]*wrong_file_type/);
    });

    test('for an archive', async () => {
      using writing = vi.spyOn(world.skep.files, 'writeArchive');
      writing.mockImplementation(async (_scope, _id, _directory, archive, signal) => {
        for await (const _ of tarEntries(archive, signal));
      });
      const response = await upload(world, at('archive', '/workspace'), length, sent, /not a whole tar/);
      expect(response).toMatch(/^HTTP\/1.1 422 [^]*it is not a whole tar archive/);
    });
  },
);

test('the connection of a refused upload can be used again, and is closed if the rest of the upload takes too long', async () => {
  const own = await startWorld({ server: { requestTimeoutMs: 1500, headersTimeoutMs: 1500 } });
  const path = `/api/v1/sandboxes/${(await runningSandbox(own)).id}/files?path=/workspace`;
  const socket = connect(Number(new URL(own.url).port), '127.0.0.1');
  let responses = '';
  socket.on('data', (chunk) => (responses += String(chunk))).on('error', () => {});
  // Not `once` of `node:events`, which rejects if the connection is reset.
  const closed = new Promise((resolve) => socket.once('close', resolve));
  const send = (length: number): void => {
    socket.write(`PUT ${path} HTTP/1.1\r\nHost: skep\r\nX-Session-API-Key: ${own.keys.ann}\r\nContent-Length: ${length}\r\n\r\nx`);
  };
  const refused = (times: number) => until(() => responses.split('wrong_file_type"').length - 1, (count) => count >= times);
  send(5);
  await refused(1);
  socket.write('rest');
  send(1_000_000);
  await refused(2);
  const dripping = setInterval(() => socket.write('x'), 50);
  await closed;
  clearInterval(dripping);
});

test('an upload can take longer than other requests, but is cut off if it stalls', async () => {
  const own = await startWorld({ server: { requestTimeoutMs: 900, headersTimeoutMs: 900, writeTimeoutMs: 1500 } });
  const path = `/api/v1/sandboxes/${(await runningSandbox(own)).id}/files?path=/workspace/slow`;
  const upload = request(own.url + path, { method: 'PUT', headers: { 'X-Session-API-Key': own.keys.ann, 'Content-Length': '20' } });
  const dripping = setInterval(() => upload.write('x'), 50);
  const [response] = (await once(upload, 'response').finally(() => clearInterval(dripping))) as [{ statusCode: number; resume(): void }];
  expect(response.statusCode).toBe(200);
  response.resume();
  const stalled = request(own.url + path, { method: 'PUT', headers: { 'X-Session-API-Key': own.keys.ann, 'Content-Length': '20' } });
  stalled.write('x');
  await expect(once(stalled, 'response')).rejects.toThrow();
  expect((await own.ann('GET', path)).body).toBe('x'.repeat(20));
});

test('a sandbox in ERROR that the engine does not have stays in ERROR in the failure', async () => {
  const own = await startWorld();
  const { id } = await runningSandbox(own);
  own.engine.crash(id);
  await until(() => own.ann('GET', `/api/v1/sandboxes/${id}`), (answer) => object(answer)['status'] === 'ERROR');
  own.engine.remove(id);
  const read = await own.ann('GET', `/api/v1/sandboxes/${id}/files?path=/workspace/file`);
  expect(read).toMatchObject({ status: 409, body: { code: 'sandbox_not_running', sandbox_status: 'ERROR' } });
});
