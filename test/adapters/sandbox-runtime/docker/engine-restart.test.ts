import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createDockerRuntime } from '../../../../src/adapters/sandbox-runtime/docker/index.ts';
import { neverAborts } from '../../../../src/ports/abort-signals.ts';
import type { SandboxLaunch, SandboxRuntime } from '../../../../src/ports/sandbox-runtime.ts';
import { describeWithDocker } from '../../../support/docker.ts';
import { until } from '../../../support/until.ts';
import { createOwnEngine, whyNoOwnEngine, type OwnEngine } from './own-engine.ts';
import { launchOf } from './programs.ts';
import { shell } from '../../../support/sandbox-programs.ts';

const absent = await whyNoOwnEngine();

async function started(runtime: SandboxRuntime, command: readonly string[]): Promise<SandboxLaunch> {
  const launch = launchOf(command);
  expect(await runtime.start(launch, () => {}, neverAborts)).toMatchObject({ id: launch.id, exposedUrls: expect.any(Array) });
  return launch;
}

if (absent !== null) console.warn(`SKIPPED the restart of an engine: ${absent}.`);

describeWithDocker('A Docker sandbox after a restart of its engine', () => {
  describe.skipIf(absent !== null)('with a private engine', () => {
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
      'after %s: is stopped from outside, its listeners are notified, and it can be resumed',
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
  });
});
