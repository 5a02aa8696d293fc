import { afterEach, describe, expect, test } from 'vitest';
import type { HttpServerOptions } from '../../../src/adapters/http/index.ts';
import { object } from '../../support/client.ts';
import { until } from '../../support/until.ts';
import { logged } from './support.ts';
import { createWorld, plainSpec, type World } from './world.ts';

const worlds: World[] = [];
afterEach(async () => {
  for (const world of worlds.splice(0)) await world.close();
});

async function started(server: HttpServerOptions = {}) {
  const world = await createWorld({ server, specs: [{ ...plainSpec, initialEnv: { GIT_TOKEN: 'a-token-that-nobody-may-see' } }] });
  worlds.push(world);
  const { id } = await world.skep.sandboxes.start('ann', { specId: null });
  const { instanceId } = await until(() => world.skep.sandboxes.get('ann', id), ({ status }) => status === 'RUNNING', 60_000);
  return { world, id, path: `/api/v1/sandboxes/${id}/logs`, write: (text: string | Uint8Array) => world.engine.write(instanceId, text) };
}

const aborted = { route: '/api/v1/sandboxes/{id}/logs', aborted: true };

async function opened(world: World, path: string, key = world.keys.ann) {
  const leaving = new AbortController();
  const response = await fetch(world.url + path, { headers: { 'X-Session-API-Key': key }, signal: leaving.signal });
  const reader = response.body!.getReader();
  return { response, leave: () => leaving.abort(), next: async () => Buffer.from((await reader.read()).value ?? []).toString() };
}

describe('the log of a sandbox', () => {
  test('can be read whole or from its end, also with a read-only key, and reading does not resume a paused sandbox', async () => {
    const { world, id, path, write } = await started();
    expect((await world.ann('GET', path)).body).toBe('');
    write('one\ntwo\n');
    expect(await world.ann('GET', `${path}?follow=false`)).toMatchObject({ status: 200, body: 'one\ntwo\n' });
    expect((await world.client(world.keys.reader)('GET', `${path}?tail_bytes=5`)).body).toBe('\ntwo\n');
    for (const kind of ['freeze', 'stop']) {
      await world.ann('POST', `/api/v1/sandboxes/${id}/pause`, { pause_kind: kind });
      expect((await world.ann('GET', path)).body).toBe('one\ntwo\n');
      expect(object(await world.ann('GET', `/api/v1/sandboxes/${id}`))).toMatchObject({ status: 'PAUSED', pause_kind: kind });
    }
  });

  test('is not found by another owner, and wrong parameters are refused', async () => {
    const { world, path } = await started();
    expect(await world.client(world.keys.ben)('GET', path)).toMatchObject({ status: 404, body: { code: 'sandbox_not_found' } });
    expect(await world.client(null)('GET', path)).toMatchObject({ status: 401 });
    for (const query of ['tail_bytes=-1', 'tail_bytes=1e3', 'tail_bytes=1048577', 'follow=yes', 'follow=true&follow=true']) {
      expect((await world.ann('GET', `${path}?${query}`)).status, query).toBe(422);
    }
    expect((await world.ann('HEAD', `${path}?follow=true`)).status).toBe(200);
  });

  test('has its original bytes, but no secret, even if one is written in parts or begins before the requested end', async () => {
    const { world, path, write } = await started();
    const follower = await opened(world, `${path}?follow=true`);
    expect(follower.response.headers.get('content-type')).toBe('text/plain; charset=utf-8');
    write(Uint8Array.of(0, 255, 10));
    expect(await follower.next()).toBe(Buffer.of(0, 255, 10).toString());
    write('it is a-token-that-');
    expect(await follower.next()).toBe('it is ');
    write('nobody-may-see!');
    expect(await follower.next()).toBe('**********!');
    expect((await world.ann('GET', `${path}?tail_bytes=16`)).body).toBe('!');
    follower.leave();
    await logged(world, aborted);
  });

  test('can be followed until the sandbox stops', async () => {
    const { world, id, path, write } = await started();
    write('one\n');
    const follower = await opened(world, `${path}?follow=true&tail_bytes=0`);
    // The text begins and ends with a line break, since a part that can belong to a secret would be held back.
    write('\ntwo\n');
    expect(await follower.next()).toBe('\ntwo\n');
    await world.ann('POST', `/api/v1/sandboxes/${id}/pause`, { pause_kind: 'stop' });
    expect(await follower.next()).toBe('');
  });

  test('is cut off when the key is revoked, and when the server is closed', async () => {
    const { world, path, write } = await started();
    write('one\n');
    const [revoked, other] = [await opened(world, `${path}?follow=true`), await opened(world, `${path}?follow=true`, world.keys.admin)];
    expect([await revoked.next(), await other.next()]).toEqual(['one\n', 'one\n']);
    world.auth.revoke(world.keys.ann);
    await expect(revoked.next()).rejects.toThrow();
    write('two\n');
    expect(await other.next()).toBe('two\n');
    await Promise.all([expect(other.next()).rejects.toThrow(), world.server.close()]);
    expect(world.lines.filter(({ level }) => level === 'error')).toEqual([]);
  });

  test('counts against the stream limit of its key', async () => {
    const { world, path } = await started({ streamsPerKey: 1 });
    const one = await opened(world, `${path}?follow=true`);
    expect(await world.ann('GET', path)).toMatchObject({ status: 429, body: { code: 'rate_limited' } });
    one.leave();
    await logged(world, aborted);
    expect((await world.ann('GET', path)).status).toBe(200);
  });

  test('is not kept in memory for a client that does not read, which is cut off', async () => {
    const { world, path, write } = await started({ writeTimeoutMs: 1000 });
    write(new Uint8Array(64 << 20).fill(120));
    const unread = await opened(world, `${path}?follow=true`);
    const connection = await until(() => [...world.connections].find(({ writableLength }) => writableLength > 0), Boolean, 60_000);
    await logged(world, aborted);
    expect(connection?.bytesWritten).toBeLessThan(40_000_000);
    unread.leave();
  });
});
