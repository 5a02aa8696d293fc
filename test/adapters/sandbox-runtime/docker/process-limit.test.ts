import assert from 'node:assert/strict';
import { afterAll, test } from 'vitest';
import { isFailureOf } from '../../../../src/domain/failure.ts';
import { never } from '../../../contracts/sandbox-runtime-harness.ts';
import { describeWithDocker, images } from '../../../support/docker.ts';
import { shell } from '../../../support/sandbox-programs.ts';
import { createEngine } from './engine.ts';
import { descendantsOf, kill } from './processes.ts';
import { launchOf } from './programs.ts';

const isFull = (error: unknown): boolean =>
  isFailureOf(error, 'runtime_unavailable') && error.context.reason.code === 'process_limit_reached';

describeWithDocker('A sandbox that has no room for another process', () => {
  const engine = createEngine();
  afterAll(() => engine.close());

  test.each([['dash', images.debian], ['busybox', images.tiny]] as const)(
    'starts a command, or fails and says why: %s', { timeout: 120_000 }, async (_, image) => {
      const runtime = engine.open();
      const { id } = await runtime.start(launchOf(shell('exec sleep 100000'), { image }), () => {}, never);
      const filling = await runtime.execute(id, { command: shell('while sleep 2007 & do :; done') }, never);
      await filling.exited;
      const { State } = await engine.container(id).inspect();
      const sleeping = (await descendantsOf(State.Pid)).filter(({ commandLine }) => commandLine.startsWith('sleep 2007'));
      let begun = 0;
      for (let from = 0; from < 12; from += 3) {
        for (const stdin of [false, true]) {
          const start = { executionId: `exec-${stdin ? 'input' : 'plain'}`, command: ['echo', 'ran'], stdin, tty: null };
          try {
            const { durable } = await runtime.executions.start(id, start, never);
            const { exitCode } = await runtime.executions.ended(id, start.executionId, never);
            // The engine's own process may crash, and only the engine knows why.
            assert.equal(exitCode, durable ? 0 : 126);
            begun += durable ? 1 : 0;
          } catch (error) {
            assert.ok(isFull(error), String(error));
          }
        }
        await kill(sleeping.slice(from, from + 3).map(({ pid }) => pid));
      }
      assert.ok(begun > 0, 'a start can be repeated');
    },
  );
});
