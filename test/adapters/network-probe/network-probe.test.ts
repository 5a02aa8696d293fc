import assert from 'node:assert/strict';
import { afterEach, beforeEach, test } from 'vitest';
import { createNetworkProbe } from '../../../src/adapters/network-probe/index.ts';
import { createPlace, type Place } from './place.ts';

const { signal } = new AbortController();
let place: Place;

beforeEach(async () => {
  place = await createPlace();
});

afterEach(() => place.close());

const http = (path: string) => ({ probe: { kind: 'http', port: 80, path }, withinMs: 1 }) as const;
const urls = (url: string) => [{ name: 'WEB', url, port: 80 }];

test('asks for the path of the rule, at the place of the URL only', async () => {
  await place.answer(200);
  for (const path of ['/health?deep=1', '//127.0.0.1:1/elsewhere', '/a%20b']) {
    await createNetworkProbe().untilReady(http(path), urls(place.url), signal);
    assert.equal(place.requests.at(-1), `GET ${path} HTTP/1.1`);
  }
});

test('does not fail for a path or a host that nobody can be asked for', async () => {
  await place.answer(200);
  for (const [path, url] of [['/a b\n', place.url], ['/', 'http://no-such-host.invalid:80']] as const) {
    const controller = new AbortController();
    const ready = createNetworkProbe().untilReady(http(path), urls(url), controller.signal);
    const other = createNetworkProbe().untilReady(http('/'), urls(place.url), signal);
    await other;
    controller.abort(new Error('enough'));
    await assert.rejects(ready, /enough/);
  }
});

test('gives up an attempt that hangs, and makes another', async () => {
  await place.answer('silent');
  const ready = createNetworkProbe({ attemptMs: 20 }).untilReady(http('/'), urls(place.url), signal);
  for (let times = 0; times < 3; times += 1) await place.asked();
  await place.answer(200);
  await ready;
});
