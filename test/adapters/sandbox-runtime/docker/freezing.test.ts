import Docker from 'dockerode';
import { afterAll, afterEach, expect, test } from 'vitest';
import { neverAborts } from '../../../../src/ports/abort-signals.ts';
import { describeWithDocker } from '../../../support/docker.ts';
import { until } from '../../../support/until.ts';
import { clientOf } from './delayed-events.ts';
import { createEngine } from './engine.ts';
import { launchOf, programs } from './programs.ts';

/** A client of the real engine that keeps what it is asked for: `POST /containers/<id>/pause`. */
function countingClient(): { readonly docker: Docker; readonly asked: string[] } {
  const docker = new Docker();
  const asked: string[] = [];
  const { modem } = docker;
  const dial = modem.dial.bind(modem);
  modem.dial = (options, callback) => {
    asked.push(`${options.method} ${options.path.replace(/\?.*$/, '')}`);
    dial(options, callback);
  };
  return { docker, asked };
}

describeWithDocker('Freezing a Docker sandbox', () => {
  const engine = createEngine();
  afterEach(() => engine.clear());
  afterAll(() => engine.close());

  test('needs one engine call to freeze and one to resume, and returns the exposed URLs', async () => {
    const { docker, asked } = countingClient();
    const runtime = engine.open({ docker });
    const launch = launchOf(programs.serves, { ports: [{ name: 'WEB', port: 8080 }] });
    const running = await runtime.start(launch, () => {}, neverAborts);
    expect(running.exposedUrls).toHaveLength(1);
    asked.length = 0;
    expect(await runtime.freeze(launch.id)).toEqual({ ...running, state: 'frozen' });
    expect(await runtime.resume(launch, neverAborts)).toEqual(running);
    expect(asked.filter((call) => call.startsWith('POST')).map((call) => call.split('/').at(-1))).toEqual(['pause', 'unpause']);
    expect(asked.length).toBeLessThanOrEqual(7);
    expect(await runtime.inspect(launch.id)).toEqual(running);
  });

  test('freezes and resumes although the engine notices an earlier change late', async () => {
    const late: string[] = [];
    const docker = clientOf((events) => events, (_path, response, pass) => {
      const { State } = (response ?? {}) as Partial<Docker.ContainerInspectInfo>;
      if (State !== undefined) State.Status = late.shift() ?? State.Status;
      pass();
    });
    const runtime = engine.open({ docker });
    const launch = launchOf(programs.serves);
    await runtime.start(launch, () => {}, neverAborts);
    late.push('paused');
    expect((await runtime.freeze(launch.id)).state).toBe('frozen');
    late.push('running');
    expect((await runtime.resume(launch, neverAborts)).state).toBe('running');
    expect((await runtime.inspect(launch.id)).state).toBe('running');
  });

  test('is not mistaken for frozen after a resumption, although the engine repeats the pause before it', async () => {
    let repeats = 0;
    const docker = clientOf((events) => events, (_path, response, pass) => {
      const { State } = (response ?? {}) as Partial<Docker.ContainerInspectInfo>;
      if (State !== undefined && repeats > 0) {
        State.Status = 'paused';
        repeats -= 1;
      }
      pass();
    });
    const runtime = engine.open({ docker });
    const launch = launchOf(programs.serves);
    await runtime.start(launch, () => {}, neverAborts);
    await runtime.freeze(launch.id);
    await runtime.resume(launch, neverAborts);
    repeats = 100;
    expect((await runtime.inspect(launch.id)).state).toBe('running');
    repeats = 10;
    expect((await runtime.freeze(launch.id)).state).toBe('frozen');
    expect((await engine.container(launch.id).inspect()).State.Status).toBe('paused');
  });

  test('inspects the container again if it was changed from outside', async () => {
    const runtime = engine.open();
    const woken: string[] = [];
    runtime.subscribe((id) => woken.push(id));
    const launch = launchOf(programs.serves, { ports: [{ name: 'WEB', port: 8080 }] });
    await runtime.start(launch, () => {}, neverAborts);
    // It comes up again under another port.
    await engine.container(launch.id).restart({ t: 0 });
    await until(() => woken, (ids) => ids.includes(launch.id));
    const frozen = await runtime.freeze(launch.id);
    expect(frozen).toMatchObject({ state: 'frozen', exposedUrls: [expect.anything()] });
    expect(await runtime.inspect(launch.id)).toEqual(frozen);
    await engine.container(launch.id).unpause();
    expect(await runtime.freeze(launch.id)).toEqual(frozen);
    await engine.container(launch.id).stop({ t: 0 });
    expect((await runtime.freeze(launch.id)).state).toBe('stopped');
    expect((await runtime.resume(launch, neverAborts)).state).toBe('running');
  });
});
