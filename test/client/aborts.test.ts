import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { type ClientOptions, createClient, isFailure, type SkepClient } from '../../src/client/index.ts';
import { commands } from '../adapters/http/executions-support.ts';
import { createWorld, plainSpec, type World } from '../adapters/http/world.ts';
import { startRelay } from './relay.ts';

let world: World;
beforeAll(async () => void (world = await createWorld({ specs: [plainSpec], command: commands })));
afterAll(() => world.close());
afterEach(() => void vi.unstubAllGlobals());

/** A platform that does not tell a response about the signal of its request: Deno after a garbage collection. */
const deafFetch: typeof fetch = (address, init) => fetch(address, { ...init, signal: null });

describe.each([['the platform', undefined], ['a platform whose responses ignore signals', deafFetch]])('with the fetch of %s', (_, given) => {
  const options = (url: string): ClientOptions => ({ url, key: world.keys.ann, fetch: given, silenceMs: 100 });
  const clientOf = (url: string): SkepClient => createClient(options(url));

  test('an abort ends the reading of a response with its reason', async () => {
    const skep = clientOf(world.url);
    await using sandbox = await skep.sandboxes.start({ spec: 'plain', waitUntil: 'running' });
    const execution = await sandbox.executions.start(['flood']);
    const leaving = new AbortController();
    const path = { id: sandbox.id, execution_id: execution.id };
    const input = { path, query: { follow: true }, signal: leaving.signal };
    const response = await skep.stream('GET /api/v1/sandboxes/{id}/executions/{execution_id}/output', input);
    const reader = response.body?.getReader();
    expect((await reader?.read())?.done).toBe(false);
    leaving.abort(new Error('enough'));
    await expect(reader?.read()).rejects.toThrow('enough');
  });

  test('an abort ends the command that is run', async () => {
    await using sandbox = await clientOf(world.url).sandboxes.start({ spec: 'plain', waitUntil: 'running' });
    await expect(sandbox.run(['sleep'], { signal: AbortSignal.timeout(300) })).rejects.toMatchObject({ name: 'TimeoutError' });
    for await (const { command } of sandbox.executions.list()) expect.unreachable(`${String(command)} still runs`);
  });

  test('the limit of silence ends the reading of a response', async () => {
    const relay = await startRelay(world.url);
    relay.mishap = () => ({ kind: 'stall', bytes: 5 });
    const response = await clientOf(relay.url).stream('GET /api/v1/me');
    const timedOut = { code: 'timed_out', context: { limit: 'silence', limit_ms: 100 } };
    await expect(response.text()).rejects.toMatchObject(timedOut);
    await expect(createClient({ ...options(relay.url), retryForMs: 0 }).request('GET /api/v1/me')).rejects.toMatchObject(timedOut);
  });
});

test('an abort during the start of a command that is run ends the command that then starts', async () => {
  const leaving = new AbortController();
  const deleted = Promise.withResolvers<void>();
  const noting: typeof fetch = async (address, init) => {
    const response = await fetch(address, init);
    if (typeof address === 'string' && address.endsWith('/executions')) leaving.abort(new Error('enough'));
    if (init?.method === 'DELETE') deleted.resolve();
    return response;
  };
  const skep = createClient({ url: world.url, key: world.keys.ann, fetch: noting });
  await using sandbox = await skep.sandboxes.start({ spec: 'plain', waitUntil: 'running' });
  await expect(sandbox.run(['sleep'], { signal: leaving.signal })).rejects.toThrow('enough');
  await deleted.promise;
  for await (const { command } of sandbox.executions.list()) expect.unreachable(`${String(command)} still runs`);
});

test('an upload fails with the error of its own stream', async () => {
  const skep = createClient({ url: world.url, key: world.keys.ann });
  await using sandbox = await skep.sandboxes.start({ spec: 'plain', waitUntil: 'running' });
  const content = new ReadableStream<Uint8Array>({ pull: (controller) => controller.error(new Error('the disk can not be read')) });
  await expect(sandbox.files.write('/tmp/file', content)).rejects.toThrow(`The upload to ${world.url} failed: the disk can not be read.`);
});

test('an upload to a server that is not there fails with the code of the connection', async () => {
  const input = { path: { id: 'sb' }, query: { path: '/tmp/file' }, body: new Blob(['text']).stream() };
  const uploaded = createClient({ url: 'http://localhost:65009' }).request('PUT /api/v1/sandboxes/{id}/files', input);
  await expect(uploaded).rejects.toThrow('ECONNREFUSED');
});

test('a stream is refused on a platform that would send its name instead', async () => {
  const skep = createClient({ url: world.url, key: world.keys.ann });
  await using sandbox = await skep.sandboxes.start({ spec: 'plain', waitUntil: 'running' });
  vi.stubGlobal('Request', class extends Request {
    constructor(address: string) {
      super(address, { method: 'POST', body: '[object ReadableStream]' });
    }
  });
  const uploaded = sandbox.files.write('/tmp/file', new Blob(['text']).stream());
  await expect(uploaded).rejects.toMatchObject({ code: 'invalid_request', context: { problems: [{ loc: ['body'] }] } });
});

const limitOf = async (send: () => Promise<unknown>) => {
  const failed = send().catch((error: unknown) => isFailure(error, 'timed_out') && error.context.limit_ms);
  await vi.advanceTimersByTimeAsync(300_000);
  return await failed;
};

test('a request has more time where the server waits for git, unless a limit is given', async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const silent = { url: world.url, retryForMs: 0, fetch: () => new Promise<never>(() => {}) };
  const path = { id: 'one' };
  const skep = createClient(silent);
  expect(await limitOf(() => skep.request('GET /api/v1/app-conversations/{id}', { path }))).toBe(60_000);
  expect(await limitOf(() => skep.request('POST /api/v1/app-conversations/{id}/publish', { path, body: {} }))).toBe(290_000);
  const patch = () => createClient({ ...silent, silenceMs: 7 }).stream('GET /api/v1/app-conversations/{id}/changes', { path });
  expect(await limitOf(patch)).toBe(7);
});
