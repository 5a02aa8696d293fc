import { getEventListeners } from 'node:events';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { storeUnavailable } from '../../src/adapters/store/database.ts';
import { failureIn, isTemporary } from '../../src/client/failures.ts';
import { createClient, isFailure, type SkepClient } from '../../src/client/index.ts';
import { commands, randomOutput } from '../adapters/http/executions-support.ts';
import { coderSpec, createWorld, plainSpec, type World } from '../adapters/http/world.ts';
import { until } from '../support/until.ts';

let world: World;
let skep: SkepClient;
beforeAll(async () => {
  world = await createWorld({ specs: [coderSpec, plainSpec], command: commands });
  skep = createClient({ url: `${world.url}/`, key: world.keys.ann });
});
afterAll(() => world.close());

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}

describe('a sandbox', () => {
  test('is started, paused, resumed, listed, and deleted at the end of its scope', async () => {
    let id = '';
    {
      await using sandbox = await skep.sandboxes.start({ spec: 'plain', metadata: { task: 'client' }, waitUntil: 'running' });
      id = sandbox.id;
      expect(sandbox.state).toMatchObject({ status: 'RUNNING', sandbox_spec_id: 'plain', metadata: { task: 'client' } });
      expect(await sandbox.pause('stop')).toMatchObject({ status: 'PAUSED', pause_kind: 'stop' });
      expect(await sandbox.resume()).toMatchObject({ status: expect.stringMatching(/RUNNING|RESUMING/) });
      expect(await sandbox.untilRunning()).toMatchObject({ status: 'RUNNING' });
      const found = await all(skep.sandboxes.list({ metadata__eq: ['task=client'] }));
      expect(found.map((one) => one.id)).toEqual([id]);
    }
    const gone = await skep.sandboxes.get(id).catch((error: unknown) => error);
    expect(gone).toMatchObject({ name: 'SkepError', code: 'sandbox_not_found', status: 404, context: { sandbox_id: id } });
  });

  test('runs commands, and returns stdout and stderr separately', async () => {
    await using sandbox = await skep.sandboxes.start({ spec: 'plain', waitUntil: 'running' });
    expect(await sandbox.run(['errs'])).toEqual({ exit_code: 7, status_reason: null, stdout: 'out', stderr: 'err' });
    expect(await all(sandbox.executions.list())).toEqual([]);
    const execution = await sandbox.executions.start(['random']);
    const read = async () => Buffer.concat(await all(execution.output()));
    expect((await read()).equals(randomOutput)).toBe(true);
    expect(execution.state).toMatchObject({ status: 'exited', exit_code: 3 });
    expect((await read()).equals(randomOutput)).toBe(true);
    const cat = await sandbox.executions.start(['cat'], { stdin: true });
    await cat.write('one ');
    await cat.write('two', { close: true });
    expect(await cat.text()).toBe('one two');
  });

  test('ends a command after its time limit, or when its caller aborts', async () => {
    await using sandbox = await skep.sandboxes.start({ spec: 'plain', waitUntil: 'running' });
    expect(await sandbox.run(['sleep'], { timeout_seconds: 1 })).toMatchObject({ status_reason: { code: 'execution_timed_out' } });
    const caller = new AbortController();
    const running = sandbox.run(['sleep'], { signal: caller.signal });
    await until(() => all(sandbox.executions.list()), (found) => found.length === 1, 10_000);
    caller.abort(new Error('enough'));
    await expect(running).rejects.toThrow('enough');
    expect(await all(sandbox.executions.list())).toEqual([]);
  });

  test('has executions to which a client can attach', async () => {
    await using sandbox = await skep.sandboxes.start({ spec: 'plain', waitUntil: 'running' });
    const execution = await sandbox.executions.start(['cat'], { stdin: true });
    const attached = execution.attach();
    void attached.write('hello ').then(() => attached.write('there')).then(() => attached.closeInput());
    let text = '';
    for await (const { stream, bytes } of attached) text += `${stream}:${new TextDecoder().decode(bytes)}`;
    expect(text.replaceAll('stdout:', '')).toBe('hello there');
    expect(attached.end).toMatchObject({ status: 'exited', exit_code: 0 });
    await expect(attached.write('more')).rejects.toMatchObject({ code: 'connection_lost' });
    await expect(attached.resize({ cols: 80, rows: 24 })).rejects.toMatchObject({ code: 'connection_lost' });
  });

  test('says why a client can not attach if the store can not record what a command did', async () => {
    await using sandbox = await skep.sandboxes.start({ spec: 'plain', waitUntil: 'running' });
    const execution = await sandbox.executions.start(['cat'], { stdin: true });
    const replace = vi.spyOn(world.store.executions, 'replace').mockRejectedValue(storeUnavailable({ code: 'disk_full' }));
    onTestFinished(() => replace.mockRestore());
    await execution.write('new output', { close: true });
    const attached = all(execution.attach({ reconnectForMs: 0 }));
    await expect(attached).rejects.toMatchObject({ code: 'store_unavailable', message: 'The store is not available. The disk is full.' });
    replace.mockRestore();
  });

  test('has attachments that leave nothing behind at a signal that lives longer', async () => {
    await using sandbox = await skep.sandboxes.start({ spec: 'plain', waitUntil: 'running' });
    const { signal } = new AbortController();
    const joined = vi.spyOn(AbortSignal, 'any');
    onTestFinished(() => joined.mockRestore());
    await all((await sandbox.executions.start(['errs'])).attach({ signal }));
    const last = joined.mock.results[joined.mock.calls.findLastIndex(([signals]) => signals.includes(signal))]?.value as AbortSignal;
    expect(getEventListeners(last, 'abort')).toEqual([]);
  });
});

test('ask returns the answer of the agent', async () => {
  await using conversation = await skep.conversations.start({ sandbox_spec_id: 'coder' });
  expect(await conversation.ask('one')).toBe('heard: one');
  expect(await conversation.ask('two')).toBe('heard: two');
});

test('archive repeats the request while the changes are being kept', async () => {
  const reasons = [{ code: 'keeping_changes' }, { code: 'keeping_changes' }, { code: 'changes_not_kept' }];
  let sent = 0;
  const answer = async () => Response.json({ id: 'conv-1', status_reason: reasons[sent++] ?? null });
  const conversation = await createClient({ url: world.url, fetch: answer }).conversations.get('conv-1');
  expect(await conversation.archive()).toMatchObject({ status_reason: { code: 'changes_not_kept' } });
  expect(sent).toBe(3);
});

test('the code of a failure narrows the type of its context', async () => {
  const error: unknown = await skep.request('GET /api/v1/sandboxes/search', { query: { limit: 1000 } }).catch((caught: unknown) => caught);
  if (!isFailure(error, 'invalid_request')) throw error;
  expect(error.context.problems.map(({ loc }) => loc)).toEqual([['query', 'limit']]);
  expect(error.message).toBe('query.limit: must be a whole number from 1 to 100');
});

test.each([
  ['localhost:3000', 'http://localhost:3000'],
  ['127.0.0.1', 'http://127.0.0.1'],
  ['[::1]:3000', 'http://[::1]:3000'],
  ['skep.example.com', 'https://skep.example.com'],
  ['localhost.example.com', 'https://localhost.example.com'],
  ['http://skep.example.com', 'http://skep.example.com'],
])('the address %s means the URL %s', (address, url) => {
  expect(createClient({ url: address }).url).toBe(url);
});

test('a key that no header can have is refused without showing it', () => {
  expect(() => createClient({ url: world.url, key: 'skep_a\nb' })).toThrow("The API key has a line feed or another character that can't be sent.");
});

test('a client without an address throws a TypeError with an example', () => {
  // A caller in JavaScript has no type check.
  const create: (options: object) => unknown = createClient as never;
  expect(() => create({})).toThrow(new TypeError('The client needs the address of a server: { url: "http://127.0.0.1:3000" }.'));
});

test.each(['', 'ftp://x', 'http://', 'a b'])('the address "%s" is refused as no http or https address', (url) => {
  expect(() => createClient({ url })).toThrow(`url: must be an http or https address, but is "${url}"`);
});

test('an empty id is refused by its name before anything is sent', async () => {
  const problems = [{ loc: ['path', 'id'], msg: 'must not be empty' }];
  await expect(skep.sandboxes.get('')).rejects.toMatchObject({ code: 'invalid_request', message: 'path.id: must not be empty', context: { problems } });
});

test.each([
  [502, true, "is not from Skep, but from a proxy that can't reach the server now. Try again."],
  [503, true, "is not from Skep, but from a proxy that can't reach the server now. Try again."],
  [504, true, "is not from Skep, but from a proxy that can't reach the server now. Try again."],
  [404, false, 'is not from Skep. Check the address of the server.'],
])('a response with status %i that is not from Skep is temporary: %s', (status, temporary, message) => {
  const failure = failureIn(status, '<h1>No server is available.</h1>');
  expect(failure).toMatchObject({ code: 'unexpected_answer', message: `The response with status ${status} ${message}` });
  expect(isTemporary(failure)).toBe(temporary);
});
