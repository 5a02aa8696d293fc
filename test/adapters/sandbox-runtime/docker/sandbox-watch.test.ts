import { afterAll, afterEach, expect, test } from 'vitest';
import type { ObservedState } from '../../../../src/domain/sandbox.ts';
import { neverAborts } from '../../../../src/ports/abort-signals.ts';
import { describeWithDocker } from '../../../support/docker.ts';
import { until } from '../../../support/until.ts';
import { clientOf, isEvent } from './delayed-events.ts';
import { createEngine } from './engine.ts';
import { endsWell, sleeps } from './programs.ts';

describeWithDocker('The listeners of the Docker runtime', () => {
  const engine = createEngine();
  const { container } = engine;
  afterEach(() => engine.clear());
  afterAll(() => engine.close());

  test('are notified of changes by a person, and not of changes by the runtime', async () => {
    const runtime = engine.open();
    const woken: string[] = [];
    runtime.subscribe((id) => woken.push(id));
    const touched = await engine.begun(runtime, sleeps);
    const untouched = await engine.begun(runtime, endsWell);
    const wakes = async (act: () => Promise<unknown>, state: ObservedState): Promise<void> => {
      const before = woken.length;
      await act();
      await until(() => woken.slice(before), (ids) => ids.includes(touched.id));
      // The engine may repeat an earlier pause.
      await until(async () => (await runtime.inspect(touched.id)).state, (now) => now === state);
    };
    await runtime.freeze(untouched.id);
    await runtime.resume(untouched, neverAborts);
    await wakes(() => container(touched.id).pause(), 'frozen');
    await wakes(() => container(touched.id).unpause(), 'running');
    await wakes(() => container(touched.id).kill(), 'stopped');
    await wakes(() => container(touched.id).start(), 'running');
    await runtime.stop(untouched.id);
    await runtime.resume(untouched, neverAborts);
    await wakes(() => container(touched.id).remove({ force: true }), 'absent');
    await runtime.remove(untouched.id);
    expect(new Set(woken)).toEqual(new Set([touched.id]));
  });

  test.each(['after the last of them', 'partly during the last of them'])(
    'are notified once of a change by a person if the events of own changes arrive %s', async (when) => {
      const [some, all] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
      let isHeld = false;
      let isLast = false;
      const docker = clientOf(async function* (events) {
        for await (const event of events) {
          if (isHeld) await (isEvent(event, 'start', 'pause') ? some : all).promise;
          yield event;
        }
      }, (_path, _response, pass) => {
        if (isLast) some.resolve();
        pass();
      });
      const runtime = engine.open({ docker });
      const woken: string[] = [];
      runtime.subscribe((id) => woken.push(id));
      const launch = await engine.begun(runtime, sleeps);
      await container(launch.id).kill();
      await until(() => woken, (ids) => ids.includes(launch.id));
      woken.length = 0;
      isHeld = true;
      await runtime.resume(launch, neverAborts);
      await runtime.freeze(launch.id);
      isLast = when.startsWith('partly');
      await runtime.resume(launch, neverAborts);
      const early = [...woken];
      await container(launch.id).kill();
      some.resolve();
      all.resolve();
      await until(() => woken, (ids) => ids.includes(launch.id));
      expect((await runtime.resume(launch, neverAborts)).state).toBe('running');
      await container(launch.id).kill();
      await until(() => woken, (ids) => ids.length > 1);
      expect([early, woken]).toEqual([[], [launch.id, launch.id]]);
    },
  );

  test.each(['after', 'during'])('are not notified if the engine repeats an earlier pause %s a resumption', async (when) => {
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
    }, (path, _response, pass) => {
      if (when === 'during' && path.endsWith('/unpause')) void repeated.promise.then(pass);
      else pass();
    });
    const runtime = engine.open({ docker });
    const woken: string[] = [];
    runtime.subscribe((id) => woken.push(id));
    const launch = await engine.begun(runtime, sleeps);
    await runtime.freeze(launch.id);
    await runtime.resume(launch, neverAborts);
    resumed.resolve();
    await container(launch.id).kill();
    await until(async () => (await runtime.inspect(launch.id)).state, (state) => state === 'stopped');
    await until(() => woken, (ids) => ids.length > 0);
    expect(woken).toEqual([launch.id]);
  });
});
