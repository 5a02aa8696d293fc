import { once } from 'node:events';
import type { Server } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import express, { type Express } from 'express';
import { afterEach, expect, test } from 'vitest';
import { WebSocket, WebSocketServer } from 'ws';
import { createRouter, handleUpgrades } from '../../../src/adapters/http/index.ts';
import { createClient, object } from '../../support/client.ts';
import { commands, runningSandbox } from './executions-support.ts';
import { createWorld, type World } from './world.ts';

let world: World;
let host: Server;
afterEach(async () => {
  host.closeAllConnections();
  host.close();
  await world.close();
});

/** Serves the router below `/agents` of an application, with a sandbox that runs. */
async function embedded(app: Express) {
  world = await createWorld({ command: commands });
  const { id } = await runningSandbox(world);
  app.use('/agents', createRouter(world.skep));
  host = app.listen(0, '127.0.0.1');
  await once(host, 'listening');
  const url = `http://127.0.0.1:${(host.address() as AddressInfo).port}`;
  return { url, client: createClient(url, world.keys.ann), sandbox: `/agents/api/v1/sandboxes/${id}` };
}

const bytes = { 'Content-Type': 'application/octet-stream' };

test('a file is written whole behind parsers that read bodies, or refused if its bytes are gone', async () => {
  const { client, sandbox } = await embedded(express().use(express.json(), express.raw()));
  const file = `${sandbox}/files?path=/workspace/file`;
  expect(await client('PUT', file, 'the content', bytes)).toMatchObject({ status: 200, body: { size: 11 } });
  expect(await client('PUT', file, '{"a": 1}', { 'Content-Type': 'application/json' })).toMatchObject({ status: 500 });
  expect(world.lines.find(({ level }) => level === 'error')).toMatchObject({ error: { message: expect.stringContaining('before the body parsers') } });
  expect((await client('GET', file)).body).toBe('the content');
  expect(await client('PUT', file, '', bytes)).toMatchObject({ status: 200, body: { size: 0 } });
});

test('endless streams end and requests are refused when the deployment is closed', async () => {
  const { url, client, sandbox } = await embedded(express());
  handleUpgrades(host, (request, response) => void host.emit('request', request, response), { path: '/agents' });
  const started = object(await client('POST', `${sandbox}/executions`, { command: ['sleep'], stdin: true }));
  const execution = `${sandbox}/executions/${String(started['id'])}`;
  const headers = { 'X-Session-API-Key': world.keys.ann };
  const output = await fetch(`${url}${execution}/output?follow=true`, { headers });
  const socket = new WebSocket(`${url.replace('http', 'ws')}${execution}/attach`, { headers });
  await once(socket, 'open');
  const closed = once(socket, 'close');
  await world.skep.close();
  expect(await output.text().catch(() => 'cut off')).toBe('cut off');
  expect((await closed)[0]).toBe(1001);
  expect(await client('GET', sandbox)).toMatchObject({ status: 503, body: { code: 'shutting_down' } });
});

test('WebSockets of other paths are left to the application', async () => {
  const app = express();
  const { url } = await embedded(app);
  handleUpgrades(host, app, { path: '/agents' });
  const own = new WebSocketServer({ noServer: true });
  host.on('upgrade', (request, socket, head) => {
    if (request.url === '/agents-chat') own.handleUpgrade(request, socket, head, (opened) => opened.send('hello'));
  });
  const socket = new WebSocket(`${url.replace('http', 'ws')}/agents-chat`);
  const [message] = await once(socket, 'message') as [Buffer];
  expect(message.toString()).toBe('hello');
  socket.close();
  expect((await once(socket, 'close'))[0]).toBe(1005);
});

test('an upgrade that nobody handles is closed, and its errors end nothing', async () => {
  const app = express();
  const { url, client, sandbox } = await embedded(app);
  handleUpgrades(host, app, { path: '/agents/' });
  for (const path of ['/agents-chat', '/']) {
    const socket = connect(Number(new URL(url).port), '127.0.0.1');
    socket.on('error', () => {});
    await once(socket, 'connect');
    socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`);
    await once(socket, 'close');
  }
  const socket = new WebSocket(`${url.replace('http', 'ws')}/agents/api/v1/nowhere`);
  const [error] = await once(socket, 'error') as [Error];
  expect(error.message).toContain('401');
  expect(await client('GET', sandbox)).toMatchObject({ status: 200 });
});

test('a silent stream outlives the time limit of the server for its connections', async () => {
  const { url, client, sandbox } = await embedded(express());
  host.setTimeout(300);
  const started = object(await client('POST', `${sandbox}/executions`, { command: ['sleep'] }));
  const execution = `${sandbox}/executions/${String(started['id'])}`;
  const output = await fetch(`${url}${execution}/output?follow=true`, { headers: { 'X-Session-API-Key': world.keys.ann } });
  const ended = output.text();
  await new Promise((resolve) => {
    setTimeout(resolve, 900);
  });
  await createClient(world.url, world.keys.ann)('POST', `${execution.slice('/agents'.length)}/signal`, { signal: 'SIGKILL' });
  expect(await ended).toBe('');
});

test('a principal with an unknown access is refused', async () => {
  const { client, sandbox } = await embedded(express());
  const key = world.auth.issue({ userId: 'ann', keyName: 'k', access: 'viewer' as 'read' });
  expect(await createClient(new URL(world.url).origin, key)('GET', '/api/v1/me')).toMatchObject({ status: 500 });
  expect(world.lines.find(({ level }) => level === 'error')).toMatchObject({ error: new Error('the key "k" has an unknown access: "viewer"') });
  expect(await client('GET', sandbox)).toMatchObject({ status: 200 });
});
