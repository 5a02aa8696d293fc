import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { lifecycle, applyTransition, beginStartTimeLimit, nextStatus, type SandboxTransition } from '../../src/domain/sandbox-lifecycle.ts';
import { nextSandboxStep, stepWithoutInspect } from '../../src/domain/sandbox-next-step.ts';
import { sandboxSpec } from '../../src/domain/sandbox-spec.ts';
import {
  absentSandbox, newSandbox, pauseKinds, type Sandbox, type ObservedSandbox, type ObservedState, sandboxStatuses, unowned,
} from '../../src/domain/sandbox.ts';

const spec = sandboxSpec({ id: 'x', ready: { probe: { kind: 'none' }, withinMs: 1000 }, rest: { freezeAfterMs: 5000, stopAfterMs: 5000, deleteAfterMs: 5000, maxLifeMs: 18_000 } });
const timed = { ...spec, rest: { ...spec.rest, timeoutPause: { kind: 'stop', afterMs: 3000 } } } as const;
const fresh = newSandbox({ id: 'sb-1', ownerId: 'me', spec, sessionApiKey: 'k', now: 0 });
const events = [...new Set(Object.values(lifecycle).flatMap((moves) => Object.keys(moves)))] as SandboxTransition[];

const facts = fc.record({
  id: fc.constant('sb-1'),
  state: fc.constantFrom('absent', 'created', 'running', 'frozen', 'stopped' as const),
  exposedUrls: fc.constant([]),
  reason: fc.option(fc.constant({ code: 'explained', message: 'why' } as const), { nil: null }),
  endedFromOutside: fc.boolean(),
}) satisfies fc.Arbitrary<ObservedSandbox>;

const sandboxes = fc.record({
  ownerId: fc.constantFrom('me', unowned),
  spec: fc.constantFrom(spec, timed),
  startingSince: fc.option(fc.nat(10_000), { nil: null }),
  status: fc.constantFrom(...sandboxStatuses),
  pauseKind: fc.constantFrom(...pauseKinds, null),
  deletedAt: fc.option(fc.nat(10_000), { nil: null }),
  statusSince: fc.nat(10_000),
  lastActiveAt: fc.nat(10_000),
}).map((fields): Sandbox => ({ ...fresh, ...fields }));

const of = (fields: Partial<Sandbox>): Sandbox => ({ ...fresh, startingSince: 0, ...fields });
const found = (fields: Partial<ObservedSandbox>): ObservedSandbox => ({ id: 'sb-1', state: 'stopped', exposedUrls: [], reason: null, endedFromOutside: false, ...fields });
const exited3 = { code: 'process_exited', exitCode: 3, signal: null, program: null } as const;
const fromOutside = found({ endedFromOutside: true, reason: { code: 'host_restarted' } });
const resume = (pauseKind: 'freeze' | 'stop') => applyTransition(of({ status: 'PAUSED', pauseKind }), 'resume', 'user', { now: 5, reason: null }) ?? fresh;

describe('the lifecycle', () => {
  test('has exactly these transitions', () => {
    expect(lifecycle).toEqual({
      STARTING: { ready: 'RUNNING', failed: 'ERROR' },
      RUNNING: { pause: 'PAUSING', crashed: 'ERROR', vanished: 'MISSING' },
      PAUSING: { paused: 'PAUSED', refused: 'RUNNING', vanished: 'MISSING' },
      PAUSED: { resume: 'RESUMING', vanished: 'MISSING' },
      RESUMING: { ready: 'RUNNING', refused: 'PAUSED', failed: 'ERROR' },
      ERROR: { resume: 'RESUMING' },
      MISSING: { resume: 'RESUMING' },
    });
  });

  test('allows only transitions of the table, and none for a deleted sandbox', () => {
    fc.assert(
      fc.property(sandboxes, fc.constantFrom(...events), (sandbox, event) => {
        const moved = applyTransition(sandbox, event, 'skep', { now: 10, reason: null });
        const to = nextStatus(sandbox.status, event);
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
  test('pauses a sandbox at the end of its timeout even if it is in use', () => {
    const running = of({ status: 'RUNNING', spec: timed, lastActiveAt: 3000 });
    const step = (now: number) => nextSandboxStep(running, found({ state: 'running' }), now, { isInUse: true });
    expect(step(2999)).toEqual({ kind: 'none' });
    expect(step(3000)).toMatchObject({ kind: 'write', by: 'skep', to: { status: 'PAUSING', pauseKind: 'stop', statusReason: { code: 'timeout_over' } } });
  });

  test.each([
    ['begins when the sandbox runs', 5000, null, { afterMs: 11_000, isRenewed: true }],
    ['is the one that a client has set meanwhile', 5000, 7000, { afterMs: 7000, isRenewed: false }],
    ['does not begin if the record has none', undefined, null, { afterMs: null, isRenewed: false }],
  ])('after a resumption, the timeout %s', (_, renewedMs, setMs, expected) => {
    const withTimeout = (state: { afterMs: number | null; isRenewed: boolean }) =>
      ({ ...spec, rest: { ...spec.rest, timeoutPause: { kind: 'stop', renewedMs, ...state } } } as const);
    for (const status of ['PAUSED', 'ERROR', 'MISSING'] as const) {
      const paused = of({ status, createdAt: 0, spec: withTimeout({ afterMs: 3000, isRenewed: true }) });
      const resuming = applyTransition(paused, 'resume', 'user', { now: 4000, reason: null });
      expect(resuming?.spec).toEqual(withTimeout({ afterMs: null, isRenewed: false }));
      const running = applyTransition({ ...paused, ...resuming, spec: withTimeout({ afterMs: setMs, isRenewed: false }) }, 'ready', 'runtime', { now: 6000, reason: null });
      expect(running?.spec).toEqual(withTimeout(expected));
    }
  });

  test('writes only statuses that the lifecycle table allows', () => {
    fc.assert(
      fc.property(sandboxes, facts, fc.nat(20_000), (sandbox, observed, now) => {
        for (const step of [nextSandboxStep(sandbox, observed, now), nextSandboxStep(sandbox, null, now)]) {
          if (step.kind !== 'write' || step.to.status === sandbox.status) continue;
          const reachable = events.map((event) => nextStatus(sandbox.status, event));
          expect(reachable).toContain(step.to.status);
        }
      }),
      { numRuns: 5000 },
    );
  });

  test('ends in a stable status that agrees with the runtime, if the runtime never fails', () => {
    fc.assert(
      fc.property(sandboxes, facts, fc.nat(20_000), (start, found, now) => {
        let sandbox: Sandbox = { ...start, pauseKind: start.status === 'PAUSED' || start.status === 'PAUSING' ? (start.pauseKind ?? 'freeze') : start.pauseKind };
        let observed: ObservedSandbox = found;
        for (let steps = 0; ; steps += 1) {
          expect(steps, JSON.stringify({ start, found, now, sandbox, observed })).toBeLessThan(12);
          const step = nextSandboxStep(sandbox, observed, now);
          if (step.kind === 'none') break;
          [sandbox, observed] = apply(sandbox, observed, step, now);
        }
        if (sandbox.deletedAt !== null) {
          expect([observed.state, sandbox.removedAt === null]).toEqual(['absent', false]);
          return;
        }
        expect(['RUNNING', 'PAUSED', 'ERROR', 'MISSING']).toContain(sandbox.status);
        const runs = observed.state === 'running';
        expect(runs).toBe(sandbox.status === 'RUNNING');
        if (sandbox.status === 'PAUSED') expect(observed.state === 'frozen').toBe(sandbox.pauseKind === 'freeze');
      }),
      { numRuns: 10_000 },
    );
  });


  test('ends a start or resumption as too late only after its whole time limit in the server that decides', () => {
    fc.assert(
      fc.property(sandboxes, fc.option(facts, { nil: null }), fc.nat(20_000), fc.nat(20_000), (sandbox, observed, now, watchedSince) => {
        const step = nextSandboxStep(sandbox, observed, now, { watchedSince });
        if (step.kind !== 'write' || step.to.statusReason?.code !== 'not_ready_in_time') return;
        expect(sandbox.startingSince).toBeGreaterThanOrEqual(watchedSince);
        expect(now - (sandbox.startingSince ?? now)).toBeGreaterThanOrEqual(spec.ready.withinMs);
      }),
      { numRuns: 5000 },
    );
  });

  test('begins the time limit of an earlier server anew: with a start slot, or at once if the processes exist', () => {
    const starting = of({ status: 'STARTING', statusReason: { code: 'starting_command' } });
    const now = 6001;
    const next = (sandbox: Sandbox, state: ObservedState) => nextSandboxStep(sandbox, found({ state, endedFromOutside: true }), now, { watchedSince: 6000 });
    for (const state of ['absent', 'created', 'stopped'] as const) expect(next(starting, state)).toEqual({ kind: 'take-start-slot' });
    expect(next(resume('stop'), 'stopped')).toEqual({ kind: 'take-start-slot' });
    const begun = { startingSince: now };
    for (const state of ['running', 'frozen'] as const) {
      expect(next(starting, state)).toMatchObject({ kind: 'write', by: null, to: { ...begun, status: 'STARTING', statusReason: { code: 'starting_command' } } });
    }
    expect(next(resume('stop'), 'running')).toMatchObject({ kind: 'write', to: begun });
    expect(next(resume('freeze'), 'frozen')).toMatchObject({ kind: 'write', to: begun });
    expect(next(resume('freeze'), 'running')).toMatchObject({ to: { status: 'RUNNING' } });
    expect(nextSandboxStep(starting, null, now, { watchedSince: 6000 })).toMatchObject({ kind: 'write', to: begun });
  });

  test('pauses a RUNNING sandbox that was stopped outside Skep, and sets ERROR after a crash', () => {
    const running = of({ status: 'RUNNING' });
    expect(nextSandboxStep(running, fromOutside, 1)).toMatchObject({ by: 'runtime', to: { status: 'PAUSING', pauseKind: 'stop', statusReason: { code: 'ended_outside', cause: { code: 'host_restarted' } } } });
    expect(nextSandboxStep(running, found({ reason: exited3 }), 1)).toMatchObject({ to: { status: 'ERROR', statusReason: exited3 } });
    const pausing = of({ status: 'PAUSING', pauseKind: 'stop', statusReason: { code: 'paused_by_owner' } });
    expect(nextSandboxStep(pausing, fromOutside, 1)).toMatchObject({ to: { status: 'PAUSED', pauseKind: 'stop', statusReason: { code: 'paused_by_owner' } } });
    expect(nextSandboxStep(of({ status: 'PAUSED', pauseKind: 'freeze' }), fromOutside, 1)).toMatchObject({ to: { status: 'PAUSED', pauseKind: 'stop' } });
    expect(nextSandboxStep(of({ status: 'ERROR' }), fromOutside, 1)).toEqual({ kind: 'none' });
  });

  test('runs a start again that was stopped outside Skep, until its deadline', () => {
    const starting = of({ status: 'STARTING' });
    expect(nextSandboxStep(starting, fromOutside, 999)).toEqual({ kind: 'resume' });
    expect(nextSandboxStep(starting, fromOutside, 1000)).toMatchObject({ to: { status: 'ERROR', statusReason: { code: 'not_ready_in_time' } } });
    expect(nextSandboxStep(starting, found({}), 999)).toMatchObject({ to: { status: 'ERROR' } });
    expect(nextSandboxStep(starting, found({ reason: exited3 }), 1000), 'why it failed counts more than when').toMatchObject({ to: { status: 'ERROR', statusReason: exited3 } });
  });

  test('counts the deadline of a start from its start slot, or from when the runtime does not answer', () => {
    const waiting = of({ status: 'STARTING', startingSince: null });
    expect(nextSandboxStep(waiting, absentSandbox('sb-1'), 17_000)).toEqual({ kind: 'take-start-slot' });
    expect(nextSandboxStep(waiting, null, 17_000)).toMatchObject({ kind: 'write', to: { status: 'STARTING', startingSince: 17_000 }, by: null });
    const begun = beginStartTimeLimit(waiting, 17_000);
    expect(nextSandboxStep(begun, absentSandbox('sb-1'), 17_999)).toEqual({ kind: 'launch' });
    expect(nextSandboxStep(begun, null, 17_999)).toEqual({ kind: 'none' });
    expect(nextSandboxStep({ ...begun, createdAt: 9000 }, null, 18_000)).toMatchObject({ to: { status: 'ERROR', statusReason: { code: 'not_ready_in_time' } } });
  });

  test('resumes a frozen sandbox without a start slot, and a stopped sandbox only with one', () => {
    expect(nextSandboxStep(resume('freeze'), found({ state: 'frozen' }), 6)).toEqual({ kind: 'resume' });
    expect(nextSandboxStep(resume('stop'), found({}), 6)).toEqual({ kind: 'take-start-slot' });
    expect(nextSandboxStep(beginStartTimeLimit(resume('stop'), 6), found({}), 7)).toEqual({ kind: 'resume' });
    expect(nextSandboxStep(beginStartTimeLimit(resume('stop'), 6), found({}), 7, { rerun: true })).toMatchObject({ to: { status: 'ERROR' } });
    expect(nextSandboxStep(beginStartTimeLimit(resume('stop'), 6), fromOutside, 7, { rerun: true })).toEqual({ kind: 'resume' });
    for (const kind of ['freeze', 'stop'] as const) expect(nextSandboxStep(resume(kind), absentSandbox('sb-1'), 6)).toMatchObject({ to: { status: 'ERROR' } });
    expect(nextSandboxStep(resume('freeze'), found({}), 6)).toMatchObject({ kind: 'write', to: { status: 'RESUMING', pauseKind: 'stop', startingSince: null } });
  });

  test('sets ERROR if the resume of an ERROR or MISSING sandbox fails', () => {
    for (const status of ['ERROR', 'MISSING'] as const) {
      const resuming = applyTransition(of({ status, statusReason: { code: 'vanished' } }), 'resume', 'user', { now: 5, reason: null, pauseKind: 'stop' });
      expect(resuming).toMatchObject({ status: 'RESUMING', startingSince: null, pausedBy: { actor: 'runtime', reason: { code: 'vanished' }, hasFailed: true } });
      expect(nextSandboxStep(beginStartTimeLimit(resuming ?? fresh, 6), found({}), 7)).toEqual({ kind: 'resume' });
      expect(nextSandboxStep(resuming ?? fresh, absentSandbox('sb-1'), 7)).toMatchObject({ to: { status: 'ERROR', pausedBy: null } });
    }
  });

  test('deletes owned sandboxes at the end of their life in any status, and no pool members', () => {
    fc.assert(
      fc.property(sandboxes, facts, (sandbox, observed) => {
        const steps = [nextSandboxStep(sandbox, observed, 18_000), nextSandboxStep(sandbox, null, 18_000)];
        for (const step of steps) {
          const deletes = step.kind === 'write' && sandbox.deletedAt === null && step.to.deletedAt !== null;
          expect(deletes).toBe(sandbox.deletedAt === null && sandbox.ownerId === 'me');
        }
      }),
    );
  });

  test('writes the new URL of a port if the runtime reports another one', () => {
    const http = { name: 'HTTP', port: 80 };
    const running = of({ status: 'RUNNING', spec: { ...spec, ports: [http] }, exposedUrls: [{ ...http, url: 'http://127.0.0.1:1' }] });
    const at = (url: string) => nextSandboxStep(running, found({ state: 'running', exposedUrls: [{ ...http, url }] }), 1).kind;
    expect([at('http://127.0.0.1:1'), at('http://127.0.0.1:2'), nextSandboxStep(running, found({ state: 'running' }), 1).kind]).toEqual(['none', 'write', 'none']);
  });

  test('writes new URLs if any port has a new one, but not if the runtime reports only some ports', () => {
    const ports = [{ name: 'HTTP', port: 80 }, { name: 'TLS', port: 443 }];
    const urls = (...hosts: readonly number[]) => hosts.map((host, index) => ({ name: ports[index]?.name ?? '', port: ports[index]?.port ?? 0, url: `http://127.0.0.1:${host}` }));
    const running = of({ status: 'RUNNING', spec: { ...spec, ports }, exposedUrls: urls(1, 2) });
    const at = (...hosts: readonly number[]) => nextSandboxStep(running, found({ state: 'running', exposedUrls: urls(...hosts) }), 1).kind;
    expect([at(1, 2), at(1, 3), at(3, 2), at(2, 1), at(3)]).toEqual(['none', 'write', 'write', 'write', 'none']);
  });

  test('stops running and frozen processes of an ERROR or MISSING sandbox, and keeps its files', () => {
    for (const status of ['ERROR', 'MISSING'] as const) {
      const steps = (['running', 'frozen', 'stopped', 'created', 'absent'] as const).map((state) => nextSandboxStep(of({ status }), found({ state }), 1).kind);
      expect(steps).toEqual(['stop', 'stop', 'none', 'none', 'none']);
    }
  });

  test('learns later that an ERROR sandbox ran out of memory, and keeps the details of its end', () => {
    const exit = { exitCode: 137, signal: 'SIGKILL' } as const;
    const ended = of({ status: 'ERROR', statusReason: { code: 'process_exited', ...exit, program: 'sh', phase: 'running', output: 'full' } });
    const reported = found({ state: 'stopped', reason: { code: 'out_of_memory', ...exit } });
    const step = nextSandboxStep(ended, reported, 1);
    const statusReason = { code: 'out_of_memory', ...exit, phase: 'running', output: 'full' };
    expect(step).toEqual({ kind: 'write', by: null, to: { ...ended, version: ended.version + 1, updatedAt: 1, statusReason } });
    expect(step.kind === 'write' && nextSandboxStep(step.to, reported, 2)).toEqual({ kind: 'none' });
  });

  test('freezes or stops a PAUSED sandbox again if it runs', () => {
    for (const pauseKind of ['freeze', 'stop'] as const) {
      expect(nextSandboxStep(of({ status: 'PAUSED', pauseKind }), found({ state: 'running' }), 1)).toEqual({ kind: pauseKind });
    }
  });

  test('stops a frozen sandbox if the pause asks for a stop', () => {
    expect(nextSandboxStep(of({ status: 'PAUSING', pauseKind: 'stop' }), found({ state: 'frozen' }), 1)).toEqual({ kind: 'stop' });
    expect(nextSandboxStep(of({ status: 'PAUSING', pauseKind: 'freeze' }), found({ state: 'frozen' }), 1)).toMatchObject({ to: { status: 'PAUSED', pauseKind: 'freeze' } });
  });

  test('freezes or stops a PAUSING sandbox without an inspect, and needs an inspect for all else', () => {
    fc.assert(
      fc.property(sandboxes, (sandbox) => {
        const pausing = sandbox.status === 'PAUSING' && sandbox.deletedAt === null;
        expect(stepWithoutInspect(sandbox, true)).toEqual(pausing ? { kind: sandbox.pauseKind ?? 'freeze' } : null);
      }),
    );
  });
});

type Step = ReturnType<typeof nextSandboxStep>;

/** Returns the record and the observed state after the step, if neither reconciler nor runtime fails. */
function apply(sandbox: Sandbox, observed: ObservedSandbox, step: Step, now: number): [Sandbox, ObservedSandbox] {
  const to = (state: ObservedState): [Sandbox, ObservedSandbox] => [sandbox, { ...observed, state }];
  switch (step.kind) {
    case 'none':
      return [sandbox, observed];
    case 'write':
      return [step.to, observed];
    case 'take-start-slot':
      return [beginStartTimeLimit(sandbox, now), observed];
    case 'await-ready':
      return [applyTransition(sandbox, 'ready', 'runtime', { now, reason: null }) ?? sandbox, observed];
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
