import { createHash, hash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createClient, isFailure, type Sandbox, type SkepClient } from '../../src/client/index.ts';
import { startRelay } from '../client/relay.ts';
import { type ServedSandbox, startServedSandbox } from '../support/server.ts';
import { until } from '../support/until.ts';

let served: ServedSandbox;
let skep: SkepClient;
let sandbox: Sandbox;
beforeAll(async () => {
  const command = ['sh', '-c', 'echo one; echo two; exec sleep infinity'];
  served = await startServedSandbox({ specs: [{ id: 'speaks', command, ports: [{ name: 'WEB', port: 8000 }] }] });
  skep = createClient({ url: served.env['SKEP_PUBLIC_URL'] ?? '', key: served.env['SKEP_API_KEY'] });
  sandbox = await skep.sandboxes.get(served.id);
});
afterAll(() => served[Symbol.asyncDispose]());

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}

describe('The files of the client library', () => {
  test('are written, read in part, listed and removed', async () => {
    expect(await sandbox.files.write('/workspace/dir/a.txt', 'some text', { mode: '0600' })).toMatchObject({ size: 9, mode: '0600' });
    await sandbox.files.write('/workspace/dir/b.txt', new Blob(['streamed']).stream());
    expect(await (await sandbox.files.read('/workspace/dir/a.txt')).text()).toBe('some text');
    expect(await (await sandbox.files.read('/workspace/dir/b.txt', { from: 2, to: 4 })).text()).toBe('rea');
    await sandbox.files.makeDirectory('/workspace/dir/sub');
    expect((await all(sandbox.files.list('/workspace/dir'))).map(({ name, type }) => [name, type])).toEqual([['a.txt', 'file'], ['b.txt', 'file'], ['sub', 'directory']]);
    await sandbox.files.remove('/workspace/dir', { recursive: true });
    const failure: unknown = await sandbox.files.read('/workspace/dir/a.txt').catch((error: unknown) => error);
    if (!isFailure(failure, 'file_not_found')) throw failure;
    expect(failure.context.path).toBe('/workspace/dir/a.txt');
  });

  test('are not replaced if another version is there than the given one', async () => {
    const path = '/workspace/shared.txt';
    const { etag } = await sandbox.files.write(path, 'first', { ifNoneMatch: '*' });
    expect((await sandbox.files.read(path)).headers.get('ETag')).toBe(etag);
    const written = await sandbox.files.write(path, 'second', { ifMatch: etag });
    for (const options of [{ ifMatch: etag }, { ifNoneMatch: '*' } as const]) {
      const failure: unknown = await sandbox.files.write(path, 'lost', options).catch((error: unknown) => error);
      if (!isFailure(failure, 'precondition_failed')) throw failure;
      expect(failure.context.etag).toBe(written.etag);
    }
    expect(await (await sandbox.files.read(path)).text()).toBe('second');
  });

  test('are read and written as a tar archive', async () => {
    await sandbox.files.write('/workspace/from/a.txt', 'packed');
    const { body } = await sandbox.files.readArchive('/workspace/from');
    if (body === null) throw new Error('an archive has a body');
    await sandbox.files.writeArchive('/workspace/to', body);
    expect(await (await sandbox.files.read('/workspace/to/from/a.txt')).text()).toBe('packed');
  });
});

test('a sandbox has a link to its port, a log and its usage', async () => {
  const [exposed] = sandbox.state.exposed_urls ?? [];
  const link = await sandbox.link(exposed?.port ?? 0, { expires_in_seconds: 60 });
  expect(link).toMatchObject({ url: expect.stringMatching(/^http/), expires_at: expect.any(String) });
  await until(async () => await (await sandbox.logs({ tail_bytes: 5 })).text(), (text) => text === '\ntwo\n');
  expect(await sandbox.usage()).toMatchObject({ at: expect.any(String) });
});

test('a terminal takes input and a new size, and shows its output', async () => {
  const execution = await sandbox.executions.start(['sh'], { tty: { cols: 80, rows: 24 } });
  const terminal = execution.attach();
  let screen = '';
  const shown = (async () => {
    for await (const { bytes } of terminal) screen += new TextDecoder().decode(bytes);
  })();
  await terminal.resize({ cols: 101, rows: 42 });
  await until(async () => {
    await terminal.write('stty size\n');
    return screen;
  }, (text) => text.includes('42 101'));
  await terminal.write('exit 3\n');
  await shown;
  expect(terminal.end).toMatchObject({ status: 'exited', exit_code: 3 });
});

test('attach waits for a slow reader, and loses no byte', async () => {
  const relay = await startRelay(skep.url);
  const slow = await createClient({ url: relay.url, key: served.env['SKEP_API_KEY'] }).sandboxes.get(sandbox.id);
  const execution = await slow.executions.start('head -c 24000000 /dev/urandom | tee random');
  const digest = createHash('sha256');
  let isFirst = true;
  for await (const { bytes } of execution.attach()) {
    digest.update(bytes);
    if (isFirst) await until(() => execution.refresh(), ({ status }) => status === 'exited');
    isFirst = false;
  }
  const written = await (await slow.files.read('/workspace/random')).arrayBuffer();
  expect(digest.digest('hex')).toBe(hash('sha256', new Uint8Array(written)));
  expect(relay.seen.filter((target) => target.includes('/attach'))).toHaveLength(1);
});
