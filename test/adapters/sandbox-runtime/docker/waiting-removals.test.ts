import { basename } from 'node:path';
import { afterAll, afterEach, expect, test, vi } from 'vitest';
import { ContainerCommands, keptFolder } from '../../../../src/adapters/sandbox-runtime/docker/container-commands.ts';
import { DockerExecutionHost } from '../../../../src/adapters/sandbox-runtime/docker/execution-host.ts';
import { neverAborts } from '../../../../src/ports/abort-signals.ts';
import type { SandboxLaunch, SandboxRuntime } from '../../../../src/ports/sandbox-runtime.ts';
import { describeWithDocker } from '../../../support/docker.ts';
import { until } from '../../../support/until.ts';
import { createEngine } from './engine.ts';
import { launchOf, sleeps } from './programs.ts';

/** Resumes the sandbox, and waits until its waiting removals are finished. Returns the executions that it removed. */
async function resume(runtime: SandboxRuntime, launch: SandboxLaunch): Promise<string[]> {
  const scripts = vi.spyOn(ContainerCommands.prototype, 'startScript');
  const finishing = vi.spyOn(DockerExecutionHost.prototype, 'finishRemovals');
  scripts.mockClear();
  finishing.mockClear();
  await runtime.resume(launch, neverAborts);
  await until(() => finishing.mock.results, (results) => results.length > 0);
  await finishing.mock.results[0]?.value;
  const commands = scripts.mock.calls.map(([, command]) => command).filter((command) => command.includes('skep-remove'));
  return commands.flatMap((command) => command.filter((word) => word.startsWith(`${keptFolder}/`)).map((folder) => basename(folder)));
}

async function frozenWith(runtime: SandboxRuntime, launch: SandboxLaunch, executionId: string): Promise<void> {
  await runtime.start(launch, () => {}, neverAborts);
  await runtime.executions.start(launch.id, { executionId, command: ['sleep', '100000'], stdin: false, tty: null }, neverAborts);
  await runtime.freeze(launch.id);
}

describeWithDocker('The removal of an execution in a frozen Docker sandbox', () => {
  const engine = createEngine();
  afterEach(async () => {
    vi.restoreAllMocks();
    await engine.clear();
  });
  afterAll(() => engine.close());

  test('waits until the sandbox is resumed, unless there is no such execution', async () => {
    const runtime = engine.open();
    const launch = launchOf(sleeps);
    await frozenWith(runtime, launch, 'first');
    await runtime.executions.remove(launch.id, 'missing');
    expect(await resume(runtime, launch)).toEqual([]);
    await runtime.freeze(launch.id);
    await runtime.executions.remove(launch.id, 'first');
    expect(await resume(runtime, launch)).toEqual(['first']);
    await expect(runtime.executions.state(launch.id, 'first')).rejects.toMatchObject({ code: 'execution_not_found' });
  });

  test('does not wait any longer if the execution is removed meanwhile', async () => {
    const runtime = engine.open();
    const launch = launchOf(sleeps);
    await frozenWith(runtime, launch, 'same');
    await runtime.executions.remove(launch.id, 'same');
    vi.spyOn(DockerExecutionHost.prototype, 'finishRemovals').mockRejectedValueOnce(new Error('the engine does not answer'));
    await runtime.resume(launch, neverAborts);
    await runtime.executions.remove(launch.id, 'same');
    await runtime.executions.start(launch.id, { executionId: 'same', command: ['sleep', '100000'], stdin: false, tty: null }, neverAborts);
    await runtime.freeze(launch.id);
    expect(await resume(runtime, launch)).toEqual([]);
    expect(await runtime.executions.state(launch.id, 'same')).toMatchObject({ status: 'running' });
  });

  test('is forgotten with the sandbox', async () => {
    const runtime = engine.open();
    const launch = launchOf(sleeps);
    await frozenWith(runtime, launch, 'same');
    await runtime.executions.remove(launch.id, 'same');
    await runtime.remove(launch.id);
    await frozenWith(runtime, launch, 'same');
    expect(await resume(runtime, launch)).toEqual([]);
    expect(await runtime.executions.state(launch.id, 'same')).toMatchObject({ status: 'running' });
  });
});
