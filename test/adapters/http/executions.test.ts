import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { items, object } from '../../support/client.ts';
import { below, printedSeed, seeded } from '../../support/seeded.ts';
import { until } from '../../support/until.ts';
import { commands, randomOutput, runningSandbox, terminalSize } from './executions-support.ts';
import { createWorld, type World } from './world.ts';

let world: World;
let sandbox: Awaited<ReturnType<typeof runningSandbox>>;
beforeAll(async () => {
  world = await createWorld({ command: commands, limits: { executionsPerSandbox: 20 } });
  sandbox = await runningSandbox(world);
});
afterAll(() => world.close());

async function run(body: unknown, headers: Readonly<Record<string, string>> = {}): Promise<string> {
  const answer = await world.ann('POST', sandbox.path, body, headers);
  expect(answer.status).toBe(201);
  expect(answer.headers.get('location')).toBe(`${sandbox.path}/${String(object(answer)['id'])}`);
  return `${sandbox.path}/${String(object(answer)['id'])}`;
}

const ended = (path: string) => until(async () => object(await world.ann('GET', path)), ({ status }) => status !== 'running', 60_000);

test('a command runs as a list or as shell text, and its output and exit code can be read', async () => {
  const path = await run({ command: ['errs'], env: { A: '1' }, working_dir: '/workspace', timeout_seconds: 60 });
  expect((await world.ann('GET', `${path}/output?follow=true`)).body).toBe('out');
  expect((await world.ann('GET', `${path}/output?stream=stderr&after=1`)).body).toBe('rr');
  expect(await ended(path)).toMatchObject({
    sandbox_id: sandbox.id, command: ['errs'], status: 'exited', exit_code: 7, stdout_bytes: 3, stderr_bytes: 3, durable: true, tty: false,
    status_reason: null, deadline: expect.any(String), ended_at: expect.any(String),
  });
  const shell = await run({ shell: 'ls | wc -l' });
  expect((await world.ann('GET', `${shell}/output?follow=true`)).body).toBe('-c ls | wc -l\n');
  const listed = items(await world.ann('GET', `${sandbox.path}?limit=1`));
  expect(listed).toMatchObject([{ command: ['/bin/sh', '-c', 'ls | wc -l'] }]);
});

test('input and signals reach a command, its terminal can be resized, and it is not found after its deletion', async () => {
  const path = await run({ command: ['cat'], stdin: true });
  const write = (text: string, query = '') => world.ann('POST', `${path}/input${query}`, text, { 'Content-Type': 'application/octet-stream' });
  expect((await write('\u0000one ')).status).toBe(204);
  expect((await write('two', '?close=true')).status).toBe(204);
  expect((await world.ann('GET', `${path}/output?follow=true`)).body).toBe('\u0000one two');
  await ended(path);
  const late = await write('three');
  expect([late.status, object(late)]).toMatchObject([409, { code: 'input_closed', execution_id: path.split('/').at(-1) }]);

  const sleeping = await run({ command: ['sleep'], tty: { cols: 80, rows: 24 } });
  expect(object(await world.ann('GET', sleeping))).toMatchObject({ tty: true, stdin: true });
  expect((await world.ann('POST', `${sleeping}/resize`, { cols: 100, rows: 30 })).status).toBe(204);
  expect(terminalSize(world, sandbox.id, sleeping)).toEqual({ cols: 100, rows: 30 });
  expect((await world.ann('POST', `${sleeping}/signal`, { signal: 'SIGTERM' })).status).toBe(204);
  expect(await ended(sleeping)).toMatchObject({ exit_code: 143 });
  for (const _ of [1, 2]) expect((await world.ann('DELETE', sleeping)).status).toBe(204);
  expect(object(await world.ann('GET', sleeping))).toMatchObject({ code: 'execution_not_found' });
});

test('a command runs once if its request is repeated with the same idempotency key, and a different request is a conflict', async () => {
  const headers = { 'Idempotency-Key': 'once' };
  const first = await run({ command: ['sleep'] }, headers);
  expect(await run({ command: ['sleep'] }, headers)).toBe(first);
  expect((await world.ann('POST', sandbox.path, { command: ['cat'] }, headers)).status).toBe(409);
});

test('wrong requests for executions are refused', async () => {
  const wrong = [{}, { command: [] }, { command: ['a'], shell: 'a' }, { command: ['a'], working_dir: 'a' }, { command: ['a'], env: { 'A=': '1' } },
    { command: ['a'], tty: { cols: 0, rows: 1 } }, { command: ['a'], timeout_seconds: 0 }, { command: ['a'], more: 1 }, { command: ['a\0'] }];
  for (const body of wrong) expect([body, (await world.ann('POST', sandbox.path, body)).status]).toEqual([body, 422]);
  expect(await world.ann('POST', sandbox.path, { command: ['a'], env: { 'A=': '1' } })).toMatchObject({
    body: { detail: [{ loc: ['body', 'env', 'A='], msg: 'must be a name of letters, digits and _ that does not begin with a digit' }] },
  });
  const path = await run({ command: ['sleep'] });
  for (const query of ['after=-1', 'after=x', 'stream=all', 'follow=1']) expect((await world.ann('GET', `${path}/output?${query}`)).status).toBe(422);
  expect((await world.ann('POST', `${path}/signal`, { signal: 'SIGNAL' })).status).toBe(422);
  expect(await world.ann('GET', `${path}/attach`)).toMatchObject({ status: 426, body: { code: 'upgrade_required' } });
});

describe('access to executions', () => {
  test('is limited to reading with a read-only key, and refused to another owner and without a key', async () => {
    const path = await run({ command: ['sleep'] });
    const reader = world.client(world.keys.reader);
    expect((await reader('GET', path)).status).toBe(200);
    expect((await reader('GET', `${path}/output`)).status).toBe(200);
    const refused = [['POST', sandbox.path], ['DELETE', path], ['POST', `${path}/input`], ['POST', `${path}/signal`], ['POST', `${path}/resize`]] as const;
    for (const [method, at] of refused) expect([at, (await reader(method, at, {})).status]).toEqual([at, 403]);
    const ben = world.client(world.keys.ben);
    const bodies: Readonly<Record<string, unknown>> = { executions: { command: ['a'] }, signal: { signal: 'SIGINT' }, resize: { cols: 1, rows: 1 } };
    const bytes = { 'Content-Type': 'application/octet-stream' };
    for (const [method, at] of [...refused, ['GET', path], ['GET', `${path}/output`]] as const) {
      const last = at.split('/').at(-1) ?? '';
      const answer = await ben(method, at, last === 'input' ? 'x' : bodies[last], last === 'input' ? bytes : {});
      expect([at, answer.status, object(answer)['code']]).toEqual([at, 404, 'sandbox_not_found']);
    }
    expect(object(await world.ann('GET', path))).toMatchObject({ status: 'running' });
    expect((await world.client(null)('GET', path)).status).toBe(401);
  });

  test('with a read-only key does not make the command wait', async () => {
    const path = await run({ command: ['flood'] });
    const response = await fetch(`${world.url}${path}/output?follow=true&hold=true`, { headers: { 'X-Session-API-Key': world.keys.reader } });
    await until(async () => Number(object(await world.ann('GET', path))['stdout_bytes']), (bytes) => bytes > 64 << 20);
    await response.body?.cancel();
    await world.ann('DELETE', path);
  });

  test('ends when the key is revoked, and a followed output is cut off', async () => {
    const key = world.auth.issue({ userId: 'ann', keyName: 'short', access: 'full' });
    const path = await run({ command: ['sleep'] });
    const response = await fetch(`${world.url}${path}/output?follow=true`, { headers: { 'X-Session-API-Key': key } });
    world.auth.revoke(key);
    await expect(response.arrayBuffer()).rejects.toThrow();
  });
});

test('a paused sandbox refuses commands and input with the advice to resume it, but its executions can be read', async () => {
  const other = await runningSandbox(world);
  const path = `${other.path}/${String(object(await world.ann('POST', other.path, { command: ['cat'], stdin: true }))['id'])}`;
  await world.ann('POST', `/api/v1/sandboxes/${other.id}/pause`);
  const refused = await world.ann('POST', other.path, { command: ['echo'] });
  expect([refused.status, object(refused)]).toMatchObject([409, { code: 'sandbox_not_running', sandbox_status: 'PAUSED', detail: expect.stringContaining('Resume it') }]);
  expect((await world.ann('POST', `${path}/input`, 'x', { 'Content-Type': 'application/octet-stream' })).status).toBe(409);
  expect((await world.ann('GET', `${path}/output`)).status).toBe(200);
  expect(object(await world.ann('GET', path))).toMatchObject({ status: 'running' });
  expect(object(await world.ann('GET', `/api/v1/sandboxes/${other.id}`))).toMatchObject({ status: 'PAUSED' });
});

test('an offset whose output was dropped is a 410 with the oldest offset that is kept', async () => {
  const path = await run({ command: ['flood'] });
  await until(async () => Number(object(await world.ann('GET', path))['stdout_bytes']), (bytes) => bytes > 5_000_000, 60_000);
  const gone = await world.ann('GET', `${path}/output?after=0`);
  expect([gone.status, object(gone)]).toMatchObject([410, { code: 'output_dropped', oldest: expect.any(Number) }]);
  await world.ann('DELETE', path);
});

test('a command above the limit of running commands is a 429 with the limit', async () => {
  const other = await runningSandbox(world);
  for (let count = 0; count < 20; count += 1) expect((await world.ann('POST', other.path, { command: ['sleep'] })).status).toBe(201);
  const refused = await world.ann('POST', other.path, { command: ['sleep'] });
  expect([refused.status, object(refused)]).toMatchObject([429, { code: 'execution_limit_reached', limit: 'executions_per_sandbox', max: 20 }]);
});

test('a reader of output that is cut off at random points continues from its offset, and loses and repeats no output', async () => {
  const random = seeded(printedSeed('cuts of output'));
  const path = await run({ command: ['random'] });
  let got = Buffer.alloc(0);
  for (let cuts = 0; got.length < randomOutput.length; cuts += 1) {
    const left = new AbortController();
    const response = await fetch(`${world.url}${path}/output?follow=true&after=${got.length}`, { headers: { 'X-Session-API-Key': world.keys.ann }, signal: left.signal });
    expect(response.status).toBe(200);
    let wanted = cuts < 60 ? 1 + below(random, 30_000) : Infinity;
    for await (const part of response.body ?? []) {
      const taken = part.subarray(0, wanted);
      got = Buffer.concat([got, taken]);
      wanted -= taken.length;
      if (wanted <= 0) break;
    }
    left.abort();
  }
  expect(got.equals(randomOutput)).toBe(true);
  expect(await ended(path)).toMatchObject({ exit_code: 3 });
});
