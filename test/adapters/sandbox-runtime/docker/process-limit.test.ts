import assert from 'node:assert/strict';
import { afterAll, test } from 'vitest';
import { isFailureOf } from '../../../../src/domain/failure.ts';
import { neverAborts } from '../../../../src/ports/abort-signals.ts';
import { describeWithDocker, images } from '../../../support/docker.ts';
import { shell } from '../../../support/sandbox-programs.ts';
import { until } from '../../../support/until.ts';
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
      const { id } = await runtime.start(launchOf(shell('exec sleep 100000'), { image }), () => {}, neverAborts);
      const running = { executionId: 'exec-running', command: ['sleep', '2008'], stdin: false, tty: null };
      await runtime.executions.start(id, running, neverAborts);
      const filling = await runtime.execute(id, { command: shell('while sleep 2007 & do :; done') }, neverAborts);
      await filling.exited;
      const { State } = await engine.container(id).inspect();
      const sleeping = (await descendantsOf(State.Pid)).filter(({ commandLine }) => commandLine.startsWith('sleep 2007'));
      // A repeated start, as after a lost response, finds the command, or can't even look for it.
      await engine.open().executions.start(id, running, neverAborts).catch((error: unknown) => assert.ok(isFull(error), String(error)));
      /** Returns whether the command began. If it did not, checks the reason. */
      const begins = async (stdin: boolean): Promise<boolean> => {
        const start = { executionId: `exec-${stdin ? 'input' : 'plain'}`, command: ['echo', 'ran'], stdin, tty: null };
        try {
          const { durable } = await runtime.executions.start(id, start, neverAborts);
          const { exitCode } = await runtime.executions.ended(id, start.executionId, neverAborts);
          if (durable) assert.equal(exitCode, 0);
          else {
            // The engine's own process may crash, and only the engine knows why.
            const errors = await runtime.executions.output(id, start.executionId, { stream: 'stderr', after: 0, follow: false }, neverAborts);
            assert.deepEqual([exitCode, /OCI runtime|runc|reset by peer/i.test(await new Response(errors).text())], [126, true]);
            await runtime.executions.remove(id, start.executionId).catch(() => {});
          }
          return durable;
        } catch (error) {
          assert.ok(isFull(error), String(error));
          await runtime.executions.remove(id, start.executionId).catch(() => {});
          return false;
        }
      };
      for (let from = 0; from < 12; from += 3) {
        for (const stdin of [false, true]) await begins(stdin);
        await kill(sleeping.slice(from, from + 3).map(({ pid }) => pid));
      }
      // A start can be repeated. On a busy machine, processes of refused starts end late.
      await until(() => begins(false), Boolean);
      assert.equal((await engine.open().executions.state(id, running.executionId)).status, 'running');
    },
  );
});
