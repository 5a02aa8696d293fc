import assert from 'node:assert/strict';
import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { dirname } from 'node:path';
import { Readable } from 'node:stream';
import type Docker from 'dockerode';
import { afterAll, afterEach, onTestFinished, test, vi } from 'vitest';
import { isFailureOf } from '../../../../src/domain/failure.ts';
import type { SandboxIsolation } from '../../../../src/domain/sandbox-spec.ts';
import { neverAborts } from '../../../../src/ports/abort-signals.ts';
import { readTar, tarOf, type TarItem } from '../../../contracts/sandbox-runtime-streams.ts';
import { describeWithDocker, images } from '../../../support/docker.ts';
import { createEngine } from './engine.ts';
import { launchOf } from './programs.ts';
import { shell } from '../../../support/sandbox-programs.ts';

const whole = () => ({ offset: 0, length: 1 });
const isRefused = (error: unknown): boolean => isFailureOf(error, 'invalid_request');

/** A content of 4 MiB and 8 bytes, which stalls before its last 8 bytes until `goOn` is called. */
function stallingContent(): { readonly content: ReadableStream<Uint8Array>; readonly stalled: Promise<void>; readonly goOn: () => void } {
  const [stalled, goesOn] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const content = async function* content(): AsyncGenerator<Uint8Array> {
    for (let index = 0; index < 16; index += 1) yield new Uint8Array(256 * 1024).fill(index);
    stalled.resolve();
    await goesOn.promise;
    yield Buffer.from('the rest');
  };
  return { content: ReadableStream.from(content()), stalled: stalled.promise, goOn: goesOn.resolve };
}

describeWithDocker('Files in Docker containers', () => {
  const engine = createEngine();
  afterEach(() => engine.clear());
  afterAll(() => engine.close());

  /** Starts a sandbox that does nothing. */
  async function started(isolation: Partial<SandboxIsolation>, image: string = images.tiny) {
    const runtime = engine.open();
    const command = shell('exec sleep 100000');
    const launch = launchOf(command, { image, ports: [], isolation: { ...launchOf(command).spec.isolation, ...isolation } });
    const { id } = launch;
    const { state, reason } = await runtime.start(launch, () => {}, neverAborts);
    assert.equal(state, 'running', JSON.stringify(reason));
    return {
      runtime, id,
      put: (directory: string, items: readonly TarItem[]) => runtime.putFiles(id, directory, tarOf(items), neverAborts),
      ask: (script: string) => engine.ask(id, script),
    };
  }

  test.each([
    ["the image's own user", { user: null }, '0:0'],
    ['a named user', { user: 'agent' }, '1000:1000'],
    ['a numeric user', { user: '4321:1234' }, '4321:1234'],
    ['a user with a large number', { user: '1200300:1200400' }, '1200300:1200400'],
    ['a user in a read-only container', { user: 'agent', readOnlyRoot: true }, '1000:1000'],
  ] as const)('belong to %s', async (_, isolation, owner) => {
    const { runtime, id, put, ask } = await started(isolation);
    const items: TarItem[] = [
      [{ name: 'implied/file', uid: 77, gid: 88, uname: 'root' }, 'x'],
      [{ name: 'directory', type: 'directory', uid: 77 }],
      [{ name: 'link', type: 'symlink', linkname: '../../../../etc/passwd' }],
      [{ name: 'hard', type: 'link', linkname: 'implied/file' }],
    ];
    await put('/workspace/some/where', items);
    const said = await ask('cd /workspace; find some -exec stat -c "%u:%g %n" {} +; readlink some/where/link');
    const below = ['implied', 'implied/file', 'directory', 'link', 'hard'].map((name) => `some/where/${name}`);
    assert.deepEqual(said.split('\n').toSorted(), [...['some', 'some/where', ...below].map((name) => `${owner} ${name}`), '../../../../etc/passwd'].toSorted());
    const writes = shell('echo more >> some/where/hard && mkdir some/where/directory/made');
    const { exited } = await runtime.execute(id, { command: writes }, neverAborts);
    assert.equal(await exited, 0);
    const found = await readTar(await runtime.getFiles(id, '/workspace/some', neverAborts));
    // Of two names of a file, the first in the archive has its content.
    assert.equal(found.get('some/where/hard')?.content.toString() || found.get('some/where/implied/file')?.content.toString(), 'xmore\n');
  });

  test("are refused in directories that Docker can't write to", async () => {
    const { runtime, id, put, ask } = await started({ readOnlyRoot: true });
    for (const path of ['/bin/busybox', '/tmp']) await assert.rejects(runtime.files.remove(id, path, true, neverAborts), isRefused, path);
    for (const directory of ['/etc', '/workspaces', '/proc/self', '/dev/shm', '/sys/fs', '/bin/busybox']) {
      await assert.rejects(put(directory, [[{ name: 'a' }, 'x']]), isRefused, directory);
    }
    await put('/tmp/below', [[{ name: 'a' }, 'x']]);
    assert.equal(await ask('cat /tmp/below/a'), 'x');
    const writable = await started({});
    await assert.rejects(writable.put('/', [[{ name: 'dev/shm/a' }, 'x']]), isRefused);
    await writable.put('/opt/new', [[{ name: 'a' }, 'x']]);
    assert.equal(await writable.ask('cat /opt/new/a'), 'x');
  });

  test('are put without changing the modes of directories or links to directories', async () => {
    const { put, ask } = await started({});
    await ask('mkdir -p /workspace/real/secret && chmod 700 /workspace/real/secret && ln -s real /workspace/way');
    await put('/workspace/way', [
      [{ name: 'secret/a' }, 'x'],
      [{ name: 'secret/new/b' }, 'y'],
      [{ name: 'other/c' }, 'z'],
    ]);
    assert.equal(await ask('cd /workspace/real; stat -c %a secret; cat secret/a secret/new/b other/c'), '700\nxyz');
  });

  test('reach the volumes of an image whose root is read-only, and belong to a user of a linked list of users', async () => {
    const image = 'skep-test/with-volume';
    const base = await started({});
    await base.ask('mkdir -p /opt /data && mv /etc/passwd /opt/passwd && ln -s /opt/passwd /etc/passwd');
    await engine.container(base.id).commit({ repo: image, changes: 'VOLUME /data /workspace/cache' });
    onTestFinished(async () => void (await engine.docker.getImage(image).remove({ force: true })));
    const { runtime, id, put, ask } = await started({ readOnlyRoot: true, user: 'agent' }, image);
    for (const directory of ['/data', '/data/new', '/workspace/cache', '/workspace']) await put(directory, [[{ name: 'a' }, directory]]);
    const seen = await ask('cat /data/a /data/new/a /workspace/cache/a /workspace/a; stat -c %u:%g /workspace/a');
    assert.equal(seen, '/data/data/new/workspace/cache/workspace1000:1000');
    await runtime.files.makeDirectory(id, '/data/made/deep', neverAborts);
    assert.equal(await ask('ls /data/made'), 'deep');
  });

  test('that are names of one file have its size, also in a stopped sandbox', async () => {
    const { runtime, id, ask } = await started({});
    await ask('cd /workspace && printf abc > one && ln one other');
    await runtime.stop(id);
    const sizes = new Map<string, number>();
    for await (const { path, size } of runtime.files.list(id, '/workspace', 1, neverAborts)) sizes.set(path, size);
    assert.deepEqual(sizes, new Map([['/workspace/one', 3], ['/workspace/other', 3]]));
  });

  test("replace nothing that the sandbox's user may not replace", async () => {
    const { runtime, id, ask } = await started({ user: 'agent' });
    const write = (path: string, content: AsyncIterable<Uint8Array>) =>
      runtime.files.write(id, path, ReadableStream.from(content), {}, neverAborts);
    const makesDirectory = async function* makesDirectory(): AsyncGenerator<Uint8Array> {
      await ask('mkdir /workspace/place && echo kept > /workspace/place/file');
      yield Buffer.from('x');
    };
    await assert.rejects(write('/workspace/place', makesDirectory()), (error) => isFailureOf(error, 'wrong_file_type'));
    assert.equal(await ask('cd /workspace; find . -type f -exec cat {} +'), 'kept');

    const seen = () => ask('ls -a /etc; cat /etc/group');
    const before = await seen();
    await assert.rejects(write('/etc/group', Readable.from([Buffer.from('new')])), isRefused);
    assert.equal(await seen(), before);
  });

  test('are refused if a program in the sandbox prints endless output', async () => {
    const { runtime, id, put, ask } = await started({}, images.debian);
    const flood = `#!/bin/sh
case $1 in -fT) while :; do echo flood >&2; done ;; esac
while :; do echo flood; done
`;
    for (const name of ['mv', 'find']) {
      const folder = dirname(await ask(`command -v ${name}`));
      await put(folder, [[{ name, mode: 0o755 }, flood]]);
    }
    const content = ReadableStream.from([Buffer.from('x')]);
    await assert.rejects(runtime.files.write(id, '/workspace/file', content, {}, neverAborts), isRefused);
    await assert.rejects(async () => { for await (const _ of runtime.files.list(id, '/workspace', 1, neverAborts)); }, isRefused);
    assert.equal(await ask('ls -A /workspace; cat /proc/[0-9]*/cmdline 2>/dev/null | grep -ac [/]mv'), '0');
  });

  test('do not block other calls while a client uploads slowly', async () => {
    const { runtime, id, ask } = await started({ user: 'agent' });
    const slow = (size: number, mode: number, signal: AbortSignal) => {
      const { content, stalled, goOn } = stallingContent();
      const writing = runtime.files.write(id, '/workspace/file', content, { size, mode }, signal);
      writing.catch(() => {});
      return { writing, stalled, goOn };
    };
    const requireFree = async (): Promise<void> => {
      assert.equal((await runtime.inspect(id)).state, 'running');
      assert.equal(await (await runtime.execute(id, { command: ['true'] }, neverAborts)).exited, 0);
    };
    const controller = new AbortController();
    const broken = slow(1 << 30, 0o644, controller.signal);
    await broken.stalled;
    await requireFree();
    controller.abort(new Error('nobody waits any more'));
    await assert.rejects(broken.writing, (error) => error === controller.signal.reason);
    assert.equal(await ask('ls -A /workspace'), '');
    for (const mode of [0o644, 0o600]) {
      const whole = slow((4 << 20) + 8, mode, neverAborts);
      await whole.stalled;
      await requireFree();
      whole.goOn();
      const { size, owner } = await whole.writing;
      assert.deepEqual([size, owner], [(4 << 20) + 8, { uid: 1000, gid: 1000 }]);
      assert.equal(await ask('cd /workspace; tail -c 8 file; ls -A; stat -c %a file'), `the restfile\n${mode.toString(8)}`);
    }
    await ask('rm /workspace/file');
    const short = ReadableStream.from([new Uint8Array(2 << 20)]);
    await assert.rejects(runtime.files.write(id, '/workspace/file', short, { size: 3 << 20 }, neverAborts), isRefused);
    assert.equal(await ask('ls -A /workspace'), '');
  });

  test('need two engine calls for 300 files in separate directories', async () => {
    const { id, put, ask } = await started({});
    const big = 'b'.repeat(1_500_000);
    const items = (count: number, content: string): TarItem[] =>
      Array.from({ length: count }, (_, n): TarItem => [{ name: `implied/${n}/deep/file` }, n === 100 ? big : `${content} ${n}\n`]);
    await put('/workspace/given', items(200, 'old'));
    await ask('chmod 700 /workspace/given/implied/7; ln -s /etc /workspace/given/implied/350');
    const container: unknown = Object.getPrototypeOf(engine.container(id));
    const calls = vi.spyOn(container as Docker.Container, 'putArchive');
    try {
      await put('/workspace/given', items(300, 'new'));
      // One until the large file, which is not read ahead, and one after it.
      assert.equal(calls.mock.calls.length, 2);
    } finally {
      calls.mockRestore();
    }
    const script =
      'cd /workspace/given/implied; stat -c %a 7; cat 7/deep/file 199/deep/file 299/deep/file; wc -c < 100/deep/file; ls | wc -l';
    assert.equal(await ask(script), `700\nnew 7\nnew 199\nnew 299\n${big.length}\n301`);
    await assert.rejects(put('/workspace/given', items(400, 'bad')), isRefused);
    assert.equal(await ask('test -e /etc/deep || echo untouched'), 'untouched');
  });

  test('are reported as not found if they or the sandbox disappear during a call', async () => {
    const { runtime, id, put } = await started({});
    // A sandbox that does not run is listed from an archive.
    await runtime.stop(id);
    const archives = vi.spyOn(Object.getPrototypeOf(engine.container(id)) as Docker.Container, 'getArchive');
    onTestFinished(() => archives.mockRestore());
    /** Makes the change when the work asks for an archive. */
    const failsAfter = async (change: () => Promise<unknown>, code: 'file_not_found' | 'sandbox_not_found', work: () => Promise<unknown>) => {
      archives.mockImplementationOnce(async (options) => {
        await change();
        return await engine.container(id).getArchive(options);
      });
      await assert.rejects(work(), (error) => isFailureOf(error, code));
    };
    const { files } = runtime;
    const path = '/workspace/d/file';
    for (const work of [
      () => files.read(id, path, whole, neverAborts), () => files.stat(id, path, true, neverAborts), () => runtime.getFiles(id, path, neverAborts),
      () => files.list(id, '/workspace/d', 1, neverAborts)[Symbol.asyncIterator]().next(),
    ]) {
      await put('/workspace', [[{ name: 'd/file' }, 'x']]);
      await failsAfter(() => files.remove(id, '/workspace/d', true, neverAborts), 'file_not_found', work);
    }
    await put('/workspace', [[{ name: 'd/file' }, 'x']]);
    // The engine's archive is empty if the file is removed after its own stat.
    const archived = await engine.container(id).getArchive({ path }) as IncomingMessage;
    const empty = Object.assign(new IncomingMessage(new Socket()), { headers: archived.resume().headers });
    empty.push(new Uint8Array(1024));
    archives.mockResolvedValueOnce(empty);
    await assert.rejects(files.read(id, path, whole, neverAborts), (error) => isFailureOf(error, 'file_not_found'));
    await failsAfter(() => engine.container(id).remove({ force: true }), 'sandbox_not_found', () => files.stat(id, path, true, neverAborts));
  });

  test('that change after the engine has looked at them are read once, with the size and the time of the content', async () => {
    const { runtime, id, put } = await started({});
    const path = '/workspace/growing';
    const archive = async () => await engine.container(id).getArchive({ path }) as IncomingMessage;
    await put('/workspace', [[{ name: 'growing', mtime: new Date(1000) }, 'old']]);
    const { headers } = (await archive()).resume();
    await put('/workspace', [[{ name: 'growing', mtime: new Date(2000) }, 'old and new']]);
    const changed = Object.assign(await archive(), { headers });
    const archives = vi.spyOn(Object.getPrototypeOf(engine.container(id)) as Docker.Container, 'getArchive');
    onTestFinished(() => archives.mockRestore());
    archives.mockResolvedValueOnce(changed);
    const { file, content } = await runtime.files.read(id, path, ({ size }) => ({ offset: 4, length: size }), neverAborts);
    assert.deepEqual([file.type, file.size, file.modifiedAt, await new Response(content).text()], ['file', 11, 2000, 'and new']);
    assert.equal(archives.mock.calls.length, 1);
  });

  test('are put by the thousand, and in 64 MiB', async () => {
    const { runtime, id, put, ask } = await started({ user: 'agent' });
    const items = Array.from({ length: 2_000 }, (_, n): TarItem => [{ name: `made/${n % 50}/${n}` }, `content ${n}`]);
    await put('/workspace/many', items);
    assert.equal(await ask('find /workspace/many -type f | wc -l'), '2000');
    let bytes = 0;
    const block = new Uint8Array(2 ** 26);
    await put('/workspace', [[{ name: 'big' }, block]]);
    for await (const chunk of await runtime.getFiles(id, '/workspace/big', neverAborts)) bytes += chunk.byteLength;
    assert.equal(bytes, block.length + 512 + 1024);
  });
});
