import { afterAll, beforeAll, expect, test } from 'vitest';
import { createApiKeys } from '../../../src/adapters/auth/api-keys/index.ts';
import { createHttpServer, type HttpServer } from '../../../src/adapters/http/index.ts';
import { createInMemoryStore } from '../../../src/adapters/store/sqlite/index.ts';
import type { Skep } from '../../../src/application/skep.ts';
import { createSkep } from '../../../src/composition/create-skep.ts';
import type { ApiKeys } from '../../../src/ports/api-keys.ts';
import { type Client, createClient, items, object } from '../../support/client.ts';
import { createOpenApiChecker } from '../../support/openapi.ts';
import { startWorld } from './world.ts';

const path = '/api/v1/keys';

let skep: Skep;
let server: HttpServer;
let keys: ApiKeys;
const lines: { readonly message: string }[] = [];
let clientOf: (key: string | null) => Client;
let ann: Client;
let admin: Client;
beforeAll(async () => {
  const store = createInMemoryStore();
  skep = await createSkep({ store, logger: { debug() {}, info: (fields, message) => void lines.push({ ...fields, message }), warn() {}, error() {} } });
  server = await createHttpServer(skep, { port: 0, dashboard: false });
  keys = createApiKeys({ keys: store.apiKeys, clock: skep.clock, random: skep.random });
  const checker = createOpenApiChecker(await (await fetch(`${server.url}/openapi.json`)).json());
  clientOf = (key) => {
    const send = createClient(server.url, key);
    return async (method, route, ...rest) => {
      const answer = await send(method, route, ...rest);
      checker.check(method, route, answer);
      return answer;
    };
  };
  ann = clientOf((await keys.create({ name: 'ann', userId: 'ann' })).key);
  admin = clientOf((await keys.create({ name: 'root', access: 'admin' })).key);
});
afterAll(async () => {
  await server.close();
  await skep.close();
});

const named = (name: string) => ({ name });

test('a new key works, is listed without its value, and is refused after it is revoked', async () => {
  const made = await admin('POST', path, { name: 'ci', user_id: 'ann', access: 'read', expires_in_seconds: 60 });
  expect(made).toMatchObject({ status: 201, body: { name: 'ci', user_id: 'ann', access: 'read', repositories: null, key: expect.stringMatching(/^skep_/) } });
  const { id, key } = object(made);
  const logged = { request_id: expect.any(String), id, name: 'ci', user: 'ann', access: 'read' };
  expect(lines).toContainEqual({ ...logged, message: 'a key was created' });
  const ci = clientOf(String(key));
  expect(await ci('GET', '/api/v1/me')).toMatchObject({ body: { user_id: 'ann', key_name: 'ci', access: 'read', has_keys: true } });
  const listed = items(await ci('GET', path));
  expect(listed.map(({ name, state, is_own }) => [name, state, is_own])).toEqual([['ann', 'valid', false], ['ci', 'valid', true]]);
  expect(JSON.stringify(listed)).not.toContain(String(key).slice(5));
  expect(await ci('DELETE', `${path}/${String(id)}`)).toMatchObject({ status: 403 });
  expect(await ann('DELETE', `${path}/ci`)).toMatchObject({ status: 204 });
  const refused = await ci('GET', '/api/v1/me');
  expect(refused).toMatchObject({ status: 401 });
  expect(JSON.stringify(refused)).not.toContain(String(id));
  expect(lines.at(-1)).toMatchObject({ message: 'request', code: 'unauthorized', key_name: 'ci', user: 'ann', key_id: id, key_state: 'revoked', client: '127.0.0.1' });
  expect(await ann('DELETE', `${path}/${String(id)}`)).toMatchObject({ status: 204 });
  expect(lines.filter(({ message }) => message === 'a key was revoked')).toEqual([{ ...logged, message: 'a key was revoked' }]);
  expect(await ann('DELETE', `${path}/ci`)).toMatchObject({ status: 404, body: { code: 'key_not_found', key_id: 'ci' } });
});

test('an administrator key that is limited to repositories creates no key, and revokes only itself', async () => {
  const { key, record } = await keys.create({ name: 'limited', userId: 'cyd', access: 'admin', repositories: ['acme/*'] });
  const limited = clientOf(key);
  const refused = { status: 403, body: { code: 'forbidden', detail: expect.stringMatching(/^This API key may not .*\. Use one with admin access that is not limited to repositories\.$/) } };
  expect(await ann('POST', path, named('more'))).toMatchObject({ status: 403, body: { code: 'forbidden' } });
  expect(await limited('POST', path, named('more'))).toMatchObject(refused);
  for (const other of ['ann', 'root']) expect(await limited('DELETE', `${path}/${other}`)).toMatchObject(refused);
  expect(await ann('GET', '/api/v1/me')).toMatchObject({ status: 200 });
  expect(await limited('DELETE', `${path}/${record.id}`)).toMatchObject({ status: 204 });
  expect(await limited('GET', '/api/v1/me')).toMatchObject({ status: 401 });
});

test('a key that is limited to repositories revokes only itself, so it locks nobody out', async () => {
  const whole = clientOf((await keys.create({ name: 'whole', userId: 'eve' })).key);
  const limited = clientOf((await keys.create({ name: 'narrow', userId: 'eve', repositories: ['acme/*'] })).key);
  expect(await limited('DELETE', `${path}/whole`)).toMatchObject({
    status: 403, body: { code: 'forbidden', access: 'full', detail: 'This API key may not revoke another key. Use one with full access that is not limited to repositories.' },
  });
  expect(await whole('GET', '/api/v1/me')).toMatchObject({ status: 200 });
  expect(await limited('DELETE', `${path}/narrow`)).toMatchObject({ status: 204 });
  expect(await limited('GET', '/api/v1/me')).toMatchObject({ status: 401 });
});

test('an administrator lists and revokes all keys, and other users only their own keys, except administrator keys', async () => {
  expect(await admin('POST', path, { ...named('bobs'), user_id: 'bob' })).toMatchObject({ status: 201, body: { user_id: 'bob' } });
  expect(items(await admin('GET', path)).map(({ name }) => name)).toEqual(expect.arrayContaining(['ann', 'root', 'bobs']));
  expect(await ann('DELETE', `${path}/bobs`)).toMatchObject({ status: 404 });
  expect(await admin('DELETE', `${path}/bobs`)).toMatchObject({ status: 204 });
  const mate = clientOf((await keys.create({ name: 'mate' })).key);
  expect(items(await mate('GET', path)).map(({ name }) => name)).toEqual(['mate']);
  expect(await mate('DELETE', `${path}/root`)).toMatchObject({ status: 404 });
});

test('a wrong request for a new key is refused with the location of the mistake', async () => {
  const wrong = [
    [{ name: 'a\nb' }, ['body', 'name']],
    [{ ...named('x'), user_id: 'skep:quarantine' }, ['body', 'user_id']],
    [{ ...named('x'), user_id: 'x', repositories: ['**'] }, ['body', 'repositories']],
    [{ ...named('x'), repositories: ['acme/*'] }, ['body', 'user_id']],
    [{ ...named('x'), expires_in_seconds: 0 }, ['body', 'expires_in_seconds']],
  ] as const;
  for (const [body, loc] of wrong) expect(await admin('POST', path, body)).toMatchObject({ status: 422, body: { detail: [{ loc }] } });
  expect(await admin('POST', path, named('root'))).toMatchObject({ status: 409, body: { code: 'key_name_taken', name: 'root' } });
});

test('a login code works once, and returns a key for the user and access of the code', async () => {
  const { code } = await keys.createLoginCode({ userId: 'ann', access: 'read' });
  expect(await clientOf(code)('GET', '/api/v1/me')).toMatchObject({ status: 401 });
  const nobody = clientOf(null);
  const answers = await Promise.all(Array.from({ length: 5 }, () => nobody('POST', '/api/v1/login', { code })));
  expect(answers.map(({ status }) => status).filter((status) => status !== 403)).toEqual([200]);
  expect(answers.find(({ status }) => status === 403)?.body).toMatchObject({ code: 'login_code_invalid', detail: expect.stringContaining('skep dashboard') });
  const login = answers.find(({ status }) => status === 200);
  expect(login?.headers.get('cache-control')).toBe('no-store');
  expect(login?.body).toMatchObject({ user_id: 'ann', access: 'read', name: expect.stringMatching(/^dashboard key-/), expires_at: expect.any(String) });
  expect(await clientOf(String((login?.body as { key?: unknown } | undefined)?.key))('GET', '/api/v1/me')).toMatchObject({ body: { user_id: 'ann', access: 'read' } });
  expect(await nobody('POST', '/api/v1/login', { code: 'unknown' })).toMatchObject({ status: 403 });
  expect(await nobody('POST', '/api/v1/login', {})).toMatchObject({ status: 422 });
});

test('wrong login codes count against the limit of wrong keys', async () => {
  const world = await startWorld({ server: { failedLoginsPerMinute: 1 } });
  expect(await world.client(null)('POST', '/api/v1/login', { code: 'x' })).toMatchObject({ status: 409, body: { code: 'keys_unsupported' } });
  const other = await createHttpServer(skep, { port: 0, failedLoginsPerMinute: 1, dashboard: false });
  const nobody = createClient(other.url, null);
  const statuses = [await nobody('POST', '/api/v1/login', { code: 'x' }), await nobody('POST', '/api/v1/login', { code: 'y' })].map(({ status }) => status);
  expect(statuses).toEqual([403, 429]);
  const { code } = await keys.createLoginCode({});
  expect(await nobody('POST', '/api/v1/login', { code })).toMatchObject({ status: 200, body: { user_id: 'default', access: 'full' } });
  await other.close();
});

test('keys cannot be managed if callers are authenticated in another way', async () => {
  const world = await startWorld();
  expect(await world.ann('GET', '/api/v1/me')).toMatchObject({ body: { has_keys: false } });
  for (const [method, route] of [['GET', path], ['DELETE', `${path}/x`]] as const) {
    expect(await world.ann(method, route)).toMatchObject({ status: 409, body: { code: 'keys_unsupported' } });
  }
});
