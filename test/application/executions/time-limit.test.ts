import { describe, expect, test } from 'vitest';
import { until } from '../../support/until.ts';
import { request, started } from './world.ts';

describe('the time limit', () => {
  test('ends the command with SIGKILL', async () => {
    const { world, executions, sandboxId, ended } = await started();
    const { id } = await executions.run('ann', sandboxId, request(['sleep'], { timeoutMs: 5000 }));
    await until(() => world.clock.pending, Boolean, 60_000);
    world.clock.advance(4999);
    expect(await executions.get('ann', sandboxId, id)).toMatchObject({ status: 'running' });
    world.clock.advance(1);
    expect(await ended(id)).toMatchObject({ status: 'exited', exitCode: 137, statusReason: { code: 'execution_timed_out', afterMs: 5000 } });
  });

  test('applies even if the clock is set back meanwhile', async () => {
    const { world, executions, sandboxId, ended } = await started();
    const { id } = await executions.run('ann', sandboxId, request(['sleep'], { timeoutMs: 5000 }));
    await until(() => world.clock.pending, Boolean, 60_000);
    world.clock.jump(-3_600_000);
    world.clock.advance(5000);
    expect(await ended(id)).toMatchObject({ status: 'exited', exitCode: 137, statusReason: { code: 'execution_timed_out' } });
  });

  test('does not end the command early if the clock is set forward meanwhile', async () => {
    const { world, skep, executions, sandboxId, get, ended } = await started();
    const { id } = await executions.run('ann', sandboxId, request(['sleep'], { timeoutMs: 5000 }));
    await until(() => world.clock.pending, Boolean, 60_000);
    world.clock.jump(3_600_000);
    await skep.sweeper.sweep();
    // The run looks at the record again.
    await executions.signal('ann', sandboxId, id, 'SIGCONT');
    world.clock.advance(4999);
    await skep.sweeper.sweep();
    expect(await get(id)).toMatchObject({ status: 'running', statusReason: null });
    world.clock.advance(1);
    expect(await ended(id)).toMatchObject({ status: 'exited', exitCode: 137, statusReason: { code: 'execution_timed_out', afterMs: 5000 } });
  });

  test('applies even if the server restarts meanwhile', async () => {
    const { world, skep, executions, sandboxId } = await started();
    const { id } = await executions.run('ann', sandboxId, request(['sleep'], { timeoutMs: 5000 }));
    await skep.shutdown();
    expect(await world.store.executions.find(id)).toMatchObject({ status: 'running' });
    world.clock.advance(5000);
    const next = await world.boot();
    await next.sweeper.sweep();
    const found = await until(() => world.store.executions.find(id), (record) => record?.status === 'exited', 60_000);
    expect(found).toMatchObject({ exitCode: 137, statusReason: { code: 'execution_timed_out' } });
  });

  test('ends a command in a frozen sandbox after a resume', async () => {
    const { world, skep, executions, sandboxId, ended } = await started();
    const { id } = await executions.run('ann', sandboxId, request(['sleep'], { timeoutMs: 5000 }));
    await skep.sandboxes.pause('ann', sandboxId, 'freeze');
    world.clock.advance(6000);
    await skep.sweeper.sweep();
    expect(await executions.get('ann', sandboxId, id)).toMatchObject({ status: 'running' });
    await skep.sandboxes.resume('ann', sandboxId);
    await skep.sweeper.sweep();
    expect(await ended(id)).toMatchObject({ status: 'exited', exitCode: 137 });
  });
});
