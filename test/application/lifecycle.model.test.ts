import fc from 'fast-check';
import { expect, test } from 'vitest';
import { isFailure } from '../../src/domain/failure.ts';
import { pauseKinds, type PauseKind } from '../../src/domain/sandbox.ts';
import { lifecycle } from '../../src/domain/sandbox-lifecycle.ts';
import { sandboxSpec } from '../../src/domain/sandbox-spec-defaults.ts';
import { calm, createWorld, type Fault, type Write } from './world.ts';

/*
 * Random sequences of calls by several clients at once, faults of the runtime, crashes of sandboxes and of Skep. After
 * each: every write was a move of the table, one generation on; and once the faults are over, everything is at rest,
 * records and facts agree, and nothing runs that no record owns.
 */

const spec = sandboxSpec({
  id: 'plain',
  ready: { probe: { kind: 'none' }, withinMs: 10_000 },
  rest: { freezeAfterMs: 30_000, stopAfterMs: 15_000, deleteAfterMs: 60_000 },
});

type Action =
  | { readonly kind: 'start' }
  | { readonly kind: 'pause'; readonly which: number; readonly pauseKind: PauseKind }
  | { readonly kind: 'resume' | 'delete' | 'crash' | 'vanish'; readonly which: number }
  | { readonly kind: 'fault'; readonly fault: Fault }
  | { readonly kind: 'restart' | 'sweep' }
  | { readonly kind: 'advance'; readonly ms: number };

const which = fc.nat(5);
const action: fc.Arbitrary<Action> = fc.oneof(
  { weight: 4, arbitrary: fc.constant({ kind: 'start' as const }) },
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('pause' as const), which, pauseKind: fc.constantFrom(...pauseKinds) }) },
  { weight: 8, arbitrary: fc.record({ kind: fc.constantFrom('resume', 'delete', 'crash', 'vanish' as const), which }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('fault' as const), fault: fc.record({ call: fc.constantFrom('start', 'freeze', 'stop', 'resume', 'remove', 'inspect', 'list' as const), when: fc.constantFrom('before', 'after' as const) }) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constantFrom('restart', 'sweep' as const) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('advance' as const), ms: fc.nat(12_000) }) },
);

/** Batches: what is in one batch is called at once. */
const scenario = fc.array(fc.array(action, { minLength: 1, maxLength: 4, size: 'max' }), { maxLength: 20, size: 'max' });

test('no sequence of calls, faults and crashes reaches a state that the table lacks, and all comes to rest', { timeout: 120_000 }, async () => {
  await fc.assert(fc.asyncProperty(scenario, play), { numRuns: 1500 });
});

async function play(batches: readonly (readonly Action[])[]): Promise<void> {
  const world = createWorld({ limits: { running: 4 }, specs: [spec] });
  const ids: string[] = [];
  const deleted = new Set<string>();
  let skep = world.boot();
  await skep.reconciler.start();

  /** Whatever a client is told is a success or one of the refusals; never a defect. */
  const tolerated = new Set(['sandbox_not_found', 'sandbox_busy', 'sandbox_not_running', 'sandbox_not_paused', 'sandbox_limit_reached', 'runtime_unavailable']);
  const told = async (call: () => Promise<unknown>): Promise<boolean> => {
    try {
      await call();
      return true;
    } catch (error) {
      if (!isFailure(error) || !tolerated.has(error.code)) throw error;
      return false;
    }
  };

  const act = async (action: Action): Promise<void> => {
    const { sandboxes } = skep;
    const id = 'which' in action ? ids[action.which % Math.max(1, ids.length)] : undefined;
    if ('which' in action && id === undefined) return;
    switch (action.kind) {
      case 'start':
        await told(async () => ids.push((await sandboxes.start('me', { specId: null })).id));
        return;
      case 'pause':
        await told(() => sandboxes.pause('me', id ?? '', action.pauseKind));
        return;
      case 'resume':
        await told(() => sandboxes.resume('me', id ?? ''));
        return;
      case 'delete':
        if (await told(() => sandboxes.delete('me', id ?? ''))) deleted.add(id ?? '');
        return;
      case 'crash':
        world.engine.crash(id ?? '');
        return;
      case 'vanish':
        world.engine.remove(id ?? '');
        return;
      case 'fault':
        world.faults.push(action.fault);
        return;
      case 'sweep':
        await skep.reconciler.sweep();
        return;
      case 'advance':
        world.clock.advance(action.ms);
        return;
      case 'restart': {
        const old = skep;
        skep = world.boot();
        await Promise.all([old.reconciler.close(), old.driver.close(), old.runtime.close()]);
        await skep.reconciler.start();
      }
    }
  };

  for (const batch of batches) {
    const acting = batch.map(act);
    await calm();
    world.clock.advance(1);
    await Promise.all(acting);
  }

  world.faults.length = 0;
  for (let sweeps = 0; sweeps < 4; sweeps += 1) {
    world.clock.advance(3000);
    await skep.reconciler.sweep();
    await calm();
  }
  for (const write of world.writes) expect(isMove(write), JSON.stringify(write)).toBe(true);
  const facts = new Map(world.engine.list().map((fact) => [fact.id, fact]));
  for (const id of ids) {
    const sandbox = await world.store.sandboxes.find(id);
    const state = facts.get(id)?.state ?? 'absent';
    if (sandbox === null || sandbox.deletedAt !== null) {
      expect(state, `${id} was deleted`).toBe('absent');
      continue;
    }
    expect(deleted.has(id), `${id} was deleted and is there`).toBe(false);
    expect(['RUNNING', 'PAUSED', 'ERROR', 'MISSING'], JSON.stringify(sandbox)).toContain(sandbox.status);
    expect(state === 'running', `${sandbox.status} ${state}`).toBe(sandbox.status === 'RUNNING');
    if (sandbox.status === 'PAUSED') expect(state).toBe(sandbox.pauseKind === 'freeze' ? 'frozen' : 'stopped');
  }
  const owned = new Set(ids);
  expect([...facts.keys()].filter((id) => !owned.has(id))).toEqual([]);
  const running = [...facts.values()].filter(({ state }) => state === 'running');
  expect(running.length).toBeLessThanOrEqual(4);
  await Promise.all([skep.reconciler.close(), skep.driver.close()]);
}

function isMove({ from, to }: Write): boolean {
  if (from === null) return to.status === 'STARTING' && to.generation === 1;
  if (to.generation !== from.generation + 1) return false;
  if (from.deletedAt !== null) return to.status === from.status && to.deletedAt === from.deletedAt;
  if (to.deletedAt !== null) return to.status === from.status;
  if (from.status === 'PAUSED' && to.status === 'PAUSED') return from.pauseKind === 'freeze' && to.pauseKind === 'stop';
  return Object.values(lifecycle[from.status]).includes(to.status as never);
}
