import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { problemOf, responseTo } from '../../../src/adapters/http/problems.ts';
import { Failure } from '../../../src/domain/failure.ts';
import { items, object, type Answer } from '../../support/client.ts';
import { createWorld, plainSpec, type World } from './world.ts';

let world: World;
beforeAll(async () => {
  world = await createWorld({ specs: [plainSpec, { ...plainSpec, id: 'other' }] });
});
afterAll(() => world.close());

const sandboxes = '/api/v1/sandboxes';
const conversations = '/api/v1/app-conversations';

function expectInvalid(answer: Answer, ...locs: readonly (readonly (string | number)[])[]): void {
  expect(answer.status, JSON.stringify(answer.body)).toBe(422);
  const detail = object(answer)['detail'] as { loc: unknown; msg: unknown }[];
  expect(detail.map(({ loc }) => loc)).toEqual(locs);
  for (const { msg } of detail) expect(msg).toMatch(/\S/);
}

/** Sends the target unchanged, which an ordinary client would not do. */
async function raw(target: string): Promise<{ status: number; body: unknown }> {
  const socket = connect(world.port, '127.0.0.1');
  socket.write(Buffer.from(`GET ${target} HTTP/1.1\r\nHost: x\r\nX-Session-API-Key: ${world.keys.ann}\r\nConnection: close\r\n\r\n`, 'latin1'));
  const answer = await text(socket);
  const body = answer.slice(answer.indexOf('\r\n\r\n') + 4);
  return { status: Number(answer.split(' ')[1]), body: JSON.parse(body) as unknown };
}

function send(headers: Readonly<Record<string, string>>, body: string | Uint8Array<ArrayBuffer>): Promise<Response> {
  return fetch(`${world.url}${sandboxes}`, { method: 'POST', body, headers: { 'X-Session-API-Key': world.keys.ann, ...headers } });
}

describe('query parameters', () => {
  test.each([
    ['limit=0', 'limit'], ['limit=101', 'limit'], ['limit=-1', 'limit'], ['limit=1.5', 'limit'], ['limit=', 'limit'],
    ['limit=abc', 'limit'], ['limit=1e1', 'limit'], ['limit=0x10', 'limit'], ['limit=%201', 'limit'], ['limit', 'limit'],
    ['limit=1&limit=2', 'limit'], ['limit=%ff', 'limit'], ['limit[]=3&limit=9999', 'limit'],
    ['sort_order=RANDOM', 'sort_order'], ['sort_order=created_at', 'sort_order'], ['sort_order=', 'sort_order'],
    ['created_at__gte=yesterday', 'created_at__gte'], ['created_at__gte=2026-02-30T00:00:00Z', 'created_at__gte'],
    ['created_at__gte=2026-01-01', 'created_at__gte'], ['created_at__lt=2026-01-01T00:00Z', 'created_at__lt'],
    ['created_at__gte=1769860800', 'created_at__gte'], ['updated_at__lt=2026-01-01T00:00:00', 'updated_at__lt'],
    ['updated_at__gte=2026-01-01T00:00:00+01:00', 'updated_at__gte'], ['title__contains=%00', 'title__contains'],
    [`title__contains=${'x'.repeat(501)}`, 'title__contains'], ['title__contains=%C3%28', 'title__contains'],
    ['sandbox_id__eq=Not%20an%20id', 'sandbox_id__eq'], ['page_id=', 'page_id'], ['page_id=made-up', 'page_id'],
    [`page_id=${Buffer.from('["app-conversations/CREATED_AT_DESC",1]').toString('base64url')}`, 'page_id'],
    [`page_id=${Buffer.from('["app-conversations/CREATED_AT_DESC",1,"x"]').toString('base64url')}`, 'page_id'],
    [`page_id=${Buffer.from('["app-conversations/CREATED_AT_DESC", 1,"x"]').toString('base64url')}`, 'page_id'],
    [`page_id=${Buffer.from('["app-conversations/CREATED_AT",1,"x"]').toString('base64url')}`, 'page_id'],
    [`page_id=${Buffer.from('["sandboxes",1,"x"]').toString('base64url')}`, 'page_id'],
    [`page_id=${Buffer.from('["app-conversations/CREATED_AT_DESC",1,"x"]').toString('base64')}==`, 'page_id'],
    [`page_id=${'A'.repeat(600)}`, 'page_id'],
  ])('are refused if one is wrong: %s', async (query, name) => {
    expectInvalid(await world.ann('GET', `${conversations}?${query}`), ['query', name]);
  });

  test.each(['', 'unknown=1', 'unknown=1&unknown=2', 'unknown=%ff', '&&', '=', '%ff=1', '__proto__=1', 'limit=100', 'limit=007', 'ids=a&ids=b', 'ids=a', 'created_at__gte=2026-01-01T00:00:00.123456789-11:30'])(
    'are accepted if they are valid or unknown: %s',
    async (query) => {
      expect((await world.ann('GET', `${conversations}?${query}`)).status).toBe(200);
    },
  );

  test('can have at most 100 ids, which must be valid', async () => {
    const ids = Array.from({ length: 100 }, (_, index) => `ids=conv-${index}`).join('&');
    expect((await world.ann('GET', `${conversations}?${ids}`)).status).toBe(200);
    expectInvalid(await world.ann('GET', `${conversations}?${ids}&ids=one-more`), ['query', 'ids']);
    expectInvalid(await world.ann('GET', `${conversations}?ids=a&ids=B`), ['query', 'ids', 1]);
  });

  test('accept a page token only for its listing and its order', async () => {
    for (const title of ['a', 'b']) await world.ann('POST', conversations, { title });
    for (let count = 0; count < 2; count += 1) await world.ann('POST', sandboxes);
    const next = async (path: string) => String(object(await world.ann('GET', path))['next_page_id']);
    const ofConversations = await next(`${conversations}?limit=1`);
    const ofSandboxes = await next(`${sandboxes}/search?limit=1`);
    const ofSpecs = await next('/api/v1/sandbox-specs/search?limit=1');
    expect(items(await world.ann('GET', `/api/v1/sandbox-specs/search?page_id=${ofSpecs}`))).toMatchObject([{ id: 'other' }]);
    expectInvalid(await world.ann('GET', `${conversations}?page_id=${ofConversations}&sort_order=UPDATED_AT`), ['query', 'page_id']);
    expectInvalid(await world.ann('GET', `${conversations}?page_id=${ofSandboxes}`), ['query', 'page_id']);
    expectInvalid(await world.ann('GET', `${sandboxes}/search?page_id=${ofSpecs}`), ['query', 'page_id']);
    const ofNothing = Buffer.from('["sandbox-specs",0,"gone"]').toString('base64url');
    expectInvalid(await world.ann('GET', `/api/v1/sandbox-specs/search?page_id=${ofNothing}`), ['query', 'page_id']);
  });

  test('of sandboxes are refused if they are wrong, repeated, or different from the body', async () => {
    expectInvalid(await world.ann('GET', `${sandboxes}/search?status__eq=ASLEEP&limit=0`), ['query', 'limit'], ['query', 'status__eq']);
    expectInvalid(await world.ann('POST', `${sandboxes}?sandbox_spec_id=none`), ['query', 'sandbox_spec_id']);
    expectInvalid(await world.ann('POST', `${sandboxes}?sandbox_spec_id=plain`, { sandbox_spec_id: 'other' }), ['query', 'sandbox_spec_id']);
    expectInvalid(await world.ann('POST', `${sandboxes}?sandbox_spec_id=plain&sandbox_spec_id=plain`), ['query', 'sandbox_spec_id']);
  });
});

describe('request bodies', () => {
  test.each<[string, unknown, (string | number)[]]>([
    ['malformed JSON', '{"title":', ['body']],
    ['JSON that is not an object', '[]', ['body']],
    ['an unknown field', { titel: 'x' }, ['body', 'titel']],
    ['a long unknown field', { ['x'.repeat(300)]: 1 }, ['body', `${'x'.repeat(100)}...`]],
    ['the field __proto__', '{"__proto__":{"title":"x"}}', ['body', '__proto__']],
    ['a title that is too long', { title: 'x'.repeat(501) }, ['body', 'title']],
    ['a title with NUL', { title: 'a\0b' }, ['body', 'title']],
    ['half of a surrogate pair', '{"title":"\\ud800"}', ['body', 'title']],
    ['a malformed sandbox id', { sandbox_id: '../x' }, ['body', 'sandbox_id']],
    ['both a sandbox and a spec', { sandbox_id: 'sb-1', sandbox_spec_id: 'plain' }, ['body', 'sandbox_spec_id']],
    ['an unknown spec', { sandbox_spec_id: 'none' }, ['body', 'sandbox_spec_id']],
    ['a malformed repository name', { selected_repository: '/acme/shop' }, ['body', 'selected_repository']],
    ['a repository name that contains ..', { selected_repository: 'acme/../../etc' }, ['body', 'selected_repository']],
    ['a branch without a repository', { selected_branch: 'main' }, ['body', 'selected_branch']],
    ['a malformed branch name', { selected_repository: 'acme/shop', selected_branch: '-delete' }, ['body', 'selected_branch']],
    ['a range as a branch', { selected_repository: 'acme/shop', selected_branch: 'a..b' }, ['body', 'selected_branch']],
    ['a full ref name as a branch', { selected_repository: 'acme/shop', selected_branch: 'refs/heads/main' }, ['body', 'selected_branch']],
    ['HEAD as a branch', { selected_repository: 'acme/shop', selected_branch: 'HEAD' }, ['body', 'selected_branch']],
    ['the short form of HEAD as a branch', { selected_repository: 'acme/shop', selected_branch: '@' }, ['body', 'selected_branch']],
    ['a range after a line separator as a branch', { selected_repository: 'acme/shop', selected_branch: 'a\u2028b..c' }, ['body', 'selected_branch']],
    ['half a character as a branch', { selected_repository: 'acme/shop', selected_branch: '\ud800' }, ['body', 'selected_branch']],
    ['a branch name that is too long', { selected_repository: 'acme/shop', selected_branch: 'x'.repeat(256) }, ['body', 'selected_branch']],
    ['a message for a spec without an agent', { sandbox_spec_id: 'plain', initial_message: { content: [{ type: 'text', text: 'x' }] } }, ['body', 'initial_message']],
    ['a message that is a text', { initial_message: { content: 'x'.repeat(101) } }, ['body', 'initial_message', 'content']],
    ['an empty message', { initial_message: { content: [] } }, ['body', 'initial_message', 'content']],
    ['an unknown kind of content', { initial_message: { content: [{ type: 'image', text: 'x' }] } }, ['body', 'initial_message', 'content', 0, 'type']],
    ['a text that is too long', { initial_message: { content: [{ type: 'text', text: 'x'.repeat(100_001) }] } }, ['body', 'initial_message', 'content', 0, 'text']],
  ])('are refused with %s', async (_, body, loc) => {
    expectInvalid(await world.ann('POST', conversations, body), loc);
  });

  test('are refused with an empty or missing text, with a message in plain English', async () => {
    const answer = await world.ann('POST', conversations, { initial_message: { content: [{ type: 'text', text: '' }] } });
    expectInvalid(answer, ['body', 'initial_message', 'content', 0, 'text']);
    expect(JSON.stringify(object(answer))).toContain('must not be empty');
    const incomplete = await world.ann('POST', conversations, { initial_message: { content: [{ type: 'text' }] } });
    expectInvalid(incomplete, ['body', 'initial_message', 'content', 0, 'text']);
    expect(JSON.stringify(object(incomplete))).toContain('"is missing"');
  });

  test('of a pause are refused with an unknown kind or field', async () => {
    expectInvalid(await world.ann('POST', `${sandboxes}/sb-1/pause`, { pause_kind: 'sleep' }), ['body', 'pause_kind']);
    expectInvalid(await world.ann('POST', `${sandboxes}/sb-1/pause`, { kind: 'stop' }), ['body', 'kind']);
  });

  test('are accepted as JSON in UTF-8, and refused with another type, charset or encoding', async () => {
    for (const type of ['application/json', 'application/json; charset=UTF-8', 'application/vnd.acme+json']) {
      expect((await send({ 'Content-Type': type }, '{}')).status).toBe(201);
    }
    // Generated clients send it if a caller gives no body.
    expect((await send({ 'Content-Type': 'application/json' }, 'null')).status).toBe(201);
    for (const [headers, body, loc] of [
      [{ 'Content-Type': 'text/plain' }, '{}', ['header', 'content-type']],
      [{ 'Content-Type': 'application/x-www-form-urlencoded' }, 'a=b', ['header', 'content-type']],
      [{ 'Content-Type': 'application/json; charset=utf-16' }, '{}', ['header', 'content-type']],
      [{ 'Content-Type': 'application/json', 'Content-Encoding': 'gzip' }, '{}', ['header', 'content-encoding']],
      [{ 'Content-Type': 'application/json' }, Uint8Array.of(0x7b, 0xff, 0x7d), ['body']],
    ] as const) {
      expect(await (await send(headers, body)).json()).toMatchObject({ detail: [{ loc }] });
    }
  });

  test('get a list of at most 20 mistakes', async () => {
    const fields = Object.fromEntries(Array.from({ length: 5000 }, (_, index) => [`field${index}`, index]));
    const content = Array.from({ length: 5000 }, () => ({}));
    for (const body of [fields, { initial_message: { content } }]) {
      const answer = await world.ann('POST', conversations, body);
      expect([answer.status, (object(answer)['detail'] as unknown[]).length <= 20]).toEqual([422, true]);
    }
  });
});

describe('an idempotency key', () => {
  test.each(['', 'two words', 'x'.repeat(256), 'caf\u00e9'])('is refused if it is %j', async (key) => {
    expectInvalid(await world.ann('POST', sandboxes, {}, { 'Idempotency-Key': key }), ['header', 'idempotency-key']);
  });
});

describe('paths', () => {
  test.each([
    '/api/user/repository//microagents', '/api/user/repository//acme/shop/microagents', '/api/user/repository/%2Facme/shop/microagents',
    '/api/user/repository/../microagents', '/api/user/repository/acme/../shop/microagents', '/api/user/repository/acme/%2e%2e/shop/microagents',
    '/api/user/repository/acme/./shop/microagents', '/api/user/repository/acme//shop/microagents', '/api/user/repository/acme/shop//microagents',
    '/api/user/repository/acme%2F%2Fshop/microagents', '/api/user/repository/acme%5Cshop/microagents', '/api/user/repository/acme%00/microagents',
    '/api/user/repository/acme%0Ashop/microagents', '/api/user/repository/%/microagents', '/api/user/repository/%zz/microagents',
    '/api/user/repository/%ff/microagents', '/api/user/repository/%C0%AF/microagents', `/api/user/repository/${'a'.repeat(1025)}/microagents`,
    '/api/user/repository/acme\\shop/microagents',
  ])('are refused without a valid repository name: %s', async (target) => {
    expect(await raw(target)).toMatchObject({ status: 422, body: { detail: [{ loc: ['path', 'repository_name'] }] } });
  });

  test.each([
    ['/api/user/repository/acme%252Fshop/microagents', 'acme%2Fshop'],
    ['/api/user/repository/caf%C3%A9/microagents', 'caf\u00e9'],
    ['http://elsewhere.example/api/user/repository/a+b/microagents?x', 'a+b'],
    ['/api/user/repository/none/microagents#fragment', 'none'],
  ])('are decoded once: %s', async (target, repository) => {
    expect(await raw(target)).toMatchObject({ status: 404, body: { code: 'repository_not_found', repository } });
  });

  test.each(['', '?file_path=', `?file_path=${'a'.repeat(4097)}`, '?file_path=%', '?file_path=a%00', '?file_path=a&file_path=b'])(
    'are refused if the query has no valid file path: "%s"',
    async (query) => {
      const answer = await raw(`/api/user/repository/acme/shop/microagents/content${query}`);
      expect(answer).toMatchObject({ status: 422, body: { detail: [{ loc: ['query', 'file_path'] }] } });
    },
  );

  test.each([
    `${sandboxes}/UPPER`, `${sandboxes}/a%2Fb`, `${sandboxes}/%2e%2e`, `${sandboxes}/a_b`, `${sandboxes}/-a`,
    `${sandboxes}/${'a'.repeat(64)}`, `${sandboxes}/%`, `${conversations}/a.b`,
  ])('are refused without a valid id: %s', async (target) => {
    expect(await raw(target)).toMatchObject({ status: 422, body: { detail: [{ loc: ['path', 'id'] }] } });
  });

  test.each(['*', 'http://[::/x', '//a@b:99999/x#y', '//'])('are not found if they match no route: %s', async (target) => {
    expect(await raw(target)).toMatchObject({ status: 404, body: { code: 'not_found' } });
  });
});

test.each([
  ['repositoryName', ['path', 'repository_name']],
  ['sandboxSpecId', ['body', 'sandbox_spec_id']],
  ['optionId', ['body', 'option_id']],
  ['workingDir', ['body', 'working_dir']],
  ['path', ['query', 'path']],
  ['directory', ['query', 'path']],
])('a wrong argument %s of a use case or port is reported as %j of the request', (argument, loc) => {
  const problem = problemOf(new Failure('invalid_request', { problems: [{ argument, reason: { code: 'sandbox_path', message: 'must be different' } }] }));
  if (problem === null) throw new Error('the failure is not known');
  expect(JSON.parse(responseTo(problem).body)).toEqual({ detail: [{ loc, msg: 'must be different', type: 'sandbox_path' }] });
});

test.each([[61.2, 62], [0, 1], [-5, 1], [Number.NaN, 1], [Infinity, 1]])('a wait of %d seconds is %d in the response', (retryAfterSeconds, seconds) => {
  const problem = problemOf(new Failure('provider_rate_limited', { provider: 'mine', retryAfterSeconds }));
  if (problem === null) throw new Error('it is not a problem');
  const { headers, body } = responseTo(problem);
  expect(headers).toMatchObject({ 'Retry-After': String(seconds) });
  expect(JSON.parse(body)).toMatchObject({ retry_after_seconds: seconds });
});
