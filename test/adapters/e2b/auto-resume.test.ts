import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test, vi } from 'vitest';
import type { HttpServerOptions } from '../../../src/adapters/http/index.ts';
import { object } from '../../support/client.ts';
import { openDoor, stream, wrapped } from './door.ts';

const lifecycle = { timeout: 60, autoPause: true, autoResume: { enabled: true } };
const command = wrapped(JSON.stringify({ process: { cmd: 'echo' }, stdin: false }));

/** Starts a sandbox with `autoResume` and pauses it. */
async function openPaused(server: HttpServerOptions = {}) {
  const door = await openDoor(server);
  const ann = door.as(door.world.keys.ann);
  const made = object(await ann('POST', '/e2b/v2/sandboxes', { templateID: 'base', ...lifecycle }));
  const id = String(made['sandboxID']);
  const path = `/e2b/sandboxes/${id}`;
  const headers = { 'E2b-Sandbox-Id': id, 'X-Access-Token': String(made['envdAccessToken']) };
  const pause = async () => expect((await ann('POST', `${path}/pause`)).status).toBe(204);
  const state = async () => object(await ann('GET', path))['state'];
  const call = async (method: string, message: object, as = headers) => (await door.as(null)('POST', `/e2b/${method}`, message, as)).status;
  await pause();
  return { ...door, ann, path, id, headers, pause, state, call };
}

test('a command, a file and a list of processes resume the sandbox, and a look at it does not', async () => {
  const { world, as, ann, path, headers, pause, state, call } = await openPaused();
  const looks = [path, '/e2b/v2/sandboxes', `${path}/metrics`];
  for (const look of looks) await ann('GET', look);
  expect((await as(null)('GET', '/e2b/health', undefined, headers)).status).toBe(502);
  expect(await call('process.Process/List', {}, { ...headers, 'X-Access-Token': 'wrong' })).toBe(401);
  expect(await state()).toBe('paused');
  const accesses = [
    () => stream({ world, headers }, 'Start', command),
    () => call('process.Process/List', {}),
    () => call('filesystem.Filesystem/Stat', { path: '/' }),
    () => as(null)('GET', '/e2b/files?path=/nothing', undefined, headers),
  ];
  for (const access of accesses) {
    await access();
    expect(await state()).toBe('running');
    await pause();
  }
});

test('requests at once resume the sandbox once', async () => {
  const { world, id, call } = await openPaused();
  const answers = await Promise.all(Array.from({ length: 20 }, () => call('process.Process/List', {})));
  expect(new Set(answers)).toEqual(new Set([200]));
  const resumptions = world.lines.filter(({ sandbox, to }) => sandbox === id && to === 'RESUMING');
  expect(resumptions).toMatchObject([{ actor: 'skep', reason: { code: 'woken_by_access' } }]);
});

test('a large upload waits for the sandbox, also if that takes longer than the time limit of a body', async () => {
  const { world, headers } = await openPaused({ requestTimeoutMs: 500 });
  const { sandboxes } = world.skep;
  const wake = sandboxes.wake.bind(sandboxes);
  vi.spyOn(sandboxes, 'wake').mockImplementation(async (...args) => {
    await sleep(1000);
    return await wake(...args);
  });
  const upload = { method: 'POST', headers: { ...headers, 'Content-Type': 'application/octet-stream' }, body: new Uint8Array(8 * 2 ** 20) };
  expect((await fetch(`${world.url}/e2b/files?path=/workspace/large`, upload)).status).toBe(200);
});

test('the resumed sandbox has five minutes, or its longer timeout, until a client sets another one', async () => {
  const { ann, path, call } = await openPaused();
  const minutesLeft = async () => Math.round((Date.parse(String(object(await ann('GET', path))['endAt'])) - Date.now()) / 60_000);
  await call('process.Process/List', {});
  expect([await minutesLeft(), object(await ann('GET', path))['lifecycle']]).toEqual([5, { onTimeout: 'pause', autoResume: true }]);
  // Connecting to a running sandbox never shortens its timeout.
  expect((await ann('POST', `${path}/connect`, { timeout: 60 })).status).toBe(200);
  expect(await minutesLeft()).toBe(5);
  await ann('POST', `${path}/timeout`, { timeout: 60 });
  expect(await minutesLeft()).toBe(1);
  await ann('POST', `${path}/pause`);
  // Its own timeout replaces the one that began with the resumption.
  expect((await ann('POST', `${path}/connect`, { timeout: 120 })).status).toBe(201);
  expect(await minutesLeft()).toBe(2);
});

test('is refused without a pause at the end of the timeout', async () => {
  const { as, world } = await openDoor();
  const answer = await as(world.keys.ann)('POST', '/e2b/v2/sandboxes', { templateID: 'base', autoResume: { enabled: true } });
  expect(answer).toMatchObject({ status: 400, body: { message: expect.stringContaining('autoPause') } });
});
