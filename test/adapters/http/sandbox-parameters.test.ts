import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { items, object } from '../../support/client.ts';
import { until } from '../../support/until.ts';
import { conversations } from './support.ts';
import { createWorld, plainSpec, type World } from './world.ts';

const sandboxes = '/api/v1/sandboxes';
const spec = { ...plainSpec, allowedSecrets: ['HOME'], rest: { freezeAfterMs: null, stopAfterMs: null, deleteAfterMs: null, maxLifeMs: 7_200_000 } };

let world: World;
beforeAll(async () => {
  world = await createWorld({ specs: [spec] });
});
afterAll(() => world.close());

const start = async (body: unknown, headers: Readonly<Record<string, string>> = {}) => await world.ann('POST', sandboxes, body, headers);
const problems = (answer: { readonly body: unknown }) =>
  (answer.body as { detail: { loc: string[]; type: string }[] }).detail.map(({ loc, type }) => [loc.join('.'), type]);

describe('a start with parameters', () => {
  test('returns its metadata and the end of its sandbox, but never the values of its variables', async () => {
    const answer = await start({ env: { LEVEL: 'a-level-of-mine' }, metadata: { task: '7' }, timeout_seconds: 3600, secrets: ['HOME'] });
    expect(answer).toMatchObject({ status: 201, body: { metadata: { task: '7' }, created_at: expect.any(String) } });
    const { id, created_at: from, expires_at: to } = object(answer);
    expect(Date.parse(String(to)) - Date.parse(String(from))).toBe(3_600_000);
    const path = `${sandboxes}/${String(id)}`;
    const found = await until(() => world.ann('GET', path), (one) => object(one)['status'] === 'RUNNING');
    const specs = await world.ann('GET', '/api/v1/sandbox-specs/search');
    const events = await world.ann('GET', '/api/v1/events');
    expect(JSON.stringify([found.body, specs.body, events.body])).not.toContain('a-level-of-mine');
    expect(items(specs)[0]).toMatchObject({ allowed_secrets: ['HOME'], initial_env: { CI: '1' } });
    expect((await world.skep.sandboxes.get('ann', String(id))).spec.initialEnv).toMatchObject({ CI: '1', LEVEL: 'a-level-of-mine' });
  });

  test('uses the maximum life of its spec if its parameters are null', async () => {
    const answer = await start({ env: null, metadata: null, timeout_seconds: null, resources: null, secrets: null });
    const { created_at: from, expires_at: to, metadata } = object(answer);
    expect([Date.parse(String(to)) - Date.parse(String(from)), metadata]).toEqual([7_200_000, {}]);
  });

  test('is found by its metadata, and only by its owner', async () => {
    const odd = 'a&b=c+d é';
    const { id } = object(await start({ metadata: { user: odd, run: 'one' } }));
    await start({ metadata: { user: 'other', run: 'one' } });
    const found = async (query: string) => items(await world.ann('GET', `${sandboxes}/search?${query}`)).map((one) => one['id']);
    expect(await found(new URLSearchParams([['metadata__eq', `user=${odd}`]]).toString())).toEqual([id]);
    expect(await found(`metadata__eq=run=one&metadata__eq=user%3D${encodeURIComponent(odd)}`)).toEqual([id]);
    expect(await found('metadata__eq=run%3Done')).toHaveLength(2);
    expect(await found('metadata__eq=run=two')).toEqual([]);
    expect(items(await world.client(world.keys.ben)('GET', `${sandboxes}/search?metadata__eq=run=one`))).toEqual([]);
  });

  test.each([
    ['metadata__eq=run'],
    ['metadata__eq==x'],
    ['metadata__eq=a=1&metadata__eq=a=2'],
  ])('cannot be searched with a malformed filter: %s', async (query) => {
    expect((await world.ann('GET', `${sandboxes}/search?${query}`)).status).toBe(422);
  });

  test.each<[string, unknown, readonly (readonly [string, string])[]]>([
    ['a longer life than that of the spec', { timeout_seconds: 7201 }, [['body.timeout_seconds', 'timeout_above_spec']]],
    ['a reserved variable', { env: { SESSION_API_KEY: 'x' } }, [['body.env', 'env_reserved']]],
    ['a variable with a credential', { env: { URL: 'https://me:hunter2@example.org' } }, [['body.env', 'env_credential']]],
    ['a secret that is not allowed', { secrets: ['PATH'] }, [['body.secrets', 'secrets_not_allowed']]],
    ['resources that the runtime cannot limit', { resources: { memory_bytes: 1 } }, [['body.resources', 'resources_not_limited']]],
    ['several mistakes', { env: { PORT: '1' }, secrets: ['PATH'], timeout_seconds: 7201 }, [['body.env', 'env_reserved'], ['body.timeout_seconds', 'timeout_above_spec'], ['body.secrets', 'secrets_not_allowed']]],
  ])('refuses %s, and names the field', async (_, body, expected) => {
    const [answer, ofConversation] = [await start(body), await world.ann('POST', conversations, body)];
    expect([answer.status, problems(answer)]).toEqual([422, expected]);
    expect([ofConversation.status, problems(ofConversation)]).toEqual([422, expected]);
    expect(JSON.stringify(answer.body)).not.toContain('hunter2');
  });

  test.each<[string, unknown]>([
    ['a variable name with a dash', { env: { 'A-B': 'x' } }],
    ['a variable with NUL', { env: { A: 'x\0' } }],
    ['a number as a variable', { env: { A: 1 } }],
    ['too many variables', { env: Object.fromEntries(Array.from({ length: 101 }, (_, index) => [`A${index}`, 'x'])) }],
    ['variables that are too long', { env: { A: 'x'.repeat(20_000), B: 'x'.repeat(20_000) } }],
    ['too much metadata', { metadata: Object.fromEntries(Array.from({ length: 33 }, (_, index) => [`a${index}`, 'x'])) }],
    ['a metadata key with =', { metadata: { 'a=b': 'x' } }],
    ['an empty metadata key', { metadata: { '': 'x' } }],
    ['a metadata key that is too long', { metadata: { ['x'.repeat(129)]: 'x' } }],
    ['a metadata value that is too long', { metadata: { a: 'x'.repeat(513) } }],
    ['a timeout of 0 seconds', { timeout_seconds: 0 }],
    ['a timeout of half a second', { timeout_seconds: 0.5 }],
    ['a timeout that is too long', { timeout_seconds: 31_536_001 }],
    ['an unknown resource', { resources: { disk: 1 } }],
    ['0 CPUs', { resources: { cpus: 0 } }],
    ['a malformed secret name', { secrets: ['sk-x'] }],
  ])('refuses %s', async (_, body) => {
    expect((await start(body)).status).toBe(422);
  });

  test('conflicts with an earlier start with the same idempotency key and other parameters', async () => {
    const body = { env: { A: '1', B: '2' }, metadata: { task: '1' } };
    const headers = { 'Idempotency-Key': 'with-parameters' };
    const { id } = object(await start(body, headers));
    expect(object(await start({ ...body, env: { B: '2', A: '1' } }, headers))['id']).toBe(id);
    expect((await start({ ...body, env: { A: '1', B: '3' } }, headers)).status).toBe(409);
    expect((await start({}, headers)).status).toBe(409);
  });
});

describe('a conversation with parameters', () => {
  test('starts its sandbox with them', async () => {
    const { sandbox_id: id } = object(await world.ann('POST', conversations, { env: { LEVEL: '3' }, metadata: { of: 'talk' }, timeout_seconds: 60 }));
    const sandbox = await world.skep.sandboxes.get('ann', String(id));
    expect(sandbox).toMatchObject({ metadata: { of: 'talk' }, spec: { initialEnv: { LEVEL: '3' }, rest: { maxLifeMs: 60_000 } } });
  });

  test('is refused for an existing sandbox', async () => {
    const { id } = object(await start({}));
    const answer = await world.ann('POST', conversations, { sandbox_id: id, metadata: { a: 'b' }, timeout_seconds: 5 });
    expect([answer.status, problems(answer)]).toEqual([422, [['body.metadata', 'invalid_value'], ['body.timeout_seconds', 'invalid_value']]]);
  });
});
