import { once } from 'node:events';
import type { Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import type { ClientOptions } from 'ws';
import { Failure } from '../../../src/domain/failure.ts';
import { object } from '../../support/client.ts';
import { below, printedSeed, seeded } from '../../support/seeded.ts';
import { until } from '../../support/until.ts';
import { attach, type Attached, commands, randomOutput, refusedAttach, runningSandbox, terminalSize } from './executions-support.ts';
import { createWorld, type World } from './world.ts';

const page = 'https://app.example.org';
let world: World;
let sandbox: Awaited<ReturnType<typeof runningSandbox>>;
beforeAll(async () => {
  world = await createWorld({ command: commands, server: { corsOrigins: [page], heartbeatMs: 200 } });
  sandbox = await runningSandbox(world);
});
afterAll(() => world.close());

async function run(body: unknown): Promise<string> {
  return `${sandbox.path}/${String(object(await world.ann('POST', sandbox.path, body))['id'])}`;
}

const annsKey = () => ({ 'X-Session-API-Key': world.keys.ann });
const attached = (path: string, query = '', headers: Readonly<Record<string, string>> = annsKey(), options: ClientOptions = {}) =>
  attach(`${world.url}${path}/attach${query}`, headers, options);
const said = (client: Attached, text: string) => until(() => client.bytes.stdout.toString(), (all) => all.includes(text), 60_000);
const isEnd = (message: Record<string, unknown>) => message['status'] !== undefined;
const isWriter = (wanted: boolean) => (message: Record<string, unknown>) => message['writer'] === wanted;

test('an attached client sends input, and receives stdout, stderr and at last the exit code', async () => {
  const errs = attached(await run({ command: ['errs'] }));
  expect(await errs.told(isEnd)).toMatchObject({ status: 'exited', exit_code: 7, status_reason: null });
  expect([errs.bytes.stdout.toString(), errs.bytes.stderr.toString()]).toEqual(['out', 'err']);
  expect(await errs.closed).toBe(1000);

  const cat = attached(await run({ command: ['cat'], stdin: true }));
  await cat.told(isWriter(true));
  cat.socket.send(Buffer.from('one \u0000'));
  await said(cat, 'one \u0000');
  cat.socket.send(Buffer.from('two'));
  cat.socket.send(JSON.stringify({ close_input: true }));
  expect(await cat.told(isEnd)).toMatchObject({ exit_code: 0 });
  expect(cat.bytes.stdout.toString()).toBe('one \u0000two');
  expect(cat.controls).toContainEqual({ input_closed: true });
});

test('control messages resize the terminal and send signals, and a malformed one gets an error', async () => {
  const path = await run({ command: ['sleep'], tty: { cols: 80, rows: 24 } });
  const client = attached(path);
  await client.told(isWriter(true));
  client.socket.send(JSON.stringify({ resize: { cols: 100, rows: 40 } }));
  client.socket.send('{"resize": 1');
  expect(await client.told(({ error }) => error !== undefined)).toMatchObject({ error: { code: 'invalid_request' } });
  await until(() => terminalSize(world, sandbox.id, path), (size) => size?.cols === 100 && size.rows === 40);
  client.socket.send(JSON.stringify({ signal: 'SIGINT' }));
  expect(await client.told(isEnd)).toMatchObject({ status: 'exited', exit_code: 130 });
});

test('a failed write of input ends the attachment, and no later input reaches the command', async () => {
  const path = await run({ command: ['cat'], stdin: true });
  const client = attached(path);
  await client.told(isWriter(true));
  const reason = { code: 'execution_end_unknown' } as const;
  vi.spyOn(world.skep.executions, 'write').mockRejectedValueOnce(
    new Failure('runtime_unavailable', { runtime: 'sandbox', reason, retryAfterSeconds: 5 }),
  );
  client.socket.send(Buffer.from('lost'));
  await client.told(({ error }) => error !== undefined);
  client.socket.send(Buffer.from('after a gap'));
  client.socket.send(JSON.stringify({ close_input: true }));
  expect(await client.closed).toBe(1011);
  const next = attached(path, '?takeover=true');
  await next.told(isWriter(true));
  next.socket.send(Buffer.from('again'));
  next.socket.send(JSON.stringify({ close_input: true }));
  expect(await next.told(isEnd)).toMatchObject({ status: 'exited', exit_code: 0 });
  expect(next.bytes.stdout.toString()).toBe('again');
});

test('a signal reaches a command that does not read its input, even after the input is closed', async () => {
  const client = attached(await run({ command: ['sleep'], stdin: true }));
  await client.told(isWriter(true));
  client.socket.send(Buffer.from('unread'));
  client.socket.send(JSON.stringify({ close_input: true }));
  client.socket.send(JSON.stringify({ signal: 'SIGINT' }));
  expect(await client.told(isEnd)).toMatchObject({ status: 'exited', exit_code: 130 });
});

describe('attached clients', () => {
  test('receive the same output, and only one of them can write, until another takes over', async () => {
    const path = await run({ command: ['cat'], tty: { cols: 80, rows: 24 } });
    const first = attached(path);
    await first.told(isWriter(true));
    first.socket.send(Buffer.from('first '));
    await said(first, 'first ');
    const second = attached(path);
    await second.told(isWriter(false));
    // Earlier output is replayed.
    await said(second, 'first ');
    second.socket.send(Buffer.from('nothing'));
    expect(await second.told(({ error }) => error !== undefined)).toMatchObject({ error: { code: 'not_writer' } });

    const third = attached(path, '?takeover=true');
    await third.told(isWriter(true));
    await first.told(isWriter(false));
    first.socket.send(Buffer.from('lost'));
    await first.told(({ error }) => error !== undefined);
    third.socket.send(Buffer.from('third'));
    for (const client of [first, second, third]) await said(client, 'third');
    first.socket.send(JSON.stringify({ writer: true }));
    await third.told(isWriter(false));
    third.socket.send(JSON.stringify({ writer: true }));
    await until(() => third.controls.at(-1), (last) => last?.['writer'] === true, 60_000);
    expect([first, second, third].map(({ bytes }) => bytes.stdout.toString())).toEqual(Array.from({ length: 3 }, () => 'first third'));

    third.socket.close();
    await third.closed;
    const fourth = await until(async () => {
      const client = attached(path, '?after=6');
      const { writer } = await client.told((message) => 'writer' in message);
      if (writer !== true) client.socket.close();
      return { client, writer };
    }, ({ writer }) => writer === true, 60_000);
    await said(fourth.client, 'third');
    expect(fourth.client.controls).toContainEqual({ stream: 'stdout', offset: 6 });
    fourth.client.socket.send(JSON.stringify({ close_input: true }));
    for (const client of [first, second, fourth.client]) expect(await client.told(isEnd)).toMatchObject({ status: 'exited' });
  });

  test('with a read-only key receive the output, but cannot write', async () => {
    const path = await run({ command: ['cat'], stdin: true });
    const reader = attached(path, '?takeover=true', { 'X-Session-API-Key': world.keys.reader });
    await reader.told(isWriter(false));
    const writer = attached(path);
    await writer.told(isWriter(true));
    writer.socket.send(Buffer.from('seen'));
    await said(reader, 'seen');
    reader.socket.send(JSON.stringify({ signal: 'SIGKILL' }));
    expect(await reader.told(({ error }) => error !== undefined)).toMatchObject({ error: { code: 'not_writer' } });
  });

  test('with a read-only key do not make the command wait', async () => {
    for (const query of ['?window=65536', '?window=65536&hold=true']) {
      const path = await run({ command: ['flood'] });
      const reader = attached(path, query, { 'X-Session-API-Key': world.keys.reader });
      await until(() => reader.bytes.stdout.length, Boolean);
      await until(async () => Number(object(await world.ann('GET', path))['stdout_bytes']), (bytes) => bytes > 64 << 20);
      reader.socket.close();
      await world.ann('DELETE', path);
    }
  });

  test('with a window receive no more than it until they confirm', async () => {
    const client = attached(await run({ command: ['random'] }), '?window=65536', { 'X-Session-API-Key': world.keys.reader });
    const received = () => client.bytes.stdout.length;
    await until(received, (bytes) => bytes >= 65_536);
    const heartbeats = client.controls.length;
    await until(() => client.controls.length, (now) => now >= heartbeats + 3);
    expect(received()).toBeLessThan(65_536 + 10_000);
    let confirmed = 0;
    const confirm = () => {
      const read = received() - confirmed;
      if (read > 0) client.socket.send(JSON.stringify({ read }));
      confirmed += read;
    };
    confirm();
    client.socket.on('message', confirm);
    await client.told(isEnd);
    expect(client.bytes.stdout.equals(randomOutput)).toBe(true);
    expect(client.controls.filter(({ error }) => error !== undefined)).toEqual([]);
  });
});

describe('attaching', () => {
  test('is refused without a key, for another owner, and with a wrong request', async () => {
    const path = await run({ command: ['sleep'] });
    const at = `${world.url}${path}/attach`;
    expect(await refusedAttach(at, {})).toMatchObject({ status: 401, body: { code: 'unauthorized' } });
    expect(await refusedAttach(at, { 'X-Session-API-Key': world.keys.ben })).toMatchObject({ status: 404, body: { code: 'sandbox_not_found' } });
    expect(await refusedAttach(`${world.url}${sandbox.path}/none/attach`, annsKey())).toMatchObject({ status: 404, body: { code: 'execution_not_found' } });
    expect(await refusedAttach(`${at}?after=x`, annsKey())).toMatchObject({ status: 422 });
    expect(await refusedAttach(`${world.url}/nowhere`, annsKey())).toMatchObject({ status: 404, body: { code: 'not_found' } });
  });

  test('is possible with a ticket from a page of an allowed origin', async () => {
    const path = await run({ command: ['cat'], stdin: true });
    const ticket = String(object(await world.ann('GET', '/api/v1/events/ticket'))['ticket']);
    expect(await refusedAttach(`${world.url}${path}/attach?ticket=${ticket}`, { Origin: 'https://evil.example.org' }))
      .toMatchObject({ status: 403, body: { code: 'origin_forbidden' } });
    expect(await refusedAttach(`${world.url}${path}/attach?ticket=x`, { Origin: page })).toMatchObject({ status: 401 });
    for (const origin of [page, world.url]) {
      const client = attached(path, `?ticket=${ticket}&takeover=true`, { Origin: origin });
      await client.told(isWriter(true));
      client.socket.close();
      await client.closed;
    }
  });

  test('ends when the key is revoked', async () => {
    const key = world.auth.issue({ userId: 'ann', keyName: 'short', access: 'full' });
    const client = attached(await run({ command: ['sleep'] }), '', { 'X-Session-API-Key': key });
    await client.told(isWriter(true));
    world.auth.revoke(key);
    expect(await client.closed).toBe(1008);
  });
});

test('a client that is cut off at random points continues from its offset, and loses and repeats no output', async () => {
  const random = seeded(printedSeed('cuts of attachments'));
  const path = await run({ command: ['random'] });
  let got = Buffer.alloc(0);
  for (let cuts = 0; ; cuts += 1) {
    const client = attached(path, `?after=${got.length}`);
    const wanted = cuts < 40 ? 1 + below(random, 30_000) : Infinity;
    client.socket.on('message', () => {
      if (client.bytes.stdout.length >= wanted) client.socket.terminate();
    });
    await client.closed;
    got = Buffer.concat([got, client.bytes.stdout]);
    if (client.controls.some(isEnd)) break;
  }
  expect(got.equals(randomOutput)).toBe(true);
});

test('a client that does not read is cut off, and its output is not kept in memory', async () => {
  const path = await run({ command: ['flood'] });
  const client = attached(path);
  await once(client.socket, 'open');
  client.socket.pause();
  const { _socket: { localPort } } = client.socket as unknown as { _socket: Socket };
  const end = [...world.connections].find(({ remotePort }) => remotePort === localPort);
  await until(() => end?.destroyed, Boolean, 60_000);
  expect(end?.bytesWritten).toBeLessThan(20_000_000);
  await world.ann('DELETE', path);
});

test('a client that answers no ping, but confirms output, stays attached', async () => {
  const client = attached(await run({ command: ['cat'], stdin: true }), '', annsKey(), { autoPong: false });
  await client.told(isWriter(true));
  const confirming = setInterval(() => client.socket.send(JSON.stringify({ read: 1 })), 20);
  let pings = 0;
  client.socket.on('ping', () => (pings += 1));
  await until(() => pings >= 4 || client.socket.readyState !== client.socket.OPEN, Boolean);
  clearInterval(confirming);
  client.socket.send(JSON.stringify({ close_input: true }));
  expect(await client.closed).toBe(1000);
});

test('a client whose end of input is not passed on is disconnected', async () => {
  const client = attached(await run({ command: ['cat'], stdin: true }));
  await client.told(isWriter(true));
  const failure = new Failure('runtime_unavailable', { runtime: 'process', reason: { code: 'process_limit_reached' }, retryAfterSeconds: 5 });
  vi.spyOn(world.skep.executions, 'write').mockRejectedValueOnce(failure);
  client.socket.send(JSON.stringify({ close_input: true }));
  expect(await client.closed).toBe(1011);
});

test('attached clients are disconnected when the server is closed', async () => {
  const other = await createWorld({ command: commands });
  const { path } = await runningSandbox(other);
  const id = String(object(await other.ann('POST', path, { command: ['sleep'] }))['id']);
  const client = attach(`${other.url}${path}/${id}/attach`, { 'X-Session-API-Key': other.keys.ann });
  await client.told(isWriter(true));
  await other.close();
  expect(await client.closed).toBe(1001);
});
