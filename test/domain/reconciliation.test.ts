import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { decide, decideBlind } from '../../src/domain/reconciliation.ts';
import { newSandbox, pauseKinds, sandboxStatuses, type Sandbox } from '../../src/domain/sandbox.ts';
import type { SandboxFact } from '../../src/domain/sandbox-fact.ts';
import { deepen, lifecycle, markDeleted, markRemoved, move, next, type SandboxEvent } from '../../src/domain/sandbox-lifecycle.ts';
import { sandboxSpec } from '../../src/domain/sandbox-spec-defaults.ts';

const spec = sandboxSpec({ id: 'x', ready: { probe: { kind: 'none' }, withinMs: 1000 }, rest: { freezeAfterMs: 5000, stopAfterMs: 5000, deleteAfterMs: 5000 } });
const fresh = newSandbox({ id: 'sb-1', ownerId: 'me', spec, sessionApiKey: 'k', now: 0 });
const events = [...new Set(Object.values(lifecycle).flatMap((moves) => Object.keys(moves)))] as SandboxEvent[];

const facts = fc.record({
  id: fc.constant('sb-1'),
  state: fc.constantFrom('absent', 'created', 'running', 'frozen', 'stopped' as const),
  exposedUrls: fc.constant([]),
  detail: fc.option(fc.constant('why'), { nil: null }),
}) satisfies fc.Arbitrary<SandboxFact>;

const sandboxes = fc.record({
  status: fc.constantFrom(...sandboxStatuses),
  pauseKind: fc.constantFrom(...pauseKinds, null),
  deletedAt: fc.option(fc.nat(10_000), { nil: null }),
  statusSince: fc.nat(10_000),
  lastActiveAt: fc.nat(10_000),
}).map((fields): Sandbox => ({ ...fresh, ...fields }));

describe('the lifecycle', () => {
  test('is the table of the design', () => {
    expect(lifecycle).toEqual({
      STARTING: { ready: 'RUNNING', failed: 'ERROR', expired: 'ERROR' },
      RUNNING: { pause: 'PAUSING', crashed: 'ERROR', vanished: 'MISSING' },
      PAUSING: { paused: 'PAUSED', refused: 'RUNNING' },
      PAUSED: { resume: 'RESUMING', vanished: 'MISSING' },
      RESUMING: { ready: 'RUNNING', refused: 'PAUSED', failed: 'ERROR' },
      ERROR: {},
      MISSING: {},
    });
  });

  test('a move that the table lacks is none, and a deleted sandbox makes no move', () => {
    fc.assert(
      fc.property(sandboxes, fc.constantFrom(...events), (sandbox, event) => {
        const moved = move(sandbox, event, { now: 10, detail: null });
        const to = next(sandbox.status, event);
        if (sandbox.deletedAt !== null || to === null) {
          expect(moved).toBeNull();
          return;
        }
        expect(moved).toMatchObject({ status: to, generation: sandbox.generation + 1, statusSince: 10, updatedAt: 10 });
        if (to === 'RUNNING' || to === 'ERROR' || to === 'MISSING') expect(moved?.pauseKind).toBeNull();
      }),
    );
  });
});

describe('reconciliation', () => {
  test('whatever it records is a move of the table', () => {
    fc.assert(
      fc.property(sandboxes, facts, fc.nat(20_000), (sandbox, fact, now) => {
        for (const step of [decide(sandbox, fact, now), decideBlind(sandbox, now)]) {
          if (step.kind === 'record') expect(next(sandbox.status, step.event)).not.toBeNull();
        }
      }),
      { numRuns: 5000 },
    );
  });

  test('with a runtime that does what it is told, everything comes to rest, and the record and the fact agree', () => {
    fc.assert(
      fc.property(sandboxes, facts, fc.nat(20_000), (start, found, now) => {
        let sandbox: Sandbox = { ...start, pauseKind: start.status === 'PAUSED' || start.status === 'PAUSING' ? (start.pauseKind ?? 'freeze') : start.pauseKind };
        let fact: SandboxFact = found;
        for (let steps = 0; ; steps += 1) {
          expect(steps, JSON.stringify({ start, found, now, sandbox, fact })).toBeLessThan(12);
          const step = decide(sandbox, fact, now);
          if (step.kind === 'none') break;
          [sandbox, fact] = apply(sandbox, fact, step, now);
        }
        if (sandbox.deletedAt !== null) {
          expect([fact.state, sandbox.removedAt === null]).toEqual(['absent', false]);
          return;
        }
        expect(['RUNNING', 'PAUSED', 'ERROR', 'MISSING']).toContain(sandbox.status);
        const runs = fact.state === 'running';
        expect(runs).toBe(sandbox.status === 'RUNNING');
        if (sandbox.status === 'PAUSED') expect(fact.state === 'frozen').toBe(sandbox.pauseKind === 'freeze');
      }),
      { numRuns: 10_000 },
    );
  });
});

type Step = ReturnType<typeof decide>;

/** What a faultless driver and runtime make of the step. */
function apply(sandbox: Sandbox, fact: SandboxFact, step: Step, now: number): [Sandbox, SandboxFact] {
  const to = (state: SandboxFact['state']): [Sandbox, SandboxFact] => [sandbox, { ...fact, state }];
  switch (step.kind) {
    case 'none':
      return [sandbox, fact];
    case 'record':
      return [move(sandbox, step.event, { now, detail: step.detail, ...(step.pauseKind && { pauseKind: step.pauseKind }) }) ?? sandbox, fact];
    case 'deepen':
      return [deepen(sandbox, step.detail, now), fact];
    case 'delete':
      return [markDeleted(sandbox, now), fact];
    case 'forget':
      return [markRemoved(sandbox, now), fact];
    case 'await-ready':
      return [move(sandbox, 'ready', { now, detail: null }) ?? sandbox, fact];
    case 'launch':
    case 'resume':
      return to('running');
    case 'freeze':
      return to('frozen');
    case 'stop':
      return to('stopped');
    case 'remove':
      return to('absent');
  }
}
