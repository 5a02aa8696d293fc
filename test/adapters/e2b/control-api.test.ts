import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, test, vi } from 'vitest';
import { e2b } from '../../../src/adapters/e2b/index.ts';
import { Failure } from '../../../src/domain/failure.ts';
import type { SandboxSpec, SandboxSpecInput } from '../../../src/domain/sandbox-spec.ts';
import { type Client, createClient, object } from '../../support/client.ts';
import { until } from '../../support/until.ts';
import { startWorld, type WorldOptions } from '../http/world.ts';
import { openDoor } from './door.ts';

const forever = { freezeAfterMs: null, stopAfterMs: null, deleteAfterMs: null, maxLifeMs: null };

async function openWith(specs: readonly SandboxSpecInput[], options: WorldOptions = {}) {
  const world = await startWorld({ ...options, specs, server: { mounts: [e2b] } });
  const ann: Client = (method, path, body) => createClient(world.url, null)(method, path, body, { 'X-API-Key': world.keys.ann });
  return { world, ann };
}

/** Starts a server with one spec. */
async function openLimited(rest: Partial<SandboxSpec['rest']>) {
  const { world, ann } = await openWith([{ id: 'limited', rest: { ...forever, ...rest } }]);
  const create = async (timeout?: number): Promise<string> =>
    `/e2b/sandboxes/${String(object(await ann('POST', '/e2b/v2/sandboxes', { templateID: 'limited', timeout }))['sandboxID'])}`;
  const endOf = async (path: string): Promise<number> => Date.parse(String(object(await ann('GET', path))['endAt']));
  return { world, ann, create, endOf };
}

describe('the sandboxes of E2B clients', () => {
  test('returns 0 as the limits of a sandbox if the runtime does not apply limits', async () => {
    const { as, world, id } = await openDoor();
    const info = object(await as(world.keys.ann)('GET', `/e2b/sandboxes/${id}`));
    expect(info).toMatchObject({ cpuCount: 0, memoryMB: 0, diskSizeMB: 0 });
  });

  test('lists sandboxes by their start in both orders, page by page, from a time on', async () => {
    const { as, world, id } = await openDoor();
    const ann = as(world.keys.ann);
    const other = String(object(await ann('POST', '/e2b/v2/sandboxes', { templateID: 'base' }))['sandboxID']);
    const { startedAt } = object(await ann('GET', `/e2b/sandboxes/${id}`));
    const query = `limit=1&startedAfter=${String(startedAt)}`;
    for (const [order, ids] of [['desc', [other, id]], ['asc', [id, other]]] as const) {
      const first = await ann('GET', `/e2b/v2/sandboxes?order=${order}&${query}`);
      const second = await ann('GET', `/e2b/v2/sandboxes?order=${order}&${query}&nextToken=${first.headers.get('x-next-token')}`);
      expect([first.body, second.body]).toMatchObject(ids.map((sandboxID) => [{ sandboxID }]));
      expect(second.headers.get('x-next-token')).toBeNull();
    }
  });

  test('takes base for the default spec, also in a search, and says which templates exist', async () => {
    const { as, world, id } = await openDoor();
    const ann = as(world.keys.ann);
    const { templateID } = object(await ann('GET', `/e2b/sandboxes/${id}`));
    expect((await ann('GET', '/e2b/v2/sandboxes?template=base')).body).toMatchObject([{ sandboxID: id }]);
    expect((await ann('GET', '/e2b/v2/sandboxes?template=nope')).body).toEqual([]);
    for (const name of ['base', String(templateID)]) expect((await ann('GET', `/e2b/templates/aliases/${name}`)).body).toEqual({ templateID, public: false });
    expect((await ann('GET', '/e2b/templates/aliases/nope')).status).toBe(404);
  });

  test('creates one sandbox for requests with the same idempotency key', async () => {
    const { as, world } = await openDoor();
    const create = (timeout: number) =>
      as(world.keys.ann)('POST', '/e2b/v2/sandboxes', { templateID: 'base', timeout }, { 'Idempotency-Key': 'one' });
    const [first, second, other] = [await create(60), await create(60), await create(70)];
    expect([first.status, object(second)['sandboxID'], other.status]).toEqual([201, object(first)['sandboxID'], 409]);
  });

  test('accepts options of a start with the values that change nothing, and refuses others by name', async () => {
    const { as, world } = await openDoor();
    const create = (options: object) => as(world.keys.ann)('POST', '/e2b/v2/sandboxes', { templateID: 'base', ...options });
    const neutral = { allow_internet_access: true, autoPause: false, autoPauseMemory: true, autoResume: { enabled: false }, network: null };
    expect((await create(neutral)).status).toBe(201);
    const refused = [
      [{ network: { allowOut: [] } }, 'the network'], [{ network: { allowPublicTraffic: true, denyOut: ['0.0.0.0/0'] } }, 'the network'],
      [{ allow_internet_access: false }, 'internet access'], [{ mcp: {} }, 'MCP'],
    ] as const;
    for (const [options, name] of refused) {
      expect(await create(options)).toMatchObject({ status: 501, body: { message: expect.stringContaining(name) } });
    }
  });

  test('accepts public traffic only if each port of the spec is public', async () => {
    const specs = [
      { id: 'open', ports: [{ name: 'WEB', port: 8000, public: true }] },
      { id: 'closed', ports: [{ name: 'WEB', port: 8000, public: true }, { name: 'API', port: 8001 }] },
    ];
    const { ann } = await openWith(specs);
    const create = (templateID: string) => ann('POST', '/e2b/v2/sandboxes', { templateID, network: { allowPublicTraffic: true } });
    expect((await create('open')).status).toBe(201);
    const message = expect.stringContaining('public: true in the sandbox spec for the ports it names: 8001.');
    expect(await create('closed')).toMatchObject({ status: 501, body: { message } });
    expect((await ann('GET', '/e2b/templates')).body).toMatchObject([{ templateID: 'open', public: false }, { templateID: 'closed' }]);
    expect(await ann('GET', '/e2b/sandboxes/sb-1/logs')).toMatchObject({ status: 501, body: { message: expect.stringContaining('logs') } });
  });

  test('refuses a timeout beyond the largest time that a response can show', async () => {
    const { as, world, id } = await openDoor();
    const ann = as(world.keys.ann);
    const timeout = 9e12;
    expect((await ann('POST', '/e2b/v2/sandboxes', { templateID: 'base', timeout })).status).toBe(400);
    expect((await ann('POST', `/e2b/sandboxes/${id}/timeout`, { timeout })).status).toBe(400);
    expect((await ann('GET', '/e2b/v2/sandboxes')).body).toMatchObject([{ sandboxID: id }]);
  });

  test('limits the timeout of a sandbox to the maximum life of its spec', async () => {
    const { ann, create } = await openLimited({ maxLifeMs: 60_000 });
    const path = await create();
    const { startedAt, endAt } = object(await ann('GET', path));
    expect(Date.parse(String(endAt)) - Date.parse(String(startedAt))).toBe(60_000);
    expect((await ann('POST', `${path}/timeout`, { timeout: 3600 })).status).toBe(400);
    expect((await ann('POST', `${path}/timeout`, { timeout: 5 })).status).toBe(204);
    expect(Date.parse(String(object(await ann('GET', path))['endAt']))).toBeLessThan(Date.parse(String(endAt)));
  });

  test('keeps a paused sandbox without a timeout, and sets a new one when it is resumed', async () => {
    const { as, world, id } = await openDoor();
    const ann = as(world.keys.ann);
    const path = `/e2b/sandboxes/${id}`;
    const minutesLeft = async () => Math.round((Date.parse(String(object(await ann('GET', path))['endAt'])) - Date.now()) / 60_000);
    expect(await minutesLeft()).toBe(1);
    vi.spyOn(world.skep.sandboxes, 'pause').mockRejectedValueOnce(new Failure('sandbox_busy', { id, status: 'STARTING' }));
    expect([(await ann('POST', `${path}/pause`)).status, await minutesLeft()]).toEqual([409, 1]);
    expect((await ann('POST', `${path}/pause`)).status).toBe(204);
    expect(object(await ann('GET', path))).toMatchObject({ state: 'paused', endAt: expect.stringMatching(/^9999/) });
    expect([(await ann('POST', `${path}/connect`, { timeout: 600 })).status, await minutesLeft()]).toEqual([201, 10]);
    expect([(await ann('POST', `${path}/connect`, { timeout: 60 })).status, await minutesLeft()]).toEqual([200, 10]);
    await world.skep.sandboxes.pause('ann', id);
    expect([(await ann('POST', `${path}/pause`)).status, object(await ann('GET', path))['endAt']]).toEqual([409, expect.stringMatching(/^9999/)]);
    expect([(await ann('POST', `${path}/resume`)).status, await minutesLeft()]).toEqual([201, 5]);
  });

  test.each(['connect', 'resume'])('%s is answered when the sandbox runs, although its resumption is slow', async (method) => {
    const { world, ann } = await openWith([{ id: 'base' }], { answerWithinMs: 50 });
    const id = String(object(await ann('POST', '/e2b/v2/sandboxes', { templateID: 'base' }))['sandboxID']);
    const path = `/e2b/sandboxes/${id}`;
    expect((await ann('POST', `${path}/pause`)).status).toBe(204);
    world.faults.runtime = delay(300);
    expect((await ann('POST', `${path}/${method}`)).status).toBe(201);
    expect(await world.skep.sandboxes.get('ann', id)).toMatchObject({ status: 'RUNNING' });
  });

  test('begins the timeout of connect when the sandbox runs, also if the client is gone, and none if the resumption fails', async () => {
    const { world, ann } = await openWith([{ id: 'base' }], { answerWithinMs: 50 });
    const path = `/e2b/sandboxes/${String(object(await ann('POST', '/e2b/v2/sandboxes', { templateID: 'base' }))['sandboxID'])}`;
    const pause = async () => expect((await ann('POST', `${path}/pause`)).status).toBe(204);
    const endAt = async () => object(await ann('GET', path))['endAt'];
    await pause();
    const none = await endAt();
    world.faults.runtime = delay(200, new Failure('runtime_timeout', { runtime: 'memory', limitMs: 10 }));
    // The failure of the runtime, or that of the wait that begins after it.
    expect([504, 409]).toContain((await ann('POST', `${path}/connect`, { timeout: 60 })).status);
    world.faults.runtime = undefined;
    expect(object(await ann('GET', path))).toMatchObject({ state: 'paused', endAt: none });
    const held = Promise.withResolvers<undefined>();
    world.faults.runtime = held.promise;
    const headers = { 'X-API-Key': world.keys.ann, 'Content-Type': 'application/json' };
    const leaves = new AbortController();
    const left = fetch(`${world.url}${path}/connect`, { method: 'POST', headers, body: '{"timeout":60}', signal: leaves.signal });
    await until(async () => object(await ann('GET', path))['state'], (state) => state === 'running');
    expect(await endAt()).toBe(none);
    leaves.abort();
    await expect(left).rejects.toThrow('aborted');
    held.resolve(undefined);
    expect(await until(endAt, (end) => end !== none)).not.toBe(none);
    await pause();
    world.faults.runtime = delay(1500);
    expect((await ann('POST', `${path}/connect`, { timeout: 1 })).status).toBe(201);
  });

  test('connect waits for a start, and keeps its timeout', async () => {
    const { as, world, id } = await openDoor();
    const ann = as(world.keys.ann);
    const { endAt } = object(await ann('GET', `/e2b/sandboxes/${id}`));
    const sandbox = await world.skep.sandboxes.get('ann', id);
    vi.spyOn(world.skep.sandboxes, 'get').mockResolvedValueOnce({ ...sandbox, status: 'STARTING' });
    const awaitRunning = vi.spyOn(world.skep.sandboxes, 'awaitRunning');
    expect((await ann('POST', `/e2b/sandboxes/${id}/connect`)).status).toBe(200);
    expect([awaitRunning.mock.calls.length, object(await ann('GET', `/e2b/sandboxes/${id}`))['endAt']]).toEqual([1, endAt]);
  });

  test.each([null, 3_600_000])('keeps the timeout of a sandbox that Skep has paused, unless that of connect is longer, with max_life %s', async (maxLifeMs) => {
    const { ann, create, endOf } = await openLimited({ freezeAfterMs: 100, maxLifeMs });
    const path = await create(3600);
    const end = await endOf(path);
    await until(async () => object(await ann('GET', path))['state'], (state) => state === 'paused');
    expect((await ann('POST', `${path}/connect`, { timeout: 300 })).status).toBe(201);
    expect(await endOf(path)).toBe(end);
    await ann('POST', `${path}/timeout`, { timeout: 60 });
    await until(async () => (await ann('POST', `${path}/connect`, { timeout: 300 })).status, (status) => status < 300);
    expect(Math.round((await endOf(path) - Date.now()) / 60_000)).toBe(5);
  });

  test.each([null, 3_600_000])('connect sets a new timeout after a pause by a client, with max_life %s', async (maxLifeMs) => {
    const { ann, create, endOf } = await openLimited({ maxLifeMs });
    const path = await create(3600);
    expect((await ann('POST', `${path}/pause`)).status).toBe(204);
    expect((await ann('POST', `${path}/connect`, { timeout: 60 })).status).toBe(201);
    expect(Math.round((await endOf(path) - Date.now()) / 60_000)).toBe(1);
  });

  test('resumes a sandbox shortly before the end of its maximum life, for the time that is left', async () => {
    const { ann, create, endOf } = await openLimited({ maxLifeMs: 60_000 });
    const path = await create(50);
    const end = await endOf(path) + 10_000;
    for (const body of [{}, { timeout: 3600 }]) {
      expect((await ann('POST', `${path}/pause`)).status).toBe(204);
      expect((await ann('POST', `${path}/connect`, body)).status).toBe(201);
      expect(await endOf(path)).toBe(end);
    }
  });

  test.each([[true, 'freeze'], [false, 'stop']] as const)('pauses a sandbox at the end of its timeout, with memory: %s', async (autoPauseMemory, pauseKind) => {
    const { world, ann, endOf } = await openLimited({ maxLifeMs: 3_600_000 });
    const body = { templateID: 'limited', timeout: 60, autoPause: true, autoPauseMemory };
    const id = String(object(await ann('POST', '/e2b/v2/sandboxes', body))['sandboxID']);
    const path = `/e2b/sandboxes/${id}`;
    const { startedAt, endAt, lifecycle } = object(await ann('GET', path));
    expect([Date.parse(String(endAt)) - Date.parse(String(startedAt)), lifecycle]).toEqual([60_000, { onTimeout: 'pause', autoResume: false }]);
    await ann('POST', `${path}/timeout`, { timeout: 1 });
    const { state } = object(await until(() => ann('GET', path), (answer) => object(answer)['state'] === 'paused'));
    expect(state).toBe('paused');
    expect(await world.skep.sandboxes.get('ann', id)).toMatchObject({ pauseKind, statusReason: { code: 'timeout_over' } });
    expect(await endOf(path)).toBe(Date.parse(String(startedAt)) + 3_600_000);
    expect((await ann('POST', `${path}/connect`, { timeout: 600 })).status).toBe(201);
    expect([Math.round((await endOf(path) - Date.now()) / 60_000), object(await ann('GET', path))['lifecycle']]).toEqual([10, lifecycle]);
    expect((await ann('POST', `${path}/timeout`, { timeout: 7200 })).status).toBe(400);
  });

  test('deletes a sandbox for the caller that sets its timeout to 0', async () => {
    const { as, world, id } = await openDoor();
    const ann = as(world.keys.ann);
    expect((await ann('POST', '/e2b/v2/sandboxes', { templateID: 'base', timeout: 0 })).status).toBe(400);
    expect((await ann('POST', `/e2b/sandboxes/${id}/connect`, { timeout: 0 })).status).toBe(200);
    expect((await as(world.keys.admin)('POST', `/e2b/sandboxes/${id}/timeout`, { timeout: 0 })).status).toBe(204);
    expect((await ann('GET', `/e2b/sandboxes/${id}`)).status).toBe(404);
    const deleted = world.lines.find(({ sandbox, to }) => sandbox === id && to === 'deleted');
    expect(deleted).toMatchObject({ actor: 'user', user: 'root', reason: { code: 'deleted_by_administrator' } });
  });
});
