import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { type ClientOptions, createClient, isFailure, SkepError, type SkepClient } from '../../src/client/index.ts';
import { failureIn } from '../../src/client/failures.ts';
import { Backoff } from '../../src/client/backoff.ts';
import { commands, randomOutput } from '../adapters/http/executions-support.ts';
import { chunk, readyConversation } from '../adapters/http/support.ts';
import { coderSpec, createWorld, plainSpec, type World } from '../adapters/http/world.ts';
import { below, printedSeed, seeded } from '../support/seeded.ts';
import { until } from '../support/until.ts';
import { first, type Relay, startRelay } from './relay.ts';

let world: World;
beforeAll(async () => void (world = await createWorld({ specs: [coderSpec, plainSpec], command: commands, server: { heartbeatMs: 200 } })));
afterAll(() => world.close());
afterEach(() => void vi.useRealTimers());

const random = seeded(printedSeed('cuts of what the client follows'));
const hang = { kind: 'hang' } as const;
const lose = { kind: 'lose' } as const;
const busy = (status: number, headers = {}) => ({ kind: 'answer', status, headers, body: '<p>busy</p>' }) as const;
const limited = (seconds: number) => {
  const body = JSON.stringify({ detail: 'Too many requests.', code: 'rate_limited', limit: 'requests_per_minute', retry_after_seconds: seconds });
  return { kind: 'answer', status: 429, headers: { 'Retry-After': String(seconds) }, body } as const;
};

/** After these bytes, breaks the connection, or ends it as if the response were complete. */
const cut = (bytes: number) => ({ kind: below(random, 2) === 0 ? 'cut' : 'end', bytes }) as const;

async function behindRelay(options: Partial<ClientOptions> = {}): Promise<{ readonly skep: SkepClient; readonly relay: Relay }> {
  const relay = await startRelay(world.url);
  return { relay, skep: createClient({ url: relay.url, key: world.keys.ann, ...options }) };
}

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}

const failureOf = async (work: Promise<unknown>): Promise<unknown> => await work.then(() => null, (error: unknown) => error);

describe('a request with a temporary failure', () => {
  test.each([
    ['no response', lose], ['503', busy(503)], ['502 from a proxy', busy(502)], ['429 with seconds', limited(1)],
    ['429 with a date', { ...limited(1), headers: { 'Retry-After': new Date().toUTCString() } }],
  ])('is sent again if it only reads: %s', async (_, mishap) => {
    const { skep, relay } = await behindRelay();
    relay.mishap = first(/me/, mishap, mishap);
    expect(await skep.request('GET /api/v1/me')).toMatchObject({ user_id: 'ann' });
    expect(relay.seen).toHaveLength(3);
  });

  test('is sent again with its idempotency key if it writes, and takes effect once', async () => {
    const { skep, relay } = await behindRelay();
    relay.mishap = first(/POST/, lose, busy(503));
    const { id } = await skep.sandboxes.start({ spec: 'plain', metadata: { task: 'once' } });
    expect(relay.seen).toHaveLength(3);
    relay.mishap = first(/DELETE/, lose);
    expect((await all(skep.sandboxes.list({ metadata__eq: ['task=once'] }))).map((one) => one.id)).toEqual([id]);
    await (await skep.sandboxes.get(id)).delete();
  });

  test('is not sent again without an idempotency key if it may have taken effect, or if its body is a stream', async () => {
    const { skep, relay } = await behindRelay();
    const sandbox = await skep.sandboxes.start({ spec: 'plain', waitUntil: 'running' });
    const execution = await sandbox.executions.start(['cat'], { stdin: true });
    relay.mishap = first(/input/, lose);
    expect(await failureOf(execution.write('once', { close: true }))).toMatchObject({ code: 'unreachable', context: { url: relay.url } });
    expect(await execution.text()).toBe('once');
    relay.mishap = first(/PUT/, busy(503), busy(503));
    expect(await failureOf(sandbox.files.write('/workspace/a', new Blob(['bytes']).stream()))).toMatchObject({ status: 503 });
    relay.mishap = first(/PUT/, busy(503));
    expect(await sandbox.files.write('/workspace/a', 'bytes')).toMatchObject({ size: 5 });
    await sandbox.delete();
  });

  test('fails at once if the server requests a longer wait than the retry time', async () => {
    const { skep, relay } = await behindRelay({ retryForMs: 5000 });
    relay.mishap = first(/me/, limited(60));
    const failure = await failureOf(skep.request('GET /api/v1/me'));
    if (!isFailure(failure, 'rate_limited')) throw failure;
    expect([failure.context.limit, failure.retryAfterMs, relay.seen.length]).toEqual(['requests_per_minute', 60_000, 1]);
  });

  test('ignores a Retry-After that is neither a number nor a date', () => {
    expect(['soon', '', '5s'].map((text) => failureIn(503, '', text).retryAfterMs)).toEqual([null, null, null]);
  });

  test('waits as long as the server requests, and fails if that is too long', async () => {
    vi.useFakeTimers();
    let isDue = false;
    const error = new SkepError('rate_limited', 'later', { context: { limit: 'x', retry_after_seconds: 3 }, retryAfterMs: 3000 });
    const waiting = new Backoff(10_000).wait(error).then(() => (isDue = true));
    await vi.advanceTimersByTimeAsync(2999);
    expect(isDue).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    await waiting;
    await expect(new Backoff(2999).wait(error)).rejects.toBe(error);
  });
});

test('a page with a good status, as of a login in front of the server, is a failure of requests and event streams', async () => {
  const { skep, relay } = await behindRelay();
  relay.mishap = () => ({ kind: 'answer', status: 200, headers: { 'Content-Type': 'Text/HTML' }, body: '<h1>Log in</h1>' });
  const named = () => skep.request('GET /api/v1/app-conversations/{id}', { path: { id: 'docs' } });
  for (const send of [() => skep.request('GET /api/v1/me'), () => skep.sandboxes.start(), () => skep.events().next(), named]) {
    expect(await failureOf(send())).toMatchObject({ code: 'unexpected_answer', status: 200 });
  }
});

describe('a server that does not answer', () => {
  test('makes requests and event streams fail after a time limit, with the limit in the error', async () => {
    const { skep, relay } = await behindRelay({ silenceMs: 50, connectMs: 30, retryForMs: 0 });
    relay.mishap = () => hang;
    expect(await failureOf(skep.request('GET /api/v1/me'))).toMatchObject({ code: 'timed_out', context: { limit: 'silence', limit_ms: 50 } });
    expect(await failureOf(all(skep.events()))).toMatchObject({ code: 'timed_out', context: { limit: 'connect', limit_ms: 30 } });
  });

  test('is waited for with a time limit that is longer than a timer can be', async () => {
    const { skep } = await behindRelay({ silenceMs: 2 ** 31, connectMs: 2 ** 31, retryForMs: 0 });
    expect(await skep.request('GET /api/v1/me')).toMatchObject({ user_id: 'ann' });
    expect(await all(skep.sandboxes.list({ metadata__eq: ['task=none'] }))).toEqual([]);
  });

  test('does not delay an abort, and the call fails with the reason of the signal', async () => {
    const { skep, relay } = await behindRelay({ retryForMs: 0 });
    relay.mishap = () => hang;
    const leaving = new AbortController();
    const waiting = failureOf(skep.request('GET /api/v1/me', { signal: leaving.signal }));
    await until(() => relay.seen.length, Boolean);
    leaving.abort(new Error('enough'));
    expect(await waiting).toMatchObject({ message: 'enough' });
    expect(await failureOf(all(skep.events({ signal: leaving.signal })))).toMatchObject({ message: 'enough' });
  });
});

describe('events', () => {
  test('are received once and in order, even if the connection is cut at random points', async () => {
    const { skep, relay } = await behindRelay();
    const id = await readyConversation(world);
    const count = 300;
    relay.mishap = (target) => (target.includes('stream') ? cut(2000 + below(random, 20_000)) : null);
    await world.store.events.append(Array.from({ length: count }, (_, index) => chunk(id, String(index))));
    const texts: string[] = [];
    for await (const event of skep.events({ conversation: id, kinds: ['message_chunk', 'conversation_deleted'] })) {
      if (event.kind === 'message_chunk') texts.push(event.data.text);
      if (texts.length === count && event.kind === 'message_chunk') await world.skep.conversations.delete('ann', id);
    }
    expect(texts).toEqual(Array.from({ length: count }, (_, index) => String(index)));
    expect(relay.seen.length).toBeGreaterThan(3);
  });

  test('continue after a cut, even if a proxy drops Last-Event-ID', async () => {
    const { skep, relay } = await behindRelay();
    const id = await readyConversation(world);
    relay.mishap = first(/stream/, { kind: 'end', bytes: 3000 });
    relay.dropped.add('last-event-id');
    await world.store.events.append(Array.from({ length: 20 }, (_, index) => chunk(id, String(index))));
    const texts: string[] = [];
    for await (const event of skep.events({ conversation: id, kinds: ['message_chunk'] })) {
      if (event.kind === 'message_chunk') texts.push(event.data.text);
      if (texts.length === 20) break;
    }
    expect(texts).toEqual(Array.from({ length: 20 }, (_, index) => String(index)));
    expect(relay.seen.filter((target) => target.includes('stream'))).toEqual([expect.any(String), expect.stringMatching(/after=\d+/)]);
  });

  test('of an agent reach ask, even over lost connections', async () => {
    const { skep, relay } = await behindRelay();
    relay.mishap = first(/messages|stream/, lose, { kind: 'end', bytes: 100 }, lose, { kind: 'cut', bytes: 1000 });
    await using conversation = await skep.conversations.start({ sandbox_spec_id: 'coder' });
    expect(await conversation.ask('are you there?')).toBe('heard: are you there?');
  });
});

describe('an output', () => {
  test('is read completely, each byte once, even if the connection is cut at random points', async () => {
    const { skep, relay } = await behindRelay();
    await using sandbox = await skep.sandboxes.start({ spec: 'plain', waitUntil: 'running' });
    relay.mishap = (target) => (/output|attach/.test(target) ? cut(5000 + below(random, 150_000)) : null);
    const execution = await sandbox.executions.start(['random']);
    expect(Buffer.concat(await all(execution.output())).equals(randomOutput)).toBe(true);
    expect(execution.state).toMatchObject({ status: 'exited', exit_code: 3 });
    const attached = execution.attach();
    expect(Buffer.concat((await all(attached)).map(({ bytes }) => bytes)).equals(randomOutput)).toBe(true);
    expect([attached.end, relay.seen.filter((target) => target.includes('attach')).length > 1]).toMatchObject([{ exit_code: 3 }, true]);
  });

  test('that was dropped fails with the oldest offset', async () => {
    const { skep, relay } = await behindRelay();
    await using sandbox = await skep.sandboxes.start({ spec: 'plain', waitUntil: 'running' });
    const execution = await sandbox.executions.start(['random']);
    const body = JSON.stringify({ detail: 'It is gone.', code: 'output_dropped', oldest: 4711 });
    relay.mishap = first(/output/, { kind: 'cut', bytes: 6000 }, { kind: 'answer', status: 410, body });
    const failure = await failureOf(all(execution.output()));
    if (!isFailure(failure, 'output_dropped')) throw failure;
    expect(failure.context.oldest).toBe(4711);
  });

  test('ends when its execution ends, and fails when its signal is aborted', async () => {
    const { skep } = await behindRelay();
    await using sandbox = await skep.sandboxes.start({ spec: 'plain', waitUntil: 'running' });
    const [one, other] = [await sandbox.executions.start(['sleep']), await sandbox.executions.start(['sleep'])];
    const reading = all(one.output());
    await one.signal('SIGTERM');
    expect(await reading).toEqual([]);
    const leaving = new AbortController();
    const attached = failureOf(all(other.attach({ signal: leaving.signal })));
    leaving.abort();
    expect(await attached).toMatchObject({ name: 'AbortError' });
  });
});

test('a command that was started is followed although the server is away for longer than a request is repeated', async () => {
  const { skep, relay } = await behindRelay({ retryForMs: 0 });
  await using sandbox = await skep.sandboxes.start({ spec: 'plain', waitUntil: 'running' });
  const execution = await sandbox.executions.start(['random']);
  const lost: string[] = [];
  relay.mishap = first(/ticket|output/, busy(503), lose, busy(502));
  expect(Buffer.concat(await all(execution.output('stdout', { onLost: ({ code }) => lost.push(code) }))).equals(randomOutput)).toBe(true);
  relay.mishap = first(/ticket|output/, busy(503), lose, busy(502));
  const parts = await all(execution.attach({ onLost: ({ code }) => lost.push(code) }));
  expect(Buffer.concat(parts.map(({ bytes }) => bytes)).equals(randomOutput)).toBe(true);
  expect(lost).toEqual(['unreachable', 'unreachable']);
});

test('run ends a command whose output cannot be read, and throws the failure', async () => {
  const { skep, relay } = await behindRelay();
  await using sandbox = await skep.sandboxes.start({ spec: 'plain', waitUntil: 'running' });
  const body = JSON.stringify({ detail: 'It is gone.', code: 'output_dropped', oldest: 4711 });
  relay.mishap = first(/output\?stream=stderr/, { kind: 'answer', status: 410, body });
  expect(await failureOf(sandbox.run(['sleep']))).toMatchObject({ code: 'output_dropped' });
  expect(await all(sandbox.executions.list())).toEqual([]);
});

test('attach names the cause if a proxy in front of the server passes no WebSockets', async () => {
  const { skep, relay } = await behindRelay({ retryForMs: 300 });
  relay.dropped.add('upgrade');
  await using sandbox = await skep.sandboxes.start({ spec: 'plain', waitUntil: 'running' });
  const attached = all((await sandbox.executions.start(['sleep'])).attach());
  expect(await failureOf(attached)).toMatchObject({ code: 'connection_lost', message: expect.stringContaining('may not pass WebSockets') });
});

test('attach fails with the code of the response if the WebSocket is refused', async () => {
  const { skep } = await behindRelay();
  const sandbox = await skep.sandboxes.start({ spec: 'plain', waitUntil: 'running' });
  const execution = await sandbox.executions.start(['sleep']);
  await execution.delete();
  expect(await failureOf(all(execution.attach()))).toMatchObject({ code: 'execution_not_found' });
  await sandbox.delete();
});

test('untilRunning fails with the status if the sandbox is PAUSED', async () => {
  const { skep } = await behindRelay();
  const sandbox = await skep.sandboxes.start({ spec: 'plain', waitUntil: 'running' });
  await sandbox.pause();
  expect(await failureOf(sandbox.untilRunning())).toMatchObject({ code: 'never_reached', context: { wanted: 'RUNNING', status: 'PAUSED' } });
  await sandbox.delete();
});
