import assert from 'node:assert/strict';
import { afterAll, test } from 'vitest';
import { runProgram } from '../../../../src/adapters/sandbox-runtime/docker/file-writer.ts';
import { isFailureOf } from '../../../../src/domain/failure.ts';
import { never } from '../../../contracts/sandbox-runtime-harness.ts';
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
  await assert.rejects(runProgram(execute, 'sb', ['mv'], never), (error) => isFailureOf(error, 'runtime_unavailable'));
});

describeWithDocker('Directories in Docker containers', () => {
  const engine = createEngine();
  afterAll(() => engine.close());

  test('are listed completely or not at all if the sandbox has no room for more processes', { timeout: 120_000 }, async () => {
    const runtime = engine.open();
    const { id } = await runtime.start(launchOf(shell('exec sleep 100000'), { image: images.debian }), () => {}, never);
    await engine.ask(id, 'cd /workspace; touch a b; ln -s a c');
    const filling = await runtime.execute(id, { command: shell('while sleep 2007 & do :; done') }, never);
    await filling.exited;
    const { State } = await engine.container(id).inspect();
    const sleeping = (await descendantsOf(State.Pid)).filter(({ commandLine }) => commandLine.startsWith('sleep 2007'));
    for (const { pid } of sleeping) {
      try {
        const listed: string[] = [];
        for await (const { path } of runtime.files.list(id, '/workspace', 1, never)) listed.push(path);
        assert.deepEqual(listed.toSorted(), ['/workspace/a', '/workspace/b', '/workspace/c']);
        return;
      } catch (error) {
        if (!isFailureOf(error, 'runtime_unavailable')) throw error;
        await kill([pid]);
      }
    }
    assert.fail('the directory was never listed');
  });
});
