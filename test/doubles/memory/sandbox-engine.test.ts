import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import type { Reason } from '../../../src/domain/reason.ts';
import { neverAborts } from '../../../src/ports/abort-signals.ts';
import { createMemoryRuntime, MemoryEngine } from './index.ts';
import { finish } from '../../contracts/sandbox-runtime-streams.ts';
import { launchOf } from '../../adapters/sandbox-runtime/process/programs.ts';

describe('provide() in memory', () => {
  const { spec } = launchOf(['runs']);

  test('returns `provided` by default', async () => {
    assert.deepEqual(await createMemoryRuntime().provide(spec, () => {}, neverAborts), { kind: 'provided' });
  });

  test('can refuse, report progress, and be aborted by one of its callers', async () => {
    const engine = new MemoryEngine();
    const runtime = createMemoryRuntime(engine);
    engine.provider = async () => ({ kind: 'refused', reason: { code: 'image_not_named' } });
    assert.deepEqual(await runtime.provide(spec, () => {}, neverAborts), { kind: 'refused', reason: { code: 'image_not_named' } });

    const lines: Reason[] = [];
    const arrived = Promise.withResolvers<{ kind: 'provided' }>();
    engine.provider = (_spec, progress) => {
      progress({ code: 'creating_sandbox' });
      return arrived.promise;
    };
    const reason = new Error('no longer wanted');
    const controller = new AbortController();
    const left = runtime.provide(spec, () => {}, controller.signal);
    const waiting = runtime.provide(spec, (line) => lines.push(line), neverAborts);
    controller.abort(reason);
    await assert.rejects(left, (error) => error === reason);
    arrived.resolve({ kind: 'provided' });
    assert.deepEqual(await waiting, { kind: 'provided' });
    assert.deepEqual(lines, [{ code: 'creating_sandbox' }]);
  });
});

describe('A sandbox in memory', () => {
  test('has `endedFromOutside` if it was stopped from outside, until it runs again', async () => {
    const engine = new MemoryEngine();
    const runtime = createMemoryRuntime(engine);
    const woken: string[] = [];
    runtime.subscribe((id) => woken.push(id));
    const crashed = launchOf(['runs']);
    const stopped = launchOf(['runs']);
    const restarted = launchOf(['runs']);
    const resting = launchOf(['runs']);
    for (const launch of [crashed, stopped, restarted, resting]) await runtime.start(launch, () => {}, neverAborts);
    await runtime.stop(resting.id);
    engine.crash(crashed.id);
    engine.stopFromOutside(stopped.id);
    await runtime.freeze(restarted.id);
    engine.restart();
    const told = new Map((await runtime.list()).map(({ id, state, endedFromOutside }) => [id, [state, endedFromOutside]]));
    assert.deepEqual(told.get(crashed.id), ['stopped', false]);
    assert.deepEqual(told.get(stopped.id), ['stopped', true]);
    assert.deepEqual(told.get(restarted.id), ['stopped', true]);
    assert.deepEqual(told.get(resting.id), ['stopped', false]);
    assert.deepEqual(woken, [crashed.id, stopped.id, restarted.id]);
    const { state, endedFromOutside } = await runtime.resume(restarted, neverAborts);
    assert.deepEqual({ state, endedFromOutside }, { state: 'running', endedFromOutside: false });
  });

  test('finds no command if its engine has none', async () => {
    const runtime = createMemoryRuntime();
    const launch = launchOf(['runs']);
    await runtime.start(launch, () => {}, neverAborts);
    assert.deepEqual(await finish(await runtime.execute(launch.id, { command: ['agent'] }, neverAborts)), {
      out: '',
      err: 'command not found: agent\n',
      code: 127,
    });
  });
});
