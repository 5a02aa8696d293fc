import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import type { Server } from 'node:http';
import express from 'express';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createRouter } from '../../../src/adapters/http/index.ts';
import { createClient, object, type Client } from '../../support/client.ts';
import { createOpenApiChecker } from '../../support/openapi.ts';
import { createWorld, type World } from './world.ts';

let world: World;
let host: Server;
let url: string;
let client: Client;
beforeAll(async () => {
  world = await createWorld();
  const app = express();
  app.get('/', (_request, response) => void response.send('the host'));
  app.use('/agents', createRouter(world.skep, { publicUrl: 'https://example.org/site/', dashboard: false }));
  app.use('/plain', createRouter(world.skep));
  app.use('/parsed', express.json(), createRouter(world.skep));
  app.get('/after', (_request, response) => void response.send('still the host'));
  host = app.listen(0, '127.0.0.1');
  await once(host, 'listening');
  url = `http://127.0.0.1:${(host.address() as AddressInfo).port}`;
  client = createClient(url, world.keys.ann);
});
afterAll(async () => {
  host.close();
  await world.close();
});

test.each([Promise.resolve(), {}, undefined, null])('a router for %j instead of a Skep is refused with a hint at `await`', (skep) => {
  expect(() => createRouter(skep as never)).toThrow(/needs the Skep that createSkep resolves to; did you forget await/);
});

test('routes and Location headers work under a prefix', async () => {
  expect(await client('GET', '/agents/health')).toMatchObject({ status: 200 });
  expect(await client('GET', '/agents/api/user/repository/acme%2Fshop/microagents')).toMatchObject({ body: [{ name: 'deploy/aws' }] });
  expect(await client('GET', '/agents/api/user/repository//microagents')).toMatchObject({ status: 422 });
  const started = await client('POST', '/plain/api/v1/sandboxes', {});
  expect(started.headers.get('location')).toBe(`/plain/api/v1/sandboxes/${String(object(started)['id'])}`);
  expect(await client('GET', started.headers.get('location') ?? '')).toMatchObject({ status: 200 });
});

test('Location headers and server URLs begin with the public URL and its path', async () => {
  const started = await client('POST', '/agents/api/v1/app-conversations');
  expect(started.headers.get('location')).toBe(`/site/agents/api/v1/app-conversations/${String(object(started)['id'])}`);
  const { body } = await client('GET', '/agents/openapi.json');
  expect(body).toMatchObject({ servers: [{ url: 'https://example.org/site/agents' }] });
});

test('server URLs are relative without a public URL', async () => {
  const { body } = await client('GET', '/plain/openapi.json');
  expect(body).toMatchObject({ servers: [{ url: '/plain' }] });
});

test('a body that the host application has already parsed is used', async () => {
  expect(await client('POST', '/parsed/api/v1/app-conversations', { title: 'parsed' })).toMatchObject({ status: 201, body: { title: 'parsed' } });
  expect(await client('POST', '/parsed/api/v1/app-conversations', { titel: 'parsed' })).toMatchObject({ status: 422 });
  expect(await client('POST', '/parsed/api/v1/sandboxes')).toMatchObject({ status: 201 });
});

test('unknown routes under the prefix get documented problems, and other routes of the host still work', async () => {
  const checker = createOpenApiChecker((await client('GET', '/agents/openapi.json')).body);
  for (const [method, path, status] of [['GET', '/nowhere', 404], ['PUT', '/api/v1/sandboxes', 405], ['OPTIONS', '/docs', 405]] as const) {
    const answer = await client(method, `/agents${path}`);
    expect(answer.status).toBe(status);
    checker.check(method, path, answer);
  }
  for (const path of ['/agents', '/agents/']) {
    const answer = await client('GET', path);
    expect([answer.status, answer.headers.get('location')]).toEqual([302, '/site/agents/docs']);
  }
  expect(await createClient(url, null)('GET', '/agents/nowhere')).toMatchObject({ status: 401 });
  expect(await createClient(url, null)('GET', '/')).toMatchObject({ status: 200, body: 'the host' });
  expect(await createClient(url, null)('GET', '/after')).toMatchObject({ status: 200, body: 'still the host' });
});

test('responses have security headers, and do not reveal the framework', async () => {
  const { headers } = await client('GET', '/agents/api/v1/sandboxes/search');
  expect(headers.get('x-powered-by')).toBeNull();
  expect(headers.get('etag')).toBeNull();
  expect(Object.fromEntries(headers)).toMatchObject({
    'cache-control': 'no-store',
    'content-security-policy': "default-src 'none';frame-ancestors 'none'",
    'x-content-type-options': 'nosniff',
    'x-frame-options': 'DENY',
    'referrer-policy': 'no-referrer',
  });
});
