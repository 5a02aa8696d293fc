import { IncomingMessage } from 'node:http';
import Docker from 'dockerode';
import { afterAll, afterEach, expect, onTestFinished, test } from 'vitest';
import type { ObservedSandbox, ObservedState } from '../../../../src/domain/sandbox.ts';
import type { SandboxSpec } from '../../../../src/domain/sandbox-spec.ts';
import type { SandboxLaunch, SandboxRuntime } from '../../../../src/ports/sandbox-runtime.ts';
import { describeWithDocker, images } from '../../../support/docker.ts';
import { until } from '../../../support/until.ts';
import { createEngine } from './engine.ts';
import { launchOf } from './programs.ts';
import { shell } from '../../../support/sandbox-programs.ts';

const eatsMemory = 'x=0123456789; while :; do x=$x$x; done';
const limited = { cpus: null, memoryBytes: 16 * 2 ** 20, pids: null, openFiles: null, logBytes: null, diskBytes: null };
const never = new AbortController().signal;
const sleeps = shell('touch begun; exec sleep 100000');
const endsWell = shell('trap "exit 0" TERM; touch begun; while :; do sleep 0.05; done');

const stopped = (runtime: SandboxRuntime, id: string): Promise<ObservedSandbox> =>
  until(
    () => runtime.inspect(id),
    ({ state }) => state === 'stopped',
  );

/** Yields the engine's events, one per line, when and in which order they are to arrive. */
type Arrival = (events: AsyncIterable<string>) => AsyncGenerator<string, void>;

async function* linesOf(chunks: AsyncIterable<unknown>): AsyncGenerator<string> {
  let rest = '';
  for await (const chunk of chunks) {
    const lines = `${rest}${String(chunk)}`.split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) yield `${line}\n`;
  }
}

const isEvent = (line: string, ...actions: readonly string[]): boolean => actions.some((action) => line.includes(`"Action":"${action}"`));

/** A client of the real engine whose events arrive in another order. `see` gets each other response before the runtime does. */
function clientOf(arrival: Arrival, see: (path: string, response: unknown) => void = () => {}): Docker {
  const docker = new Docker();
  const dial = docker.modem.dial.bind(docker.modem);
  docker.modem.dial = (options, callback) => dial(options, (error, response) => {
    if (options.path.startsWith('/events') && response instanceof IncomingMessage) {
      const chunks = response[Symbol.asyncIterator]();
      response[Symbol.asyncIterator] = async function* (): AsyncGenerator<string, undefined> {
        yield* arrival(linesOf(chunks));
        return undefined;
      };
    } else see(options.path, response);
    callback?.(error, response);
  });
  return docker;
}

describeWithDocker('The end of a Docker sandbox', () => {
  const engine = createEngine();
  const { container } = engine;
  afterEach(() => engine.clear());
  afterAll(() => engine.close());

  async function begun(runtime: SandboxRuntime, command: readonly string[], changes?: Partial<SandboxSpec>): Promise<SandboxLaunch> {
    const launch = launchOf(command, changes);
    await runtime.start(launch, () => {}, never);
    await until(() => engine.readFile(launch.id, '/workspace/begun'), (text) => text !== null);
    return launch;
  }
  test('counts as from outside if someone stops the container, and not if its command exits or crashes', async () => {
    const runtime = engine.open();
    const woken: string[] = [];
    runtime.subscribe((id) => woken.push(id));
    const [byStop, byKill, byCrash, byItself] = await Promise.all([
      begun(runtime, endsWell),
      begun(runtime, sleeps),
      begun(runtime, sleeps),
      begun(runtime, shell('touch begun; sleep 0.2; exit 7')),
    ]);
    await container(byStop.id).stop({ t: 20 });
    await container(byKill.id).kill();
    await engine.crash(byCrash.id);
    for (const { id } of [byStop, byKill, byCrash, byItself]) await until(() => woken, (ids) => ids.includes(id));
    expect(await stopped(runtime, byStop.id)).toMatchObject({
      endedFromOutside: true,
      reason: { code: 'process_exited', exitCode: 0 },
    });
    expect(await stopped(runtime, byKill.id)).toMatchObject({ endedFromOutside: true, reason: { code: 'process_exited', exitCode: 137 } });
    expect(await stopped(runtime, byCrash.id)).toMatchObject({
      endedFromOutside: false,
      reason: { code: 'process_exited', exitCode: 137 },
    });
    expect(await stopped(runtime, byItself.id)).toMatchObject({ endedFromOutside: false, reason: { code: 'process_exited', exitCode: 7 } });
    expect(await runtime.list()).toEqual(expect.arrayContaining([await runtime.inspect(byStop.id), await runtime.inspect(byCrash.id)]));
  });

  test('counts as from outside if the container is stopped by the signal that its image names', async () => {
    const base = await engine.docker.createContainer({ Image: images.tiny, StopSignal: 'SIGUSR1' });
    const image = `skep-test/stop-signal-${engine.deployment}`;
    await base.commit({ repo: image });
    onTestFinished(async () => void (await engine.docker.getImage(image).remove()));
    await base.remove();
    const runtime = engine.open();
    const woken: string[] = [];
    runtime.subscribe((id) => woken.push(id));
    const { id } = await begun(runtime, shell('trap "exit 3" USR1; touch begun; while :; do sleep 0.05; done'), { image });
    await container(id).stop({ t: 20 });
    await until(() => woken, (ids) => ids.includes(id));
    expect(await stopped(runtime, id)).toMatchObject({ endedFromOutside: true, reason: { exitCode: 3 } });
  });

  test('is classified by its exit code if there was no listener', async () => {
    const runtime = engine.open();
    const [byStop, byItself] = await Promise.all([begun(runtime, sleeps), begun(runtime, shell('touch begun; exit 7'))]);
    await container(byStop.id).stop({ t: 20 });
    expect(await stopped(runtime, byStop.id)).toMatchObject({ endedFromOutside: true, reason: { code: 'process_exited', exitCode: 143, signal: 'SIGTERM' } });
    expect(await stopped(runtime, byItself.id)).toMatchObject({ endedFromOutside: false });
  });

  test('is reported as out_of_memory if it used too much memory, also if the engine notices that after the end', async () => {
    const [connected, inspected] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const docker = clientOf(async function* (events) {
      connected.resolve();
      const late: string[] = [];
      let isOver = false;
      for await (const event of events) {
        if (isEvent(event, 'oom') && !isOver) late.push(event);
        else yield event;
        if (!isEvent(event, 'die')) continue;
        isOver = true;
        await inspected.promise;
        yield* late;
      }
    }, (_path, response) => {
      const { State } = (response ?? {}) as Partial<Docker.ContainerInspectInfo>;
      if (State?.Status !== 'exited') return;
      State.OOMKilled = false;
      inspected.resolve();
    });
    const runtime = engine.open({ docker });
    runtime.subscribe(() => {});
    await connected.promise;
    const launch = launchOf(shell(eatsMemory), { resources: limited });
    await runtime.start(launch, () => {}, never);
    expect(await stopped(runtime, launch.id)).toMatchObject({ endedFromOutside: false, reason: { code: 'out_of_memory' } });
  });

  test('counts as from outside although a command in it ran out of memory earlier', async () => {
    const noticed = Promise.withResolvers<void>();
    const docker = clientOf(async function* (events) {
      for await (const event of events) {
        yield event;
        if (isEvent(event, 'oom')) noticed.resolve();
      }
    });
    const runtime = engine.open({ docker });
    runtime.subscribe(() => {});
    const { id } = await begun(runtime, endsWell, { resources: limited });
    await engine.ask(id, eatsMemory);
    await noticed.promise;
    await container(id).stop({ t: 20 });
    expect(await container(id).inspect()).toMatchObject({ State: { ExitCode: 0, OOMKilled: true } });
    expect(await stopped(runtime, id)).toMatchObject({ endedFromOutside: true, reason: { code: 'process_exited', exitCode: 0 } });
  });

  test('and other changes by a person notify listeners, and changes by the runtime do not', async () => {
    const runtime = engine.open();
    const woken: string[] = [];
    runtime.subscribe((id) => woken.push(id));
    const touched = await begun(runtime, sleeps);
    const untouched = await begun(runtime, endsWell);
    const wakes = async (act: () => Promise<unknown>, state: ObservedState): Promise<void> => {
      const before = woken.length;
      await act();
      await until(() => woken.slice(before), (ids) => ids.includes(touched.id));
      expect((await runtime.inspect(touched.id)).state).toBe(state);
    };
    await runtime.freeze(untouched.id);
    await runtime.resume(untouched, never);
    await wakes(() => container(touched.id).pause(), 'frozen');
    await wakes(() => container(touched.id).unpause(), 'running');
    await wakes(() => container(touched.id).kill(), 'stopped');
    await wakes(() => container(touched.id).start(), 'running');
    await runtime.stop(untouched.id);
    await runtime.resume(untouched, never);
    await wakes(() => container(touched.id).remove({ force: true }), 'absent');
    await runtime.remove(untouched.id);
    expect(new Set(woken)).toEqual(new Set([touched.id]));
  });

  test.each(['after the last of them', 'partly during the last of them'])(
    'and other changes by a person notify listeners once if the events of own changes arrive %s', async (when) => {
      const [some, all] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
      let isHeld = false;
      let onResponse = (): void => {};
      const docker = clientOf(async function* (events) {
        for await (const event of events) {
          if (isHeld) await (isEvent(event, 'start', 'pause') ? some : all).promise;
          yield event;
        }
      }, () => onResponse());
      const runtime = engine.open({ docker });
      const woken: string[] = [];
      runtime.subscribe((id) => woken.push(id));
      const launch = await begun(runtime, sleeps);
      await container(launch.id).kill();
      await until(() => woken, (ids) => ids.includes(launch.id));
      woken.length = 0;
      isHeld = true;
      await runtime.resume(launch, never);
      await runtime.freeze(launch.id);
      if (when.startsWith('partly')) onResponse = some.resolve;
      await runtime.resume(launch, never);
      const early = [...woken];
      await container(launch.id).kill();
      some.resolve();
      all.resolve();
      await until(() => woken, (ids) => ids.includes(launch.id));
      expect((await runtime.resume(launch, never)).state).toBe('running');
      await container(launch.id).kill();
      await until(() => woken, (ids) => ids.length > 1);
      expect([early, woken]).toEqual([[], [launch.id, launch.id]]);
    },
  );

  test.each(['after', 'during'])('notifies no listener if the engine repeats an earlier pause %s a resumption', async (when) => {
    const repeated = Promise.withResolvers<void>();
    const resumed = Promise.withResolvers<void>();
    const docker = clientOf(async function* (events) {
      for await (const event of events) {
        yield event;
        if (!isEvent(event, 'unpause')) continue;
        if (when === 'after') await resumed.promise;
        yield event.replaceAll('unpause', 'pause');
        repeated.resolve();
        await resumed.promise;
        yield event;
      }
    });
    const dial = docker.modem.dial.bind(docker.modem);
    docker.modem.dial = (options, callback) => dial(options, async (error, response) => {
      if (when === 'during' && options.path.endsWith('/unpause')) await repeated.promise;
      callback?.(error, response);
    });
    const runtime = engine.open({ docker });
    const woken: string[] = [];
    runtime.subscribe((id) => woken.push(id));
    const { id, ...launch } = await begun(runtime, sleeps);
    await runtime.freeze(id);
    await runtime.resume({ id, ...launch }, never);
    resumed.resolve();
    await container(id).kill();
    await until(async () => (await runtime.inspect(id)).state, (state) => state === 'stopped');
    await until(() => woken, (ids) => ids.length > 0);
    expect(woken).toEqual([id]);
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
      await other.open().start(elsewhere, () => {}, never);
      for (const observed of [
        await runtime.start(launch, () => {}, never),
        await runtime.freeze(launch.id),
        await runtime.stop(launch.id),
        await runtime.resume(launch, never),
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
