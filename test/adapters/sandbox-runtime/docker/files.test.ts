import assert from 'node:assert/strict';
import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { dirname } from 'node:path';
import { Readable } from 'node:stream';
import type Docker from 'dockerode';
import { afterAll, afterEach, test, vi } from 'vitest';
import { isFailureOf } from '../../../../src/domain/failure.ts';
import type { SandboxIsolation } from '../../../../src/domain/sandbox-spec.ts';
import { neverAborts } from '../../../../src/ports/abort-signals.ts';
import type { SandboxLaunch, SandboxRuntime } from '../../../../src/ports/sandbox-runtime.ts';
import { readTar, tarOf, type TarItem } from '../../../contracts/sandbox-runtime-streams.ts';
import { describeWithDocker, images } from '../../../support/docker.ts';
import { createEngine } from './engine.ts';
import { launchOf } from './programs.ts';
import { shell } from '../../../support/sandbox-programs.ts';

const whole = () => ({ offset: 0, length: 1 });
const isRefused = (error: unknown): boolean => isFailureOf(error, 'invalid_request');

describeWithDocker('Files in Docker containers', () => {
  const engine = createEngine();
  afterEach(() => engine.clear());
  afterAll(() => engine.close());

  async function started(
    isolation: Partial<SandboxIsolation>,
    image: string = images.tiny,
  ): Promise<{ readonly runtime: SandboxRuntime; readonly launch: SandboxLaunch }> {
    const runtime = engine.open();
    const command = shell('exec sleep 100000');
    const launch = launchOf(command, { image, ports: [], isolation: { ...launchOf(command).spec.isolation, ...isolation } });
    const { state, reason } = await runtime.start(launch, () => {}, neverAborts);
    assert.equal(state, 'running', JSON.stringify(reason));
    return { runtime, launch };
  }

  test.each([
    ["the image's own user", { user: null }, '0:0'],
    ['a named user', { user: 'agent' }, '1000:1000'],
    ['a numeric user', { user: '4321:1234' }, '4321:1234'],
    ['a user with a large number', { user: '1200300:1200400' }, '1200300:1200400'],
    ['a user in a read-only container', { user: 'agent', readOnlyRoot: true }, '1000:1000'],
  ] as const)('belong to %s', async (_, isolation, owner) => {
    const { runtime, launch } = await started(isolation);
    const items: TarItem[] = [
      [{ name: 'implied/file', uid: 77, gid: 88, uname: 'root' }, 'x'],
      [{ name: 'directory', type: 'directory', uid: 77 }],
      [{ name: 'link', type: 'symlink', linkname: '../../../../etc/passwd' }],
      [{ name: 'hard', type: 'link', linkname: 'implied/file' }],
    ];
    await runtime.putFiles(launch.id, '/workspace/some/where', tarOf(items), neverAborts);
    const said = await engine.ask(launch.id, 'cd /workspace; find some -exec stat -c "%u:%g %n" {} +; readlink some/where/link');
    const names = [
      'some',
      'some/where',
      'some/where/implied',
      'some/where/implied/file',
      'some/where/directory',
      'some/where/link',
      'some/where/hard',
    ];
    assert.deepEqual(said.split('\n').toSorted(), [...names.map((name) => `${owner} ${name}`), '../../../../etc/passwd'].toSorted());
    const { exited } = await runtime.execute(
      launch.id,
      { command: shell('echo more >> some/where/hard && mkdir some/where/directory/made') },
      neverAborts,
    );
    assert.equal(await exited, 0);
    const found = await readTar(await runtime.getFiles(launch.id, '/workspace/some', neverAborts));
    // Of two names of a file, the first in the archive has its content.
    assert.equal(found.get('some/where/hard')?.content.toString() || found.get('some/where/implied/file')?.content.toString(), 'xmore\n');
  });

  test("are refused in directories that Docker can't write to", async () => {
    const { runtime, launch } = await started({ readOnlyRoot: true });
    for (const directory of ['/etc', '/workspaces', '/proc/self', '/dev/shm', '/sys/fs', '/bin/busybox']) {
      await assert.rejects(runtime.putFiles(launch.id, directory, tarOf([[{ name: 'a' }, 'x']]), neverAborts), isRefused, directory);
    }
    await runtime.putFiles(launch.id, '/tmp/below', tarOf([[{ name: 'a' }, 'x']]), neverAborts);
    assert.equal(await engine.ask(launch.id, 'cat /tmp/below/a'), 'x');
    const writable = await started({});
    await assert.rejects(writable.runtime.putFiles(writable.launch.id, '/', tarOf([[{ name: 'dev/shm/a' }, 'x']]), neverAborts), isRefused);
    await writable.runtime.putFiles(writable.launch.id, '/opt/new', tarOf([[{ name: 'a' }, 'x']]), neverAborts);
    assert.equal(await engine.ask(writable.launch.id, 'cat /opt/new/a'), 'x');
  });

  test(
    'are put without changing the modes of directories or links to directories',
    async () => {
      const { runtime, launch } = await started({});
      await engine.ask(launch.id, 'mkdir -p /workspace/real/secret && chmod 700 /workspace/real/secret && ln -s real /workspace/way');
      await runtime.putFiles(
        launch.id,
        '/workspace/way',
        tarOf([
          [{ name: 'secret/a' }, 'x'],
          [{ name: 'secret/new/b' }, 'y'],
          [{ name: 'other/c' }, 'z'],
        ]),
        neverAborts,
      );
      assert.equal(await engine.ask(launch.id, 'cd /workspace/real; stat -c %a secret; cat secret/a secret/new/b other/c'), '700\nxyz');
    },
  );

  test("replace nothing that the sandbox's user may not replace", async () => {
    const { runtime, launch: { id } } = await started({ user: 'agent' });
    const write = (path: string, content: AsyncIterable<Uint8Array>) =>
      runtime.files.write(id, path, ReadableStream.from(content), {}, neverAborts);
    const makesDirectory = async function* makesDirectory(): AsyncGenerator<Uint8Array> {
      await engine.ask(id, 'mkdir /workspace/place && echo kept > /workspace/place/file');
      yield Buffer.from('x');
    };
    await assert.rejects(write('/workspace/place', makesDirectory()), (error) => isFailureOf(error, 'wrong_file_type'));
    assert.equal(await engine.ask(id, 'cd /workspace; find . -type f -exec cat {} +'), 'kept');

    const seen = () => engine.ask(id, 'ls -a /etc; cat /etc/group');
    const before = await seen();
    await assert.rejects(write('/etc/group', Readable.from([Buffer.from('new')])), isRefused);
    assert.equal(await seen(), before);
  });

  test('are refused if a program in the sandbox prints endless output', async () => {
    const { runtime, launch: { id } } = await started({}, images.debian);
    const flood = `#!/bin/sh
case $1 in -fT) while :; do echo flood >&2; done ;; esac
while :; do echo flood; done
`;
    for (const name of ['mv', 'find']) {
      const folder = dirname(await engine.ask(id, `command -v ${name}`));
      await runtime.putFiles(id, folder, tarOf([[{ name, mode: 0o755 }, flood]]), neverAborts);
    }
    const content = ReadableStream.from([Buffer.from('x')]);
    await assert.rejects(runtime.files.write(id, '/workspace/file', content, {}, neverAborts), isRefused);
    await assert.rejects(async () => { for await (const _ of runtime.files.list(id, '/workspace', 1, neverAborts)); }, isRefused);
    assert.equal(await engine.ask(id, 'ls -A /workspace; cat /proc/[0-9]*/cmdline 2>/dev/null | grep -ac [/]mv'), '0');
  });

  test('do not block other calls while a client uploads slowly', async () => {
    const { runtime, launch: { id } } = await started({ user: 'agent' });
    const slow = (size: number, mode: number, signal: AbortSignal) => {
      const [stalled, goesOn] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
      const content = async function* content(): AsyncGenerator<Uint8Array> {
        for (let index = 0; index < 16; index += 1) yield new Uint8Array(256 * 1024).fill(index);
        stalled.resolve();
        await goesOn.promise;
        yield Buffer.from('the rest');
      };
      const writing = runtime.files.write(id, '/workspace/file', ReadableStream.from(content()), { size, mode }, signal);
      writing.catch(() => {});
      return { writing, stalled: stalled.promise, goOn: goesOn.resolve };
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
    assert.equal(await engine.ask(id, 'ls -A /workspace'), '');
    for (const mode of [0o644, 0o600]) {
      const whole = slow((4 << 20) + 8, mode, neverAborts);
      await whole.stalled;
      await requireFree();
      whole.goOn();
      const { size, owner } = await whole.writing;
      assert.deepEqual([size, owner], [(4 << 20) + 8, { uid: 1000, gid: 1000 }]);
      assert.equal(await engine.ask(id, 'cd /workspace; tail -c 8 file; ls -A; stat -c %a file'), `the restfile\n${mode.toString(8)}`);
    }
    await engine.ask(id, 'rm /workspace/file');
    const short = ReadableStream.from([new Uint8Array(2 << 20)]);
    await assert.rejects(runtime.files.write(id, '/workspace/file', short, { size: 3 << 20 }, neverAborts), isRefused);
    assert.equal(await engine.ask(id, 'ls -A /workspace'), '');
  });

  test('need two engine calls for 300 files in separate directories', async () => {
    const { runtime, launch } = await started({});
    const big = 'b'.repeat(1_500_000);
    const items = (count: number, content: string): TarItem[] =>
      Array.from({ length: count }, (_, n): TarItem => [{ name: `implied/${n}/deep/file` }, n === 100 ? big : `${content} ${n}\n`]);
    await runtime.putFiles(launch.id, '/workspace/given', tarOf(items(200, 'old')), neverAborts);
    await engine.ask(launch.id, 'chmod 700 /workspace/given/implied/7; ln -s /etc /workspace/given/implied/350');
    const container: unknown = Object.getPrototypeOf(engine.container(launch.id));
    const calls = vi.spyOn(container as Docker.Container, 'putArchive');
    try {
      await runtime.putFiles(launch.id, '/workspace/given', tarOf(items(300, 'new')), neverAborts);
      // One until the large file, which is not read ahead, and one after it.
      assert.equal(calls.mock.calls.length, 2);
    } finally {
      calls.mockRestore();
    }
    const script =
      'cd /workspace/given/implied; stat -c %a 7; cat 7/deep/file 199/deep/file 299/deep/file; wc -c < 100/deep/file; ls | wc -l';
    assert.equal(await engine.ask(launch.id, script), `700\nnew 7\nnew 199\nnew 299\n${big.length}\n301`);
    await assert.rejects(runtime.putFiles(launch.id, '/workspace/given', tarOf(items(400, 'bad')), neverAborts), isRefused);
    assert.equal(await engine.ask(launch.id, 'test -e /etc/deep || echo untouched'), 'untouched');
  });

  test('are reported as not found if they or the sandbox disappear during a call', async () => {
    const { runtime, launch: { id } } = await started({});
    const container = Object.getPrototypeOf(engine.container(id)) as Docker.Container;
    // A sandbox that does not run is listed from an archive.
    await runtime.stop(id);
    const failsAfter = async (change: () => Promise<unknown>, code: 'file_not_found' | 'sandbox_not_found', work: () => Promise<unknown>) => {
      const archive = container.getArchive.bind(engine.container(id));
      const spy = vi.spyOn(container, 'getArchive').mockImplementationOnce(async (...args: Parameters<typeof archive>) => {
        await change();
        return await archive(...args);
      });
      await assert.rejects(work(), (error) => isFailureOf(error, code)).finally(() => spy.mockRestore());
    };
    const { files } = runtime;
    const path = '/workspace/d/file';
    for (const work of [
      () => files.read(id, path, whole, neverAborts), () => files.stat(id, path, true, neverAborts), () => runtime.getFiles(id, path, neverAborts),
      () => files.list(id, '/workspace/d', 1, neverAborts)[Symbol.asyncIterator]().next(),
    ]) {
      await runtime.putFiles(id, '/workspace', tarOf([[{ name: 'd/file' }, 'x']]), neverAborts);
      await failsAfter(() => files.remove(id, '/workspace/d', true, neverAborts), 'file_not_found', work);
    }
    await runtime.putFiles(id, '/workspace', tarOf([[{ name: 'd/file' }, 'x']]), neverAborts);
    // The engine's archive is empty if the file is removed after its own stat.
    const archived = await engine.container(id).getArchive({ path }) as IncomingMessage;
    const empty = Object.assign(new IncomingMessage(new Socket()), { headers: archived.resume().headers });
    empty.push(new Uint8Array(1024));
    const spy = vi.spyOn(container, 'getArchive').mockResolvedValueOnce(empty);
    await assert.rejects(files.read(id, path, whole, neverAborts), (error) => isFailureOf(error, 'file_not_found')).finally(() => spy.mockRestore());
    await failsAfter(() => engine.container(id).remove({ force: true }), 'sandbox_not_found', () => files.stat(id, path, true, neverAborts));
  });

  test('are put by the thousand, and in 64 MiB', async () => {
    const { runtime, launch } = await started({ user: 'agent' });
    const items = Array.from({ length: 2_000 }, (_, n): TarItem => [{ name: `made/${n % 50}/${n}` }, `content ${n}`]);
    await runtime.putFiles(launch.id, '/workspace/many', tarOf(items), neverAborts);
    assert.equal(await engine.ask(launch.id, 'find /workspace/many -type f | wc -l'), '2000');
    let bytes = 0;
    const block = new Uint8Array(2 ** 26);
    await runtime.putFiles(launch.id, '/workspace', tarOf([[{ name: 'big' }, block]]), neverAborts);
    for await (const chunk of await runtime.getFiles(launch.id, '/workspace/big', neverAborts)) bytes += chunk.byteLength;
    assert.equal(bytes, block.length + 512 + 1024);
  });
});
