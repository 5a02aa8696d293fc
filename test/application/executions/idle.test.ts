import { describe, expect, test } from 'vitest';
import { Failure } from '../../../src/domain/failure.ts';
import { neverAborts } from '../../../src/ports/abort-signals.ts';
import { until } from '../../support/until.ts';
import { request, started } from './world.ts';

type Scene = Awaited<ReturnType<typeof started>>;

const status = async ({ skep, sandboxId }: Scene) => (await skep.sandboxes.get('ann', sandboxId)).status;

/** Advances the clock by the idle time, and applies every rule that is due. */
async function idleTime(scene: Scene): Promise<void> {
  scene.world.clock.advance(60_000);
  await scene.skep.sweeper.sweep();
}

describe('the idle rule', () => {
  test('freezes a sandbox if its execution writes nothing', async () => {
    const scene = await started({ freezeAfterMs: 60_000 });
    const { id } = await scene.executions.run('ann', scene.sandboxId, request(['sleep']));
    // Reads neither postpone the freeze nor resume the sandbox.
    const { lastActiveAt } = await scene.skep.sandboxes.get('ann', scene.sandboxId);
    scene.world.clock.advance(1000);
    await scene.executions.get('ann', scene.sandboxId, id);
    expect(await scene.skep.sandboxes.get('ann', scene.sandboxId)).toMatchObject({ lastActiveAt });
    await idleTime(scene);
    await until(() => status(scene), (now) => now === 'PAUSED', 60_000);
    await scene.executions.list('ann', scene.sandboxId, { after: null, limit: 1 });
    expect(await scene.executions.get('ann', scene.sandboxId, id)).toMatchObject({ status: 'running' });
    expect(await status(scene)).toBe('PAUSED');
  });

  test('does not freeze a sandbox until its execution has written nothing for the idle time', async () => {
    const scene = await started({ freezeAfterMs: 60_000 });
    const { id } = await scene.executions.run('ann', scene.sandboxId, request(['tick']));
    for (let times = 1; times <= 3; times += 1) {
      await until(() => scene.world.ticks.length, Boolean, 60_000);
      await scene.world.ticks[0]!();
      const before = (await scene.skep.sandboxes.get('ann', scene.sandboxId)).lastActiveAt;
      await idleTime(scene);
      const { lastActiveAt } = await until(() => scene.skep.sandboxes.get('ann', scene.sandboxId), (one) => one.lastActiveAt > before, 60_000);
      expect(lastActiveAt).toBe(scene.world.clock.now());
      expect(await status(scene)).toBe('RUNNING');
    }
    expect(await scene.get(id)).toMatchObject({ status: 'running', stdoutBytes: 15 });
    await idleTime(scene);
    await until(() => status(scene), (now) => now === 'PAUSED', 60_000);
  });

  const causes = [['sandbox', 'PAUSED'], ['docker', 'RUNNING']] as const;
  test.each(causes)('if no state of an execution is known because of its %s: %s', async (runtime, then) => {
    const scene = await started({ freezeAfterMs: 60_000 });
    await scene.executions.run('ann', scene.sandboxId, request(['sleep']));
    const reason = { code: 'execution_end_unknown' } as const;
    scene.world.faults.calls.set('state', { error: new Failure('runtime_unavailable', { runtime, reason, retryAfterSeconds: 5 }) });
    const other = await started({ freezeAfterMs: 60_000 });
    await idleTime(scene);
    await idleTime(other);
    await until(() => status(other), (now) => now === 'PAUSED', 60_000);
    await until(() => status(scene), (now) => now === then, 60_000);
  });

  test('counts output that a reader of the execution has seen first', async () => {
    const scene = await started({ freezeAfterMs: 60_000 });
    const { id } = await scene.executions.run('ann', scene.sandboxId, request(['tick']));
    await until(() => scene.world.ticks.length, Boolean, 60_000);
    scene.world.clock.advance(50_000);
    await scene.world.ticks[0]!();
    expect(await scene.get(id)).toMatchObject({ stdoutBytes: 5 });
    const { lastActiveAt } = await scene.skep.sandboxes.get('ann', scene.sandboxId);
    expect(lastActiveAt).toBe(scene.world.clock.now());
    scene.world.clock.advance(10_000);
    await scene.skep.sweeper.sweep();
    expect(await scene.skep.sandboxes.get('ann', scene.sandboxId)).toMatchObject({ status: 'RUNNING', lastActiveAt });
  });

  test('does not freeze a sandbox while input is written', async () => {
    const scene = await started({ freezeAfterMs: 15_000 });
    const { world: { clock }, executions, sandboxId } = scene;
    const { id } = await executions.run('ann', sandboxId, request(['cat'], { stdin: true }));
    const copied = (bytes: number) => until(() => scene.get(id), ({ stdoutBytes }) => stdoutBytes === bytes, 60_000);
    const input = new TransformStream<Uint8Array, Uint8Array>();
    const writing = executions.write('ann', sandboxId, id, input.readable, true, neverAborts);
    const writer = input.writable.getWriter();
    await writer.write(Uint8Array.of(1));
    await copied(1);
    clock.advance(10_000);
    const written = writer.write(Uint8Array.of(2));
    await until(() => scene.skep.sandboxes.get('ann', sandboxId), ({ lastActiveAt }) => lastActiveAt === clock.now(), 10_000);
    await written;
    await writer.close();
    await writing;
  });

  test('does not freeze a sandbox while an execution with a time limit runs', async () => {
    const scene = await started({ freezeAfterMs: 60_000 });
    const { id } = await scene.executions.run('ann', scene.sandboxId, request(['sleep'], { timeoutMs: 90_000 }));
    const before = (await scene.skep.sandboxes.get('ann', scene.sandboxId)).lastActiveAt;
    await idleTime(scene);
    await until(() => scene.skep.sandboxes.get('ann', scene.sandboxId), ({ lastActiveAt }) => lastActiveAt > before, 60_000);
    expect(await status(scene)).toBe('RUNNING');
    scene.world.clock.advance(30_000);
    await scene.ended(id);
    await idleTime(scene);
    await until(() => status(scene), (now) => now === 'PAUSED', 60_000);
  });
});
