import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { explained } from '../../../src/domain/reason.ts';
import { problemCodes, httpStatusOf, type ProblemCode } from '../../../src/adapters/http/problems.ts';
import { Failure } from '../../../src/domain/failure.ts';
import { object, type Answer } from '../../support/client.ts';
import { until } from '../../support/until.ts';
import { coderSpec, createWorld, plainSpec, type World } from './world.ts';

let world: World;
const neverReady = { ...plainSpec, id: 'slow', ready: { probe: { kind: 'tcp' as const, port: 1 }, withinMs: 600_000 } };
beforeAll(async () => {
  world = await createWorld({ specs: [plainSpec, neverReady, coderSpec], limits: { runningPerOwner: 4 }, server: { bodyLimitBytes: 2000 } });
});
afterAll(() => world.close());
beforeEach(() => {
  for (const fault of ['git', 'runtime', 'store', 'events'] as const) delete world.faults[fault];
});

const sandboxes = '/api/v1/sandboxes';
const microagents = '/api/user/repository/acme/shop/microagents';
const hello = { content: [{ type: 'text', text: 'hello' }] };
const proven = new Set<string>();

/** Expects problem details (RFC 9457) with these extension members, and records that the code has a test. */
function expectProblem(answer: Answer, code: ProblemCode, members: Readonly<Record<string, unknown>> = {}): void {
  proven.add(code);
  expect(answer.headers.get('content-type')).toBe('application/problem+json; charset=utf-8');
  expect(answer.body).toEqual({
    type: 'about:blank',
    title: expect.any(String),
    status: httpStatusOf(code),
    detail: expect.any(String),
    code,
    ...members,
  });
  expect(answer.status).toBe(httpStatusOf(code));
  expect(answer.headers.get('retry-after')).toBe('retry_after_seconds' in members ? String(members['retry_after_seconds']) : null);
}

async function sandbox(spec: string, wanted: string): Promise<string> {
  const id = String(object(await world.ann('POST', sandboxes, { sandbox_spec_id: spec }))['id']);
  await until(() => world.ann('GET', `${sandboxes}/${id}`), (answer) => object(answer)['status'] === wanted);
  return id;
}

describe('problem details', () => {
  test('are `unauthorized` without a valid key', async () => {
    for (const path of [microagents, `${sandboxes}/search`, '/nowhere', '/api/v1/sandboxes/%zz']) {
      const answer = await world.client(null)('GET', path);
      expectProblem(answer, 'unauthorized');
      expect(answer.headers.get('www-authenticate')).toBe('ApiKey, Bearer');
    }
    expectProblem(await world.client('wrong')('PUT', sandboxes), 'unauthorized');
  });

  test('are `forbidden` for a change with a read-only key', async () => {
    const reader = world.client(world.keys.reader);
    expect(await reader('GET', `${sandboxes}/search`)).toMatchObject({ status: 200 });
    expectProblem(await reader('POST', sandboxes), 'forbidden', { access: 'full' });
    expectProblem(await reader('DELETE', `${sandboxes}/sb-1`), 'forbidden', { access: 'full' });
    expectProblem(await reader('POST', `${sandboxes}/sb-1/pause`), 'forbidden', { access: 'full' });
    expectProblem(await reader('POST', `${sandboxes}/sb-1/resume`), 'forbidden', { access: 'full' });
    expectProblem(await reader('POST', '/api/v1/app-conversations'), 'forbidden', { access: 'full' });
    expectProblem(await reader('DELETE', '/api/v1/app-conversations/conv-1'), 'forbidden', { access: 'full' });
    for (const path of ['messages', 'cancel', 'permissions/perm-1']) expectProblem(await reader('POST', `/api/v1/app-conversations/conv-1/${path}`), 'forbidden', { access: 'full' });
    expectProblem(await reader('POST', '/nowhere'), 'not_found');
  });

  test('are `not_found` for an unknown route, and `method_not_allowed` for an unknown method', async () => {
    for (const path of ['/nowhere', '/api/v1/sandboxes/', '/API/v1/sandboxes/search', '/health%20', '/api/user/repository/microagents']) {
      expectProblem(await world.ann('GET', path), 'not_found');
    }
    const get = await world.ann('PUT', `${sandboxes}/search`);
    expectProblem(get, 'method_not_allowed', { allow: ['GET', 'HEAD'] });
    expect(get.headers.get('allow')).toBe('GET, HEAD');
    expectProblem(await world.ann('OPTIONS', `${sandboxes}/sb-1`), 'method_not_allowed', { allow: ['GET', 'HEAD', 'DELETE'] });
    expectProblem(await world.client(null)('POST', '/health'), 'method_not_allowed', { allow: ['GET', 'HEAD'] });
    expectProblem(await world.ann('POST', microagents), 'method_not_allowed', { allow: ['GET', 'HEAD'] });
  });

  test('name the repository, file, sandbox or conversation that is not found', async () => {
    expectProblem(await world.ann('GET', '/api/user/repository/acme/none/microagents'), 'repository_not_found', { repository: 'acme/none' });
    const [content, noRepository] = [`${microagents}/content?file_path=`, '/api/user/repository/acme/none/microagents/content?file_path='];
    expectProblem(await world.ann('GET', `${noRepository}a.md`), 'repository_not_found', { repository: 'acme/none' });
    for (const path of ['.skep/microagents/none.md', '.skep/microagents/README.md', '/etc/passwd']) {
      expectProblem(await world.ann('GET', content + encodeURIComponent(path)), 'file_not_found', { path });
    }
    expectProblem(await world.ann('GET', `${sandboxes}/sb-none`), 'sandbox_not_found', { sandbox_id: 'sb-none' });
    expectProblem(await world.ann('DELETE', `${sandboxes}/sb-none`), 'sandbox_not_found', { sandbox_id: 'sb-none' });
    expectProblem(await world.ann('GET', '/api/v1/app-conversations/conv-none'), 'conversation_not_found', { conversation_id: 'conv-none' });
    for (const [method, path, body] of [
      ['POST', 'messages', hello], ['POST', 'cancel', undefined], ['POST', 'permissions/perm-1', { option_id: 'yes' }], ['GET', 'events', undefined], ['GET', 'events/stream', undefined],
    ] as const) {
      expectProblem(await world.ann(method, `/api/v1/app-conversations/conv-none/${path}`, body), 'conversation_not_found', { conversation_id: 'conv-none' });
    }
    expectProblem(await world.ann('POST', '/api/v1/app-conversations', { sandbox_id: 'sb-none' }), 'sandbox_not_found', { sandbox_id: 'sb-none' });
    expectProblem(await world.ann('POST', '/api/v1/app-conversations', { selected_repository: 'acme/none' }), 'repository_not_found', { repository: 'acme/none' });
  });

  test('are `conversation_not_ready` without an agent, and `permission_not_found` for an unknown permission request', async () => {
    for (const spec of ['plain', 'coder']) {
      const created = await world.ann('POST', '/api/v1/app-conversations', { sandbox_spec_id: spec });
      const id = String(object(created)['id']);
      const path = `/api/v1/app-conversations/${id}`;
      const sent = await world.ann('POST', `${path}/messages`, hello);
      if (spec === 'plain') expectProblem(sent, 'conversation_not_ready', { conversation_id: id, reason: { code: 'agent_not_named' } });
      else expect(sent.status).toBe(202);
      expectProblem(await world.ann('POST', `${path}/permissions/perm-none`, { option_id: 'yes' }), 'permission_not_found', { permission_id: 'perm-none' });
      await world.ann('DELETE', path);
    }
  });

  test('name the status that prevents a pause or resume, and the limit that prevents a start', async () => {
    const starting = await sandbox('slow', 'STARTING');
    const about = { sandbox_id: starting, sandbox_status: 'STARTING' };
    expectProblem(await world.ann('POST', `${sandboxes}/${starting}/pause`), 'sandbox_busy', about);
    expectProblem(await world.ann('POST', `${sandboxes}/${starting}/resume`), 'sandbox_busy', about);

    const unfreezable = await sandbox('plain', 'RUNNING');
    world.engine.canFreeze = false;
    expectProblem(await world.ann('POST', `${sandboxes}/${unfreezable}/pause`, { pause_kind: 'freeze' }), 'freeze_unsupported', { runtime: 'memory' });
    world.engine.canFreeze = true;
    await world.ann('DELETE', `${sandboxes}/${unfreezable}`);

    const crashed = await sandbox('plain', 'RUNNING');
    world.engine.crash(crashed);
    await until(() => world.ann('GET', `${sandboxes}/${crashed}`), (answer) => object(answer)['status'] === 'ERROR');
    expectProblem(await world.ann('POST', `${sandboxes}/${crashed}/pause`), 'sandbox_not_running', { sandbox_id: crashed, sandbox_status: 'ERROR' });
    world.engine.remove(crashed);
    expectProblem(await world.ann('POST', `${sandboxes}/${crashed}/resume`), 'sandbox_not_paused', { sandbox_id: crashed, sandbox_status: 'ERROR' });

    const started = [starting];
    while (started.length < 4) started.push(await sandbox('plain', 'RUNNING'));
    const limit = { limit: 'running_per_owner', max: 4, retry_after_seconds: 10 };
    expectProblem(await world.ann('POST', sandboxes), 'sandbox_limit_reached', limit);
    expectProblem(await world.ann('POST', '/api/v1/app-conversations'), 'sandbox_limit_reached', limit);
    for (const id of started) await world.ann('DELETE', `${sandboxes}/${id}`);
  });

  test('name the disk limit if a start is refused because the disk is full', async () => {
    const full = await createWorld({ disk: { totalBytes: 100, freeBytes: 5 } });
    const limit = { limit: 'disk', max: 90, retry_after_seconds: 10 };
    for (const path of [sandboxes, '/api/v1/app-conversations']) expectProblem(await full.ann('POST', path), 'sandbox_limit_reached', limit);
    await full.close();
  });

  test('are `idempotency_conflict` for a different request with the same idempotency key', async () => {
    const headers = { 'Idempotency-Key': 'one' };
    const first = await world.ann('POST', sandboxes, {}, headers);
    expectProblem(await world.ann('POST', sandboxes, { sandbox_spec_id: 'slow' }, headers), 'idempotency_conflict', { key: 'one' });
    await world.ann('DELETE', `${sandboxes}/${String(object(first)['id'])}`);
  });

  test('are none for a repeated start whose spec is no longer configured', async () => {
    for (const path of [sandboxes, '/api/v1/app-conversations']) {
      const start = () => world.ann('POST', path, { sandbox_spec_id: 'plain' }, { 'Idempotency-Key': 'again' });
      const { id } = object(await start());
      using _ = vi.spyOn(world.skep.specs, 'find').mockReturnValue(undefined);
      expect(await start()).toMatchObject({ status: 201, body: { id } });
      await world.ann('DELETE', `${path}/${String(id)}`);
    }
  });

  test('are `payload_too_large` for a body above the size limit', async () => {
    for (const size of [3000, 40_000]) {
      const body = JSON.stringify({ title: 'x'.repeat(size) });
      expectProblem(await world.ann('POST', '/api/v1/app-conversations', body), 'payload_too_large', { limit_bytes: 2000, size_bytes: body.length });
    }
  });

  test('are replaced by a list of the wrong fields for `invalid_request`', async () => {
    const answer = await world.ann('POST', sandboxes, { sandbox_spec_id: 7, other: 1 });
    proven.add('invalid_request');
    expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8');
    expect(answer).toMatchObject({
      status: 422,
      body: { detail: [{ loc: ['body', 'sandbox_spec_id'] }, { loc: ['body', 'other'], type: 'unrecognized_keys' }] },
    });
  });

  test('are `internal` for an unexpected error, and contain only an incident id, which is also in the log', async () => {
    world.faults.git = new Error('/home/somebody: the token ghp_abc was refused');
    const answer = await world.ann('GET', microagents);
    const { incident } = object(answer);
    expectProblem(answer, 'internal', { incident });
    expect(JSON.stringify(answer.body)).not.toMatch(/somebody|ghp_|at /);
    expect(world.lines.find((line) => line['incident'] === incident && line.level === 'error')).toMatchObject({ error: world.faults.git });
    expect(world.lines.at(-1)).toMatchObject({ message: 'request', status: 500, code: 'internal', incident });
  });

  test.each<[Failure, Readonly<Record<string, unknown>>]>([
    [new Failure('provider_unauthorized', { provider: 'memory' }), { provider: 'memory' }],
    [new Failure('provider_failed', { provider: 'memory', reason: explained('it is broken') }, { cause: new Error('secret') }), { provider: 'memory', reason: { code: 'explained', message: 'it is broken' } }],
    [new Failure('provider_rate_limited', { provider: 'memory', retryAfterSeconds: 61.2 }), { provider: 'memory', retry_after_seconds: 62 }],
    [new Failure('provider_timeout', { provider: 'memory', limitMs: 10 }), { provider: 'memory', limit_ms: 10 }],
  ])('contain what the git host reports: %s', async (failure, members) => {
    world.faults.git = failure;
    const answer = await world.ann('GET', microagents);
    expectProblem(answer, failure.code, members);
    expect(JSON.stringify(answer.body)).not.toContain('secret');
    expectProblem(await world.ann('POST', '/api/v1/app-conversations', { selected_repository: 'acme/shop' }), failure.code, members);
    expect(world.lines.findLast(({ level }) => level === 'warn')).toMatchObject({ code: failure.code, error: failure });
  });

  test.each([
    ['branch_not_found', { defaultBranch: 'main', branches: { main: {} } }, { repository: 'acme/shop', branch: 'next' }],
    ['repository_empty', { defaultBranch: null, branches: {} }, { repository: 'acme/shop', branch: 'next' }],
    ['repository_forbidden', { defaultBranch: 'main', branches: {}, refuses: 'repository' }, { provider: 'memory', repository: 'acme/shop' }],
  ] as const)('are `%s` if the checkout reports it', async (code, trees, members) => {
    world.checkouts.put('acme/shop', trees);
    const asked = { selected_repository: 'acme/shop', selected_branch: 'next' };
    expectProblem(await world.ann('POST', '/api/v1/app-conversations', asked), code, members);
  });

  test.each<[Failure, Readonly<Record<string, unknown>>]>([
    [new Failure('runtime_unavailable', { runtime: 'memory', reason: { code: 'unreachable' }, retryAfterSeconds: 5 }), { runtime: 'memory', retry_after_seconds: 5, reason: { code: 'unreachable' } }],
    [new Failure('runtime_timeout', { runtime: 'memory', limitMs: 10 }), { runtime: 'memory', limit_ms: 10 }],
  ])('contain what the runtime reports: %s', async (failure, members) => {
    const id = await sandbox('plain', 'RUNNING');
    world.faults.runtime = failure;
    expectProblem(await world.ann('POST', `${sandboxes}/${id}/pause`), failure.code, members);
    delete world.faults.runtime;
    await world.ann('POST', `${sandboxes}/${id}/pause`);
    world.faults.runtime = failure;
    expectProblem(await world.ann('POST', `${sandboxes}/${id}/resume`), failure.code, members);
    delete world.faults.runtime;
    await world.ann('DELETE', `${sandboxes}/${id}`);
  });

  test('are `store_unavailable` if the store or its event log fails', async () => {
    const failure = new Failure('store_unavailable', { reason: { code: 'locked' }, retryAfterSeconds: 1 });
    Object.assign(world.faults, { store: failure, events: failure });
    const paths = ['/api/v1/events', '/api/v1/events/stream', `${sandboxes}/search`, '/api/v1/app-conversations'];
    for (const [method, path] of [...paths.map((path) => ['GET', path] as const), ['POST', sandboxes] as const]) {
      expectProblem(await world.ann(method, path), 'store_unavailable', { retry_after_seconds: 1, reason: { code: 'locked' } });
    }
  });

  test('are `internal` for a failure that this version does not know', async () => {
    const unknown = new Failure('provider_failed', { provider: 'memory', reason: explained('of a newer version') });
    world.faults.git = Object.assign(unknown, { code: 'from_the_future' });
    const answer = await world.ann('GET', microagents);
    expectProblem(answer, 'internal', { incident: object(answer)['incident'] });
  });

  test('are `port_not_exposed` for a port that is not in the spec, and `proxy_off` without a proxy', async () => {
    const id = await sandbox('plain', 'RUNNING');
    expectProblem(await world.ann('POST', `${sandboxes}/${id}/ports/5173/links`), 'port_not_exposed', { sandbox_id: id, port: 5173, exposed: [8000] });
    expectProblem(await world.ann('POST', `${sandboxes}/${id}/ports/8000/links`), 'proxy_off', {});
    await world.ann('DELETE', `${sandboxes}/${id}`);
  });

  test('have a test over HTTP for every code, here or in another file', () => {
    const files = ['adapters/http', 'adapters/proxy', 'e2e'].flatMap((folder) => globSync(join(import.meta.dirname, '../..', folder, '**/*.ts')));
    const others = files.filter((file) => file !== import.meta.filename).map((file) => readFileSync(file, 'utf8')).join('\n');
    expect(problemCodes.filter((code) => !proven.has(code) && !others.includes(`'${code}'`))).toEqual([]);
  });
});
