import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { sandboxToken } from '../../../src/adapters/e2b/sandbox-token.ts';
import { keyDigest } from '../../../src/adapters/shared/key-digest.ts';
import { cookieOf, send, type SendOptions, withKey } from './send.ts';
import { createWorld, deepSpec, guestSpec, type World } from './world.ts';

let world: World;
let id: string;
let key: string;
let port: number;
beforeAll(async () => {
  world = await createWorld({ specs: [guestSpec, deepSpec] });
  ({ id, key } = await world.start());
  ({ port } = world.proxy);
});
afterAll(() => world.close());

const base64 = (text: string): string => Buffer.from(text).toString('base64');
const basic = (text: string): string => `Basic ${base64(text)}`;
const byPath = (path = '/'): string => `/${id}/8000${path}`;

describe('a request to the sandbox', () => {
  test('contains no key, cookie or token of Skep', async () => {
    const link = await world.link(id);
    const token = new URL(link).searchParams.get('skep_link') ?? '';
    const cookie = await cookieOf(port, byPath(), link);
    const { ann } = world.keys;
    const [made, forE2b, e2bToken] = [`skep_${'Ab-9'.repeat(10)}x`, `e2b_${'0a'.repeat(43)}`, sandboxToken(world.skep, id, keyDigest(ann))];
    const secrets = [...Object.values(world.keys), key, token, e2bToken, made, forE2b, ...[`:${made}`, `u:${ann}`, `${ann}:`].map(base64)];
    // Only a look-up finds these keys, which have no prefix of Skep.
    const withoutPrefix = [
      { 'X-Session-API-Key': ann, Authorization: basic(`u:${ann}`), 'X-API-Key': `x, ${ann}`, 'X-Access-Token': `Bearer ${ann}` },
      { 'X-Session-API-Key': ann, Authorization: `Token ${ann}`, 'X-API-Key': `Bearer ${ann}`, 'X-Access-Token': `x,${key}` },
      { 'X-Session-API-Key': ann, Authorization: ann, 'X-API-Key': basic(`${ann}:`), 'X-Access-Token': `Token ${e2bToken}` },
    ];
    const all: Readonly<Record<string, string>>[] = [
      { 'X-Session-API-Key': ann, Authorization: `Bearer ${ann}`, Cookie: cookie },
      { 'X-Session-API-Key': key, Authorization: `bearer   ${key}  `, Cookie: `a=b; ${cookie}; c=d` },
      { Authorization: `Bearer ${key}`, Connection: 'x-session-api-key, keep-alive' },
      { Cookie: `${cookie}; ${cookie}`, Authorization: `Bearer ${ann}`, Referer: `http://x/?skep_link=${token}` },
      { 'X-Session-API-Key': ann, 'X-Skep-Sandbox-Id': id, 'X-Skep-Port': '8000', Cookie: `__Host-skep_x=${token}; SKEP_y=${key}` },
      { 'X-Session-API-Key': ann, 'X-API-Key': ann, 'X-Access-Token': e2bToken, Authorization: basic(`:${made}`) },
      { 'X-Session-API-Key': ann, 'X-API-Key': forE2b, 'X-Access-Token': key, Authorization: `Token ${made}` },
      ...withoutPrefix,
    ];
    for (const headers of all) {
      for (const method of ['GET', 'POST', 'DELETE']) {
        const query = method === 'GET' ? '' : `skep_link=${token}&skep%5Flink=${token}&`;
        const path = headers['X-Skep-Port'] === undefined ? byPath(`/all?${query}x=1`) : `/all?${query}x=1`;
        expect((await send(port, path, { method, headers, ...(method === 'POST' && { body: 'content' }) })).status).toBe(200);
      }
      const address = headers['X-Skep-Port'] === undefined ? byPath(`/?skep_link=${token}`) : `/?skep_link=${token}`;
      const socket = new WebSocket(`ws://127.0.0.1:${port}${address}`, { headers });
      await once(socket, 'open');
      socket.close();
    }
    const received = await world.received(id);
    expect(received).toContain('GET /all?x=1 HTTP/1.1');
    expect(received).toContain('GET / HTTP/1.1');
    expect(received).toContain('cookie: a=b; c=d');
    for (const secret of secrets) expect(received).not.toContain(secret);
    expect(received).not.toMatch(/x-session-api-key|skep_|x-skep-/i);
  });

  test('contains the credentials that are meant for the program', async () => {
    const cookie = await cookieOf(port, byPath(), await world.link(id));
    const own = { 'X-API-Key': 'of-the-program', 'X-Access-Token': 'f0'.repeat(64) };
    for (const authorization of ['Basic dXNlcjpwYXNz', 'Bearer of-the-program', 'Token x']) {
      const { body } = await send(port, byPath('/x'), { headers: { ...own, Cookie: `${cookie}; own=1`, Authorization: authorization } });
      expect((JSON.parse(body) as { headers: string[] }).headers).toEqual(expect.arrayContaining([authorization, 'own=1', ...Object.values(own)]));
    }
  });

  test('contains the key of the sandbox if the spec asks for it and the client has a valid credential', async () => {
    const { id: deep, key: own } = await world.start('deep');
    const seen = async (options: SendOptions): Promise<string> => (await send(port, `/${deep}/8000/x`, options)).body;
    const cookie = await cookieOf(port, `/${deep}/8000/`, await world.link(deep));
    for (const options of [withKey(world.keys.ann), withKey(own), { headers: { Cookie: cookie } }]) expect(await seen(options)).toContain(own);
    for (const options of [{}, withKey('wrong'), withKey(world.keys.ben)]) expect(await seen(options)).not.toMatch(/x-session-api-key/i);
    await world.ann('DELETE', `/api/v1/sandboxes/${deep}`);
  });
});
