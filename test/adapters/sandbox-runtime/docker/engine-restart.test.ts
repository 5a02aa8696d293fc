import { afterAll, beforeAll, expect, test } from 'vitest';
import { createDockerRuntime } from '../../../../src/adapters/sandbox-runtime/docker/index.ts';
import { isFailureOf } from '../../../../src/domain/failure.ts';
import { neverAborts } from '../../../../src/ports/abort-signals.ts';
import type { SandboxLaunch, SandboxRuntime } from '../../../../src/ports/sandbox-runtime.ts';
import { until } from '../../../support/until.ts';
import { createOwnEngine, describeWithOwnEngine, type OwnEngine } from './own-engine.ts';
import { launchOf } from './programs.ts';
import { shell } from '../../../support/sandbox-programs.ts';

async function started(runtime: SandboxRuntime, command: readonly string[]): Promise<SandboxLaunch> {
  const launch = launchOf(command);
  expect(await runtime.start(launch, () => {}, neverAborts)).toMatchObject({ id: launch.id, exposedUrls: expect.any(Array) });
  return launch;
}

describeWithOwnEngine('A Docker sandbox whose engine restarts or loses its containerd', () => {
  let engine: OwnEngine;
  const opened: SandboxRuntime[] = [];
  const open = (): SandboxRuntime => {
    const runtime = createDockerRuntime({ deployment: 'main', host: engine.host, env: {}, stopGraceMs: 1_000 });
    opened.push(runtime);
    return runtime;
  };
  beforeAll(async () => {
    engine = await createOwnEngine();
  });
  afterAll(async () => {
    await Promise.all(opened.map((runtime) => runtime.close()));
    await engine.close();
  });

  const endsWell = shell('trap "exit 0" TERM; echo life >> lives; while :; do sleep 0.05; done');
  const sleeps = shell('echo life >> lives; exec sleep 100000');
  test.each(['SIGTERM', 'SIGKILL'] as const)(
    'after a restart by %s: is stopped from outside, its listeners are notified, and it can be resumed',
    async (signal) => {
      const runtime = open();
      const woken = new Set<string>();
      runtime.subscribe((id) => woken.add(id));
      const [sleeper, frozen, polite, ended] = [
        await started(runtime, sleeps),
        await started(runtime, sleeps),
        await started(runtime, endsWell),
        await started(runtime, shell('exit 7')),
      ];
      const living = [sleeper, frozen, polite];
      await runtime.freeze(frozen.id);
      await until(
        () => runtime.inspect(ended.id),
        ({ state }) => state === 'stopped',
      );
      expect(await runtime.inspect(ended.id)).toMatchObject({ endedFromOutside: false });

      await engine.stop(signal);
      await expect(runtime.list()).rejects.toMatchObject({ code: 'runtime_unavailable' });
      await engine.start();
      for (const { id } of living) {
        await until(
          () => [...woken],
          (ids) => ids.includes(id),
          60_000,
        );
        expect(
          await until(
            () => runtime.inspect(id),
            ({ state }) => state === 'stopped',
          ),
        ).toMatchObject({ endedFromOutside: true });
      }
      const later = open();
      for (const { id } of living) expect(await later.inspect(id)).toMatchObject({ state: 'stopped', endedFromOutside: true });
      for (const launch of living)
        expect(await later.resume(launch, neverAborts)).toMatchObject({ state: 'running', exposedUrls: [{ name: 'WEB' }] });
      for (const { id } of [...living, ended]) await later.remove(id);
      expect(await runtime.list()).toEqual([]);
    },
  );

  test('runs no command while its containerd does not answer, says so, and runs it later', async () => {
    const runtime = open();
    const { id } = await started(runtime, sleeps);
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
