import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import express from 'express';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createRouter } from '../../../src/adapters/http/index.ts';
import { createClient } from '../../support/client.ts';
import { createWorld, type World } from './world.ts';

let folder: string;
let world: World;
let host: Server;
let url: string;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'dashboard-'));
  mkdirSync(join(folder, 'assets'));
  writeFileSync(join(folder, 'index.html'), '<!doctype html><title>The page</title>');
  writeFileSync(join(folder, 'favicon.svg'), '<svg xmlns="http://www.w3.org/2000/svg"/>');
  writeFileSync(join(folder, 'assets', 'main-B4x_9.js'), 'start();');
  writeFileSync(join(folder, '.hidden'), 'nothing for anyone');
  world = await createWorld({ server: { dashboard: folder, failedLoginsPerMinute: 1, requestsPerMinute: 5 } });
  const app = express();
  app.use('/agents', createRouter(world.skep, { dashboard: folder, publicUrl: 'https://example.org/site' }));
  app.use('/bare', createRouter(world.skep, { dashboard: false }));
  host = app.listen(0, '127.0.0.1');
  await once(host, 'listening');
  url = `http://127.0.0.1:${(host.address() as AddressInfo).port}`;
});
afterAll(async () => {
  host.close();
  await world.close();
  rmSync(folder, { recursive: true });
});

const get = (path: string, headers?: Readonly<Record<string, string>>) => createClient(world.url, null)('GET', path, undefined, headers);

test('the page is served at / without a key, with its own content security policy, and caches must revalidate it', async () => {
  const answer = await get('/');
  expect(answer).toMatchObject({ status: 200, body: expect.stringContaining('The page') });
  expect(answer.headers.get('content-security-policy')?.split(';')).toEqual([
    "default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self' data:", "connect-src 'self'", "font-src 'self'",
    "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'",
  ]);
  expect(Object.fromEntries(answer.headers)).toMatchObject({
    'content-type': 'text/html; charset=utf-8', 'cache-control': 'no-cache', 'referrer-policy': 'no-referrer', 'x-content-type-options': 'nosniff',
  });
  // Without this Cache-Control, `fetch` sends `no-cache`, which asks for the whole response.
  expect(await get('/', { 'If-None-Match': answer.headers.get('etag') ?? '', 'Cache-Control': 'max-age=0' })).toMatchObject({ status: 304 });
});

test('a file with a hash in its name is cached for ever, and any other file is revalidated', async () => {
  const script = await get('/assets/main-B4x_9.js');
  expect([script.status, script.headers.get('cache-control')]).toEqual([200, 'public, max-age=31536000, immutable']);
  const icon = await get('/favicon.svg');
  expect([icon.status, icon.headers.get('cache-control')]).toEqual([200, 'no-cache']);
});

test('a path that is no file of the page gets the response of the API, with the headers of the API', async () => {
  const paths = ['/assets/other.js', '/assets/', '/assets', '/.hidden', '/../package.json', '/%2e%2e/package.json', '/assets/..%2findex.html'];
  for (const path of paths) expect((await get(path)).status, path).toBe(401);
  for (const method of ['POST', 'OPTIONS']) expect(await createClient(world.url, null)(method, '/')).toMatchObject({ status: 401 });
  const health = await get('/health');
  expect([health.headers.get('cache-control'), health.headers.get('content-security-policy')])
    .toEqual(['no-store', "default-src 'none';frame-ancestors 'none'"]);
});

test('requests for files of the page do not count against the request limit of a key', async () => {
  const client = createClient(world.url, world.keys.ben);
  for (let times = 0; times < 8; times += 1) expect(await client('GET', '/assets/main-B4x_9.js')).toMatchObject({ status: 200 });
  expect(await client('GET', '/api/v1/me')).toMatchObject({ status: 200 });
});

test('under a prefix, a request without the final slash is redirected to the page', async () => {
  const client = createClient(url, null);
  const bare = await client('GET', '/agents?x=1');
  expect([bare.status, bare.headers.get('location')]).toEqual([302, '/site/agents/']);
  expect(await client('GET', '/agents/')).toMatchObject({ status: 200, body: expect.stringContaining('The page') });
  expect(await client('GET', '/agents/assets/main-B4x_9.js')).toMatchObject({ status: 200 });
  const off = await client('GET', '/bare/');
  expect([off.status, off.headers.get('location')]).toEqual([302, '/bare/docs']);
  expect(await client('GET', '/bare/assets/main-B4x_9.js')).toMatchObject({ status: 401 });
});
