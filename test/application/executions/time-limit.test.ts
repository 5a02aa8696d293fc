import { describe, expect, test } from 'vitest';
import { until } from '../../support/until.ts';
import { request, started } from './world.ts';

const limitMs = 5000;
const running = { status: 'running' };
const timedOut = { status: 'exited', exitCode: 137, statusReason: { code: 'execution_timed_out', afterMs: limitMs } };

/** A command that runs until its time limit. */
async function limited() {
  const { world, skep, executions, sandboxId, ...calls } = await started();
  const { id } = await executions.run('ann', sandboxId, request(['sleep'], { timeoutMs: limitMs }));
  return {
    ...skep, id, sandboxId, world, clock: world.clock,
    timerSet: () => until(() => world.clock.pending, Boolean, 60_000),
    get: () => calls.get(id),
    ended: () => calls.ended(id),
  };
}

describe('the time limit', () => {
  test('ends the command with SIGKILL', async () => {
    const { clock, timerSet, get, ended } = await limited();
    await timerSet();
    clock.advance(limitMs - 1);
    expect(await get()).toMatchObject(running);
    clock.advance(1);
    expect(await ended()).toMatchObject(timedOut);
  });

  test('applies even if the clock is set back meanwhile', async () => {
    const { clock, timerSet, ended } = await limited();
    await timerSet();
    clock.jump(-3_600_000);
    clock.advance(limitMs);
    expect(await ended()).toMatchObject(timedOut);
  });

  test('does not end the command early if the clock is set forward meanwhile', async () => {
    const { clock, timerSet, sweeper, executions, sandboxId, id, get, ended } = await limited();
    await timerSet();
    clock.jump(3_600_000);
    await sweeper.sweep();
    // The run looks at the record again.
    await executions.signal('ann', sandboxId, id, 'SIGCONT');
    clock.advance(limitMs - 1);
    await sweeper.sweep();
    expect(await get()).toMatchObject({ ...running, statusReason: null });
    clock.advance(1);
    expect(await ended()).toMatchObject(timedOut);
  });

  test('applies even if the server restarts meanwhile', async () => {
    const { world, clock, shutdown, id } = await limited();
    await shutdown();
    expect(await world.store.executions.find(id)).toMatchObject(running);
    clock.advance(limitMs);
    const next = await world.boot();
    await next.sweeper.sweep();
    const found = await until(() => world.store.executions.find(id), (record) => record?.status === 'exited', 60_000);
    expect(found).toMatchObject(timedOut);
  });

  test('ends a command in a frozen sandbox after a resume', async () => {
    const { clock, sandboxes, sweeper, sandboxId, get, ended } = await limited();
    await sandboxes.pause('ann', sandboxId, 'freeze');
    clock.advance(limitMs + 1000);
    await sweeper.sweep();
    expect(await get()).toMatchObject(running);
    await sandboxes.resume('ann', sandboxId);
    await sweeper.sweep();
    expect(await ended()).toMatchObject(timedOut);
  });
});
