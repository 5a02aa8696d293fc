import { expect } from 'vitest';
import { type Answer, items, object } from '../support/client.ts';
import { until } from '../support/until.ts';

type Ask = (method: string, template: string, path: string, body?: unknown, headers?: Readonly<Record<string, string>>) => Promise<Answer>;

const bytes = { 'Content-Type': 'application/octet-stream' };

/** Calls every operation of files. */
export async function callEachOfFiles(ask: Ask): Promise<void> {
  const sandbox = `/api/v1/sandboxes/${String(object(await ask('POST', '/api/v1/sandboxes', '/api/v1/sandboxes', {}))['id'])}`;
  await until(async () => object(await ask('GET', '/api/v1/sandboxes/{id}', sandbox)), ({ status }) => status === 'RUNNING');
  const call = async (method: string, kind: string, path: string, body?: unknown, headers = {}) =>
    ask(method, `/api/v1/sandboxes/{id}/${kind}`, `${sandbox}/${kind}?path=${path}`, body, headers);

  const written = await call('PUT', 'files', '/workspace/notes/a.txt&mode=0600', '0123456789', bytes);
  expect(object(written)).toEqual({
    name: 'a.txt', path: '/workspace/notes/a.txt', type: 'file', size: 10, mode: '0600', modified_at: expect.any(String), target: null,
  });
  const etag = written.headers.get('etag') ?? '';
  const read = await call('GET', 'files', '/workspace/notes/a.txt');
  expect([read.body, read.headers.get('etag'), read.headers.get('content-length')]).toEqual(['0123456789', etag, '10']);
  const part = await call('GET', 'files', '/workspace/notes/a.txt', undefined, { 'Range': 'bytes=-3', 'If-Range': etag });
  expect([part.status, part.body, part.headers.get('content-range')]).toEqual([206, '789', 'bytes 7-9/10']);
  expect((await call('GET', 'files', '/workspace/notes/a.txt', undefined, { 'If-None-Match': etag })).status).toBe(304);

  expect((await call('POST', 'directories', '/workspace/notes/made')).status).toBe(201);
  expect((await call('POST', 'directories', '/workspace/notes/made')).status).toBe(200);
  expect(items(await call('GET', 'directories', '/workspace/notes')).map(({ name }) => name)).toEqual(['a.txt', 'made']);
  const archive = await call('GET', 'archive', '/workspace/notes');
  expect(archive.headers.get('content-type')).toBe('application/x-tar');
  expect((await call('PUT', 'archive', '/workspace/copy', archive.body, bytes)).status).toBe(204);
  expect((await call('GET', 'files', '/workspace/copy/notes/a.txt')).body).toBe('0123456789');
  expect((await call('DELETE', 'files', '/workspace/copy&recursive=true')).status).toBe(204);
  await ask('DELETE', '/api/v1/sandboxes/{id}', sandbox);
}
