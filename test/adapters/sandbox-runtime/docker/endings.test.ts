import type Docker from 'dockerode';
import { afterAll, afterEach, expect, onTestFinished, test } from 'vitest';
import type { ObservedSandbox } from '../../../../src/domain/sandbox.ts';
import { neverAborts } from '../../../../src/ports/abort-signals.ts';
import type { SandboxRuntime } from '../../../../src/ports/sandbox-runtime.ts';
import { describeWithDocker, images } from '../../../support/docker.ts';
import { until } from '../../../support/until.ts';
import { shell } from '../../../support/sandbox-programs.ts';
import { clientOf, isEvent } from './delayed-events.ts';
import { createEngine } from './engine.ts';
import { endsWell, launchOf, sleeps } from './programs.ts';

const eatsMemory = 'x=0123456789; while :; do x=$x$x; done';
const limited = { cpus: null, memoryBytes: 16 * 2 ** 20, pids: null, openFiles: null, logBytes: null, diskBytes: null };

const stopped = (runtime: SandboxRuntime, id: string): Promise<ObservedSandbox> => until(() => runtime.inspect(id), ({ state }) => state === 'stopped');

const fromOutside = (exitCode: number) => ({ endedFromOutside: true, reason: { code: 'process_exited', exitCode } });
const byItself = (exitCode: number) => ({ endedFromOutside: false, reason: { code: 'process_exited', exitCode } });

/** Returns a function that waits until the runtime has notified its listeners of the sandbox. */
function listening(runtime: SandboxRuntime): (id: string) => Promise<unknown> {
  const woken: string[] = [];
  runtime.subscribe((id) => woken.push(id));
  return (id) => until(() => woken, (ids) => ids.includes(id));
}

/**
 * A client whose engine notices only after the end that memory ran out: when `notice` is called. An engine can lose its event if
 * memory runs out right after the start, so this one is made from the event of the end.
 */
function noticingMemoryLate(): { readonly docker: Docker; readonly connected: Promise<void>; readonly notice: () => void } {
  const [connected, noticed] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const docker = clientOf(async function* (events) {
    connected.resolve();
    for await (const event of events) {
      if (isEvent(event, 'oom')) continue;
      yield event;
      if (!isEvent(event, 'die')) continue;
      await noticed.promise;
      yield event.replaceAll('"die"', '"oom"');
    }
  }, (_path, response, pass) => {
    const { State } = (response ?? {}) as Partial<Docker.ContainerInspectInfo>;
    if (State?.Status === 'exited') State.OOMKilled = false;
    pass();
  });
  return { docker, connected: connected.promise, notice: noticed.resolve };
}

/** A client, and a promise that resolves when the runtime has handled an event about memory that ran out. */
function watchingMemory(): { readonly docker: Docker; readonly ranOut: Promise<void> } {
  const ranOut = Promise.withResolvers<void>();
  const docker = clientOf(async function* (events) {
    for await (const event of events) {
      yield event;
      if (isEvent(event, 'oom')) ranOut.resolve();
    }
  });
  return { docker, ranOut: ranOut.promise };
}

describeWithDocker('The end of a Docker sandbox', () => {
  const engine = createEngine();
  const { container } = engine;
  afterEach(() => engine.clear());
  afterAll(() => engine.close());

  test('counts as from outside if someone stops the container, and not if its command exits or crashes', async () => {
    const runtime = engine.open();
    const notified = listening(runtime);
    const [stops, killed, crashed, exited] = await Promise.all([
      engine.begun(runtime, endsWell),
      engine.begun(runtime, sleeps),
      engine.begun(runtime, sleeps),
      engine.begun(runtime, shell('touch begun; sleep 0.2; exit 7')),
    ]);
    await container(stops.id).stop({ t: 20 });
    await container(killed.id).kill();
    await engine.crash(crashed.id);
    for (const { id } of [stops, killed, crashed, exited]) await notified(id);
    expect(await stopped(runtime, stops.id)).toMatchObject(fromOutside(0));
    expect(await stopped(runtime, killed.id)).toMatchObject(fromOutside(137));
    expect(await stopped(runtime, crashed.id)).toMatchObject(byItself(137));
    expect(await stopped(runtime, exited.id)).toMatchObject(byItself(7));
    expect(await runtime.list()).toEqual(expect.arrayContaining([await runtime.inspect(stops.id), await runtime.inspect(crashed.id)]));
  });

  test('counts as from outside if the container is stopped by the signal that its image names', async () => {
    const base = await engine.docker.createContainer({ Image: images.tiny, StopSignal: 'SIGUSR1' });
    const image = `skep-test/stop-signal-${engine.deployment}`;
    await base.commit({ repo: image });
    onTestFinished(async () => void (await engine.docker.getImage(image).remove()));
    await base.remove();
    const runtime = engine.open();
    const notified = listening(runtime);
    const { id } = await engine.begun(runtime, shell('trap "exit 3" USR1; touch begun; while :; do sleep 0.05; done'), { image });
    await container(id).stop({ t: 20 });
    await notified(id);
    expect(await stopped(runtime, id)).toMatchObject(fromOutside(3));
  });

  test('is classified by its exit code if there was no listener', async () => {
    const runtime = engine.open();
    const [stops, exited] = await Promise.all([engine.begun(runtime, sleeps), engine.begun(runtime, shell('touch begun; exit 7'))]);
    await container(stops.id).stop({ t: 20 });
    expect(await stopped(runtime, stops.id)).toMatchObject({ endedFromOutside: true, reason: { code: 'process_exited', exitCode: 143, signal: 'SIGTERM' } });
    expect(await stopped(runtime, exited.id)).toMatchObject(byItself(7));
  });

  test('is reported as out_of_memory if it used too much memory', async () => {
    const runtime = engine.open();
    const notified = listening(runtime);
    // An engine can lose the event if memory runs out right after the start.
    const { id } = await engine.begun(runtime, shell(`touch begun; until test -e go; do sleep 0.1; done; ${eatsMemory}`), { resources: limited });
    await engine.ask(id, 'touch go');
    await notified(id);
    const ended = await until(() => runtime.inspect(id), ({ reason }) => reason?.code === 'out_of_memory');
    expect(ended).toMatchObject({ state: 'stopped', endedFromOutside: false });
  });

  test('is reported at once, and again as out_of_memory if the engine notices that only after the end', async () => {
    const { docker, connected, notice } = noticingMemoryLate();
    const runtime = engine.open({ docker });
    const notified = listening(runtime);
    await connected;
    const launch = launchOf(shell(eatsMemory), { resources: limited });
    await runtime.start(launch, () => {}, neverAborts);
    await notified(launch.id);
    expect(await stopped(runtime, launch.id)).toMatchObject(byItself(137));
    const again = listening(runtime);
    notice();
    await again(launch.id);
    expect(await runtime.inspect(launch.id)).toMatchObject({ endedFromOutside: false, reason: { code: 'out_of_memory' } });
  });

  test('counts as from outside although a command in it ran out of memory earlier', async () => {
    const { docker, ranOut } = watchingMemory();
    const runtime = engine.open({ docker });
    runtime.subscribe(() => {});
    // While the memory of the killed command is not free yet, the next process that needs some is killed. So this one starts no others.
    const waits = shell('trap "exit 0" TERM; touch begun; sleep 100000 & wait');
    const { id } = await engine.begun(runtime, waits, { resources: limited });
    await engine.ask(id, eatsMemory);
    await ranOut;
    await container(id).stop({ t: 20 });
    expect(await container(id).inspect()).toMatchObject({ State: { ExitCode: 0, OOMKilled: true } });
    expect(await stopped(runtime, id)).toMatchObject(fromOutside(0));
  });

  test('leaves containers of other owners and other deployments alone', async () => {
    const runtime = engine.open();
    const launch = launchOf(sleeps);
    const foreign = await engine.docker.createContainer({
      name: engine.nameOf(launch.id),
      Image: 'skep-test/tiny',
      Entrypoint: [...sleeps],
      Labels: { 'skep.sandbox': launch.id },
    });
    const other = createEngine();
    try {
      await foreign.start();
      const elsewhere = launchOf(sleeps);
      await other.open().start(elsewhere, () => {}, neverAborts);
      for (const observed of [
        await runtime.start(launch, () => {}, neverAborts),
        await runtime.freeze(launch.id),
        await runtime.stop(launch.id),
        await runtime.resume(launch, neverAborts),
        await runtime.inspect(launch.id),
      ]) {
        expect(observed).toMatchObject({ state: 'absent', reason: { message: expect.stringMatching(/not of this deployment/) } });
      }
      await runtime.remove(launch.id);
      await runtime.remove(elsewhere.id);
      expect(await runtime.list()).toEqual([]);
      expect((await foreign.inspect()).State.Status).toBe('running');
      expect((await other.open().inspect(elsewhere.id)).state).toBe('running');
    } finally {
      await foreign.remove({ force: true });
      await other.close();
    }
  });
});
