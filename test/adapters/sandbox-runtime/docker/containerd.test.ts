import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { createDockerRuntime } from '../../../../src/adapters/sandbox-runtime/docker/index.ts';
import { isFailureOf } from '../../../../src/domain/failure.ts';
import { neverAborts } from '../../../../src/ports/abort-signals.ts';
import { describeWithDocker } from '../../../support/docker.ts';
import { shell } from '../../../support/sandbox-programs.ts';
import { until } from '../../../support/until.ts';
import { createOwnEngine, type OwnEngine, whyNoOwnEngine } from './own-engine.ts';
import { launchOf } from './programs.ts';

const absent = await whyNoOwnEngine();
if (absent !== null) console.warn(`SKIPPED an engine without its containerd: ${absent}.`);

describeWithDocker('A Docker engine whose containerd does not answer', () => {
  describe.skipIf(absent !== null)('with a private engine', () => {
    let engine: OwnEngine;
    beforeAll(async () => {
      engine = await createOwnEngine();
    });
    afterAll(() => engine.close());

    test('runs no command, says so, and runs it later', { timeout: 120_000 }, async () => {
      const runtime = createDockerRuntime({ deployment: 'main', host: engine.host, env: {}, stopGraceMs: 1_000 });
      onTestFinished(() => runtime.close());
      const { id } = await runtime.start(launchOf(shell('exec sleep 100000')), () => {}, neverAborts);
      const start = { executionId: 'exec-1', command: ['echo', 'ran'], stdin: false, tty: null };
      await engine.killContainerd();
      const refused = { code: 'runtime_unavailable', context: { reason: { code: 'command_not_begun' } } };
      // A start can still meet the end of the connection to containerd. Then it is not certain that nothing began.
      const refusal = (): Promise<unknown> => runtime.executions.start(id, start, neverAborts).catch((error: unknown) => error);
      await until(refusal, (error) => isFailureOf(error, 'runtime_unavailable') && error.context.reason.code === 'command_not_begun');
      await expect(runtime.executions.start(id, { ...start, stdin: true }, neverAborts)).rejects.toMatchObject(refused);
      await expect(runtime.executions.open(id, { executionId: 'agent', command: ['cat'] }, neverAborts)).rejects.toMatchObject(refused);
      await until(() => runtime.executions.start(id, start, neverAborts).then(() => true, () => false), (isStarted) => isStarted, 60_000);
      expect(await runtime.executions.ended(id, start.executionId, neverAborts)).toMatchObject({ status: 'exited', exitCode: 0, durable: true });
    });
  });
});
