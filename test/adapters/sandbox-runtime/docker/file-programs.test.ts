import assert from 'node:assert/strict';
import type Docker from 'dockerode';
import { afterAll, test, vi } from 'vitest';
import { runProgram } from '../../../../src/adapters/sandbox-runtime/docker/file-writer.ts';
import { isFailureOf } from '../../../../src/domain/failure.ts';
import { neverAborts } from '../../../../src/ports/abort-signals.ts';
import { tarOf } from '../../../contracts/sandbox-runtime-streams.ts';
import { describeWithDocker, images } from '../../../support/docker.ts';
import { shell } from '../../../support/sandbox-programs.ts';
import { createEngine } from './engine.ts';
import { descendantsOf, kill } from './processes.ts';
import { launchOf } from './programs.ts';

const empty = () => ReadableStream.from<Uint8Array>([]);

/** Ends as the engine reports it if the connection breaks. */
const execute = async () =>
  ({ stdin: new WritableStream(), stdout: empty(), stderr: empty(), exited: Promise.resolve(126), kill: async () => {} });

test('a program whose connection breaks is a failure of the runtime, and no refusal of the path', async () => {
  await assert.rejects(runProgram(execute, 'sb', ['mv'], neverAborts), (error) => isFailureOf(error, 'runtime_unavailable'));
});

const isOfPipe = (error: unknown): boolean => isFailureOf(error, 'wrong_file_type') && error.context.fileType === 'other';

describeWithDocker('Directories in Docker containers', () => {
  const engine = createEngine();
  afterAll(() => engine.close());

  test('are listed completely or not at all if the sandbox has no room for more processes', { timeout: 120_000 }, async () => {
    const runtime = engine.open();
    const { id } = await runtime.start(launchOf(shell('exec sleep 100000'), { image: images.debian }), () => {}, neverAborts);
    await engine.ask(id, 'cd /workspace; touch a b; ln -s a c');
    const filling = await runtime.execute(id, { command: shell('while sleep 2007 & do :; done') }, neverAborts);
    await filling.exited;
    const { State } = await engine.container(id).inspect();
    const sleeping = (await descendantsOf(State.Pid)).filter(({ commandLine }) => commandLine.startsWith('sleep 2007'));
    for (const { pid } of sleeping) {
      try {
        const listed: string[] = [];
        for await (const { path } of runtime.files.list(id, '/workspace', 1, neverAborts)) listed.push(path);
        assert.deepEqual(listed.toSorted(), ['/workspace/a', '/workspace/b', '/workspace/c']);
        return;
      } catch (error) {
        if (!isFailureOf(error, 'runtime_unavailable')) throw error;
        await kill([pid]);
      }
    }
    assert.fail('the directory was never listed');
  });

  test('give their group to a file that a program creates, also in the result of the write', async () => {
    const runtime = engine.open();
    const { id } = await runtime.start(launchOf(shell('exec sleep 100000'), { image: images.debian }), () => {}, neverAborts);
    const content = ReadableStream.from([Buffer.alloc(2 << 20)]);
    assert.deepEqual((await runtime.files.write(id, '/var/mail/file', content, {}, neverAborts)).owner, { uid: 0, gid: 8 });
  });

  test('are not packed to look where a link leads', async () => {
    const runtime = engine.open();
    const { id } = await runtime.start(launchOf(shell('exec sleep 100000')), () => {}, neverAborts);
    await engine.ask(id, 'ln -s / /workspace/link');
    const pack = vi.spyOn(Object.getPrototypeOf(engine.container(id)) as Docker.Container, 'getArchive');
    const { path, type, target } = await runtime.files.stat(id, '/workspace/link', true, neverAborts);
    assert.deepEqual([path, type, target, pack.mock.calls.length], ['/workspace/link', 'directory', null, 0]);
    pack.mockRestore();
  });

  test('keep a pipe that a file is written or moved to', async () => {
    const runtime = engine.open();
    const { id } = await runtime.start(launchOf(shell('exec sleep 100000')), () => {}, neverAborts);
    await engine.ask(id, 'mkfifo /workspace/pipe && touch /workspace/file');
    await assert.rejects(runtime.files.write(id, '/workspace/pipe', empty(), {}, neverAborts), isOfPipe);
    await assert.rejects(runtime.files.move(id, '/workspace/file', '/workspace/pipe', neverAborts), isOfPipe);
    assert.equal((await runtime.files.stat(id, '/workspace/pipe', false, neverAborts)).type, 'other');
  });

  test('fail to be created, filled or removed if the signal fires before the engine has answered', async () => {
    const runtime = engine.open();
    const { id } = await runtime.start(launchOf(shell('exec sleep 100000')), () => {}, neverAborts);
    const container = Object.getPrototypeOf(engine.container(id)) as Docker.Container;
    const put = container.putArchive.bind(engine.container(id));
    const path = '/workspace/directory';
    for (const work of [
      (signal: AbortSignal) => runtime.files.makeDirectory(id, path, signal),
      (signal: AbortSignal) => runtime.putFiles(id, path, tarOf([[{ name: 'file' }, 'x']]), signal),
      (signal: AbortSignal) => runtime.files.remove(id, path, true, signal),
    ]) {
      const left = new AbortController();
      const spy = vi.spyOn(container, 'putArchive').mockImplementationOnce((...args: Parameters<typeof put>) =>
        put(...args).finally(() => left.abort(new Error('left'))));
      await assert.rejects(work(left.signal), /^Error: left$/).finally(() => spy.mockRestore());
    }
  });
});

describeWithDocker('An upload to a Docker container that is cancelled', () => {
  const engine = createEngine();
  afterAll(() => engine.close());

  test('fails after the engine has answered, so that nothing is written later', async () => {
    const runtime = engine.open();
    const { id } = await runtime.start(launchOf(shell('exec sleep 100000')), () => {}, neverAborts);
    const controller = new AbortController();
    const reason = new Error('nobody waits any more');
    const content = async function* content(): AsyncGenerator<Uint8Array> {
      for (let index = 0; index < 20; index += 1) yield new Uint8Array(256 * 1024);
      controller.abort(reason);
      await new Promise(() => {});
    };
    using uploads = vi.spyOn(Object.getPrototypeOf(engine.container(id)) as Docker.Container, 'putArchive');
    const writing = runtime.files.write(id, '/workspace/file', ReadableStream.from(content()), { size: 1 << 30 }, controller.signal);
    await assert.rejects(writing, (error) => error === reason);
    const [upload] = uploads.mock.settledResults;
    // The engine refuses an archive that ends early. A request that was cancelled has no status.
    assert.ok(upload?.type === 'fulfilled' || typeof upload?.value.statusCode === 'number', String(upload?.value));
    assert.equal(await engine.ask(id, 'ls -A /workspace'), '');
  });

  test('cancels its content if the engine fails while the content stalls', async () => {
    const runtime = engine.open();
    const { id } = await runtime.start(launchOf(shell('exec sleep 100000')), () => {}, neverAborts);
    using uploads = vi.spyOn(Object.getPrototypeOf(engine.container(id)) as Docker.Container, 'putArchive');
    uploads.mockRejectedValueOnce(new Error('the connection broke'));
    const cancelled = Promise.withResolvers<void>();
    const content = new ReadableStream<Uint8Array>({
      start: (sink) => sink.enqueue(new Uint8Array(2 << 20)),
      cancel: () => cancelled.resolve(),
    });
    await assert.rejects(runtime.files.write(id, '/workspace/file', content, { size: 1 << 30 }, neverAborts), (error) =>
      isFailureOf(error, 'runtime_unavailable'));
    await cancelled.promise;
  });
});
