import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { afterEach, beforeEach, test } from 'vitest';
import { createNetworkProbe } from '../../../src/adapters/readiness-probe/network-probe.ts';
import type { ProbeMiss } from '../../../src/domain/readiness.ts';
import { until } from '../../support/until.ts';
import { createPlace, type Place } from './place.ts';

const { signal } = new AbortController();
let place: Place;

beforeEach(async () => {
  place = await createPlace();
});

afterEach(() => place.close());

const http = (path: string) => ({ probe: { kind: 'http', port: 80, path }, withinMs: 1 }) as const;
const urls = (url: string) => [{ name: 'WEB', url, port: 80 }];

test('requests the path of the rule, only from the host in the URL', async () => {
  await place.answer(200);
  for (const path of ['/health?deep=1', '//127.0.0.1:1/elsewhere', '/a%20b']) {
    await createNetworkProbe().untilReady(http(path), urls(place.url), signal);
    assert.equal(place.requests.at(-1), `GET ${path} HTTP/1.1`);
  }
});

test('reports an invalid path or an unknown host, and keeps trying', async () => {
  await place.answer(200);
  for (const [path, url, kinds] of [['/a b\n', place.url, ['invalid_path']], ['/', 'http://no-such-host.invalid:80', ['host_unknown', 'silent']]] as const) {
    const controller = new AbortController();
    const { promise: told, resolve } = Promise.withResolvers<ProbeMiss>();
    const ready = createNetworkProbe().untilReady(http(path), urls(url), controller.signal, resolve);
    const miss = await told;
    // The DNS lookup may take longer than an attempt.
    assert.ok(kinds.some((kind) => kind === miss.kind), JSON.stringify(miss));
    controller.abort(new Error('enough'));
    await assert.rejects(ready, /enough/);
  }
});

test('reports a closed connection and a malformed response as such', async () => {
  let greeting: string | null = null;
  const server = createServer((socket) => {
    socket.on('error', () => {}).once('data', () => void (greeting === null ? socket.destroy() : socket.end(greeting)));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const controller = new AbortController();
  try {
    const { port } = server.address() as AddressInfo;
    const told: ProbeMiss[] = [];
    const met = (kind: ProbeMiss['kind']) => until(() => told.at(-1), (miss) => miss?.kind === kind);
    const ready = createNetworkProbe().untilReady(http('/'), urls(`http://127.0.0.1:${port}`), controller.signal, (miss) => told.push(miss));
    ready.catch(() => {});
    await met('closed');
    greeting = 'SSH-2.0-server of secrets\r\n';
    await met('malformed');
    assert.doesNotMatch(JSON.stringify(told), /secrets/);
    controller.abort(new Error('enough'));
    await assert.rejects(ready, /enough/);
  } finally {
    controller.abort();
    server.close();
  }
});

test('ends an attempt that hangs, and tries again', async () => {
  await place.answer('silent');
  const ready = createNetworkProbe({ attemptMs: 20 }).untilReady(http('/'), urls(place.url), signal);
  for (let times = 0; times < 3; times += 1) await place.asked();
  await place.answer(200);
  await ready;
});

test('is not ready while a proxy accepts connections and closes them at once', async () => {
  let listens = false;
  const proxy = createServer((socket) => {
    socket.on('error', () => {});
    if (!listens) socket.end();
  }).listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  const url = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
  const told: ProbeMiss[] = [];
  const controller = new AbortController();
  try {
    const rule = { probe: { kind: 'tcp', port: 80 }, withinMs: 1 } as const;
    const ready = createNetworkProbe().untilReady(rule, urls(url), controller.signal, (miss) => told.push(miss));
    await until(() => told.length, (count) => count >= 3);
    assert.deepEqual(told[0], { kind: 'closed' });
    listens = true;
    await ready;
  } finally {
    controller.abort();
    proxy.close();
  }
});
