import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  stopFrozen, lifecycle, markDeleted, markRemoved, move, next, relocate, requeue, type SandboxTransition, takeStartSlot,
} from '../../src/domain/sandbox-lifecycle.ts';
import { nextSandboxStep, stepWithoutRuntime, stepWithoutInspect } from '../../src/domain/sandbox-next-step.ts';
import { sandboxSpec } from '../../src/domain/sandbox-spec.ts';
import {
  absentSandbox, newSandbox, pauseKinds, type Sandbox, type ObservedSandbox, sandboxStatuses, unowned,
} from '../../src/domain/sandbox.ts';

const spec = sandboxSpec({ id: 'x', ready: { probe: { kind: 'none' }, withinMs: 1000 }, rest: { freezeAfterMs: 5000, stopAfterMs: 5000, deleteAfterMs: 5000, maxLifeMs: 18_000 } });
const fresh = newSandbox({ id: 'sb-1', ownerId: 'me', spec, sessionApiKey: 'k', now: 0 });
const events = [...new Set(Object.values(lifecycle).flatMap((moves) => Object.keys(moves)))] as SandboxTransition[];

const facts = fc.record({
  id: fc.constant('sb-1'),
  state: fc.constantFrom('absent', 'created', 'running', 'frozen', 'stopped' as const),
  exposedUrls: fc.constant([]),
  detail: fc.option(fc.constant('why'), { nil: null }),
  endedFromOutside: fc.boolean(),
}) satisfies fc.Arbitrary<ObservedSandbox>;

const sandboxes = fc.record({
  ownerId: fc.constantFrom('me', unowned),
  startingSince: fc.option(fc.nat(10_000), { nil: null }),
  status: fc.constantFrom(...sandboxStatuses),
  pauseKind: fc.constantFrom(...pauseKinds, null),
  deletedAt: fc.option(fc.nat(10_000), { nil: null }),
  statusSince: fc.nat(10_000),
  lastActiveAt: fc.nat(10_000),
}).map((fields): Sandbox => ({ ...fresh, ...fields }));

const of = (fields: Partial<Sandbox>): Sandbox => ({ ...fresh, startingSince: 0, ...fields });
const found = (fields: Partial<ObservedSandbox>): ObservedSandbox => ({ id: 'sb-1', state: 'stopped', exposedUrls: [], detail: null, endedFromOutside: false, ...fields });
const fromOutside = found({ endedFromOutside: true, detail: 'the engine was restarted' });
const resume = (pauseKind: 'freeze' | 'stop') => move(of({ status: 'PAUSED', pauseKind }), 'resume', { now: 5, detail: null }) ?? fresh;

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
        expect(moved).toMatchObject({ status: to, version: sandbox.version + 1, statusSince: 10, updatedAt: 10 });
        if (to === 'RUNNING' || to === 'ERROR' || to === 'MISSING') expect(moved?.pauseKind).toBeNull();
      }),
    );
  });
});

describe('reconciliation', () => {
  test('whatever it records is a move of the table', () => {
    fc.assert(
      fc.property(sandboxes, facts, fc.nat(20_000), (sandbox, fact, now) => {
        for (const step of [nextSandboxStep(sandbox, fact, now), stepWithoutRuntime(sandbox, now)]) {
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
        let fact: ObservedSandbox = found;
        for (let steps = 0; ; steps += 1) {
          expect(steps, JSON.stringify({ start, found, now, sandbox, fact })).toBeLessThan(12);
          const step = nextSandboxStep(sandbox, fact, now);
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


  test('a running one that was ended from outside goes by way of PAUSING to PAUSED, with the files; a crash is an ERROR', () => {
    const running = of({ status: 'RUNNING' });
    expect(nextSandboxStep(running, fromOutside, 1)).toMatchObject({ kind: 'record', event: 'pause', pauseKind: 'stop', by: 'runtime', detail: expect.stringContaining('the engine was restarted') });
    expect(nextSandboxStep(running, found({ detail: 'exited with code 3' }), 1)).toMatchObject({ kind: 'record', event: 'crashed', detail: 'exited with code 3' });
    const pausing = of({ status: 'PAUSING', pauseKind: 'stop', statusDetail: 'why' });
    expect(nextSandboxStep(pausing, fromOutside, 1)).toMatchObject({ kind: 'record', event: 'paused', pauseKind: 'stop', detail: 'why' });
    expect(nextSandboxStep(of({ status: 'PAUSED', pauseKind: 'freeze' }), fromOutside, 1)).toMatchObject({ kind: 'deepen' });
    expect(nextSandboxStep(of({ status: 'ERROR' }), fromOutside, 1)).toEqual({ kind: 'none' });
  });

  test('a start that was ended from outside is run again within its time, and no longer', () => {
    const starting = of({ status: 'STARTING' });
    expect(nextSandboxStep(starting, fromOutside, 999)).toEqual({ kind: 'resume' });
    expect(nextSandboxStep(starting, fromOutside, 1000)).toMatchObject({ kind: 'record', event: 'expired' });
    expect(nextSandboxStep(starting, found({}), 999)).toMatchObject({ kind: 'record', event: 'failed' });
    expect(nextSandboxStep(starting, found({ detail: 'exited with code 3' }), 1000), 'why it failed counts more than when').toMatchObject({ event: 'failed', detail: 'exited with code 3' });
  });

  test('the time of a start counts from its turn, and a runtime that does not answer makes it count', () => {
    const waiting = of({ status: 'STARTING', startingSince: null });
    expect(nextSandboxStep(waiting, absentSandbox('sb-1'), 17_000)).toEqual({ kind: 'take-turn' });
    expect(stepWithoutRuntime(waiting, 17_000)).toEqual({ kind: 'begin' });
    const begun = takeStartSlot(waiting, 17_000);
    expect(nextSandboxStep(begun, absentSandbox('sb-1'), 17_999)).toEqual({ kind: 'launch' });
    expect(stepWithoutRuntime(begun, 17_999)).toEqual({ kind: 'none' });
    expect(stepWithoutRuntime({ ...begun, createdAt: 9000 }, 18_000)).toMatchObject({ kind: 'record', event: 'expired' });
  });

  test('a frozen one is resumed without a turn, a stopped one after it, and a crash after that is an ERROR', () => {
    expect(nextSandboxStep(resume('freeze'), found({ state: 'frozen' }), 6)).toEqual({ kind: 'resume' });
    expect(nextSandboxStep(resume('stop'), found({}), 6)).toEqual({ kind: 'take-turn' });
    expect(nextSandboxStep(takeStartSlot(resume('stop'), 6), found({}), 7)).toEqual({ kind: 'resume' });
    expect(nextSandboxStep(takeStartSlot(resume('stop'), 6), found({}), 7, true)).toMatchObject({ kind: 'record', event: 'failed' });
    expect(nextSandboxStep(takeStartSlot(resume('stop'), 6), fromOutside, 7, true)).toEqual({ kind: 'resume' });
    for (const kind of ['freeze', 'stop'] as const) expect(nextSandboxStep(resume(kind), absentSandbox('sb-1'), 6)).toMatchObject({ kind: 'record', event: 'failed' });
    expect(nextSandboxStep(resume('freeze'), found({}), 6)).toMatchObject({ kind: 'requeue' });
  });

  test('whatever its status, what has lived long enough is deleted, even if the runtime does not answer; in a pool it is not', () => {
    fc.assert(
      fc.property(sandboxes, facts, (sandbox, fact) => {
        const steps = [nextSandboxStep(sandbox, fact, 18_000), stepWithoutRuntime(sandbox, 18_000)];
        for (const { kind } of steps) expect(kind === 'delete').toBe(sandbox.deletedAt === null && sandbox.ownerId === 'me');
      }),
    );
  });

  test('a running one that is reached elsewhere is written so', () => {
    const http = { name: 'HTTP', port: 80 };
    const running = of({ status: 'RUNNING', spec: { ...spec, ports: [http] }, exposedUrls: [{ ...http, url: 'http://127.0.0.1:1' }] });
    const at = (url: string) => nextSandboxStep(running, found({ state: 'running', exposedUrls: [{ ...http, url }] }), 1).kind;
    expect([at('http://127.0.0.1:1'), at('http://127.0.0.1:2'), nextSandboxStep(running, found({ state: 'running' }), 1).kind]).toEqual(['none', 'relocate', 'none']);
  });

  test('of several ports each counts, and nothing is concluded while the runtime knows only some of them', () => {
    const ports = [{ name: 'HTTP', port: 80 }, { name: 'TLS', port: 443 }];
    const urls = (...hosts: readonly number[]) => hosts.map((host, index) => ({ name: ports[index]?.name ?? '', port: ports[index]?.port ?? 0, url: `http://127.0.0.1:${host}` }));
    const running = of({ status: 'RUNNING', spec: { ...spec, ports }, exposedUrls: urls(1, 2) });
    const at = (...hosts: readonly number[]) => nextSandboxStep(running, found({ state: 'running', exposedUrls: urls(...hosts) }), 1).kind;
    expect([at(1, 2), at(1, 3), at(3, 2), at(2, 1), at(3)]).toEqual(['none', 'relocate', 'relocate', 'relocate', 'none']);
  });

  test('what has given up holds no process, not even a frozen one; its files stay', () => {
    for (const status of ['ERROR', 'MISSING'] as const) {
      const steps = (['running', 'frozen', 'stopped', 'created', 'absent'] as const).map((state) => nextSandboxStep(of({ status }), found({ state }), 1).kind);
      expect(steps).toEqual(['stop', 'stop', 'none', 'none', 'none']);
    }
  });

  test('what is paused and runs is put back into its own tier', () => {
    for (const pauseKind of ['freeze', 'stop'] as const) {
      expect(nextSandboxStep(of({ status: 'PAUSED', pauseKind }), found({ state: 'running' }), 1)).toEqual({ kind: pauseKind });
    }
  });

  test('a pause that is to stop is not content with what is frozen', () => {
    expect(nextSandboxStep(of({ status: 'PAUSING', pauseKind: 'stop' }), found({ state: 'frozen' }), 1)).toEqual({ kind: 'stop' });
    expect(nextSandboxStep(of({ status: 'PAUSING', pauseKind: 'freeze' }), found({ state: 'frozen' }), 1)).toMatchObject({ kind: 'record', event: 'paused', pauseKind: 'freeze' });
  });

  test('a pause is acted on before anything is looked at, in its own tier; and nothing else is, a deletion included', () => {
    fc.assert(
      fc.property(sandboxes, (sandbox) => {
        const pausing = sandbox.status === 'PAUSING' && sandbox.deletedAt === null;
        expect(stepWithoutInspect(sandbox)).toEqual(pausing ? { kind: sandbox.pauseKind ?? 'freeze' } : null);
      }),
    );
  });
});

type Step = ReturnType<typeof nextSandboxStep>;

/** What a faultless driver and runtime make of the step. */
function apply(sandbox: Sandbox, fact: ObservedSandbox, step: Step, now: number): [Sandbox, ObservedSandbox] {
  const to = (state: ObservedSandbox['state']): [Sandbox, ObservedSandbox] => [sandbox, { ...fact, state }];
  switch (step.kind) {
    case 'none':
      return [sandbox, fact];
    case 'record':
      return [move(sandbox, step.event, { now, detail: step.detail, ...(step.pauseKind && { pauseKind: step.pauseKind }) }) ?? sandbox, fact];
    case 'deepen':
      return [stopFrozen(sandbox, step.detail, now), fact];
    case 'delete':
      return [markDeleted(sandbox, step.detail, now), fact];
    case 'forget':
      return [markRemoved(sandbox, now), fact];
    case 'relocate':
      return [relocate(sandbox, fact.exposedUrls, now), fact];
    case 'requeue':
      return [requeue(sandbox, step.detail, now), fact];
    case 'begin':
    case 'take-turn':
      return [takeStartSlot(sandbox, now), fact];
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
