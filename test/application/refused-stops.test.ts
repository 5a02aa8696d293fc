import { describe, expect, test } from 'vitest';
import { sandboxSpec } from '../../src/domain/sandbox-spec.ts';
import { calm, createRunning } from './world.ts';

const slow = sandboxSpec({ id: 'slow', ports: [{ name: 'HTTP', port: 80 }], ready: { probe: { kind: 'tcp', port: 80 }, withinMs: 3000 } });

async function begun(spec = slow) {
  return await createRunning({ specs: [spec] });
}

const refusal = { code: 'failure', failure: 'runtime_unavailable' };

describe('a sandbox that the runtime does not stop', () => {
  test('reports `still_running` in ERROR, and its earlier reason after a later stop succeeds', async () => {
    const { engine, sandboxes, faults, id, refuse, pass } = await begun();
    engine.close('ready');
    const late = await sandboxes.start('me', { specId: null });
    await calm();
    refuse('stop', 3);
    await pass(3);
    const before = { code: 'not_ready_in_time', withinMs: 3000 };
    expect(await sandboxes.get('me', late.id)).toMatchObject({ status: 'ERROR', statusReason: { code: 'still_running', cause: refusal, before } });
    expect(engine.inspect(late.id).state).toBe('running');
    await pass(10);
    expect(faults.planned).toHaveLength(0);
    expect(engine.inspect(late.id).state).toBe('stopped');
    expect(await sandboxes.get('me', late.id)).toMatchObject({ status: 'ERROR', statusReason: before });
    expect(await sandboxes.get('me', id)).toMatchObject({ status: 'RUNNING' });
  });

  test.each(['freeze', 'stop'] as const)('reports `still_running` in PAUSED, and keeps who paused it (%s)', async (kind) => {
    const { engine, sandboxes, sweeper, id, refuse, pass } = await begun(sandboxSpec({ id: 'plain' }));
    await sandboxes.pause('me', id, 'freeze');
    if (kind === 'freeze') engine.thawFromOutside(id);
    refuse(kind, 2);
    if (kind === 'freeze') await sweeper.sweep();
    else await sandboxes.pause('me', id, 'stop').catch(() => {});
    await calm();
    const before = { code: 'paused_by_owner' };
    expect(await sandboxes.get('me', id)).toMatchObject({
      status: 'PAUSED', pauseKind: kind, statusReason: { code: 'still_running', cause: refusal, before }, pausedBy: { actor: 'user', reason: before },
    });
    await pass(4);
    expect(engine.inspect(id).state).toBe(kind === 'freeze' ? 'frozen' : 'stopped');
    expect(await sandboxes.get('me', id)).toMatchObject({ status: 'PAUSED', statusReason: before });
  });

  test('is retried with back-off even if the runtime reports no failure', async () => {
    const { engine, runtime, sandboxes, id, pass } = await begun(sandboxSpec({ id: 'plain' }));
    let stops = 0;
    Object.assign(runtime, { stop: async (one: string) => {
      stops += 1;
      return engine.inspect(one);
    } });
    await sandboxes.pause('me', id, 'freeze');
    await sandboxes.pause('me', id, 'stop').catch(() => {});
    engine.thawFromOutside(id);
    await pass(30);
    expect(stops).toBeGreaterThan(2);
    expect(stops).toBeLessThanOrEqual(6);
    expect(await sandboxes.get('me', id)).toMatchObject({ statusReason: { code: 'still_running', before: { code: 'paused_by_owner' } } });
  });
});
