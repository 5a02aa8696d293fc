import { expect, test } from 'vitest';
import { type ProbeMiss, probeMissed } from '../../src/domain/readiness.ts';
import type { Reason } from '../../src/domain/reason.ts';
import { nextSandboxStep } from '../../src/domain/sandbox-next-step.ts';
import { type ReadinessRule, sandboxSpec } from '../../src/domain/sandbox-spec.ts';
import { newSandbox } from '../../src/domain/sandbox.ts';

const http: ReadinessRule = { probe: { kind: 'http', port: 8000, path: '/health?key=s3cret' }, withinMs: 60_000 };
const tcp: ReadinessRule = { probe: { kind: 'tcp', port: 22 }, withinMs: 60_000 };
const miss: ProbeMiss = { kind: 'answered', status: 503 };

const late = (seen: Reason | null) => ({ code: 'not_ready_in_time', withinMs: 60_000, last: seen });

test('the reason of a missed probe contains the path without its query', () => {
  expect(probeMissed(http, miss)).toEqual({ code: 'probe_missed', probe: 'http', port: 8000, path: '/health', miss });
  expect(probeMissed(tcp, miss)).toEqual({ code: 'probe_missed', probe: 'tcp', port: 22, path: null, miss });
  expect(probeMissed({ probe: { kind: 'none' }, withinMs: 1 }, miss)).toBeNull();
});

test('a start that is not ready in time reports its last progress; after a freeze it is paused again', () => {
  const last: Reason = { code: 'starting_command' };
  const spec = sandboxSpec({ id: 'x', ready: http });
  const fresh = { ...newSandbox({ id: 'sb-1', ownerId: 'me', spec, sessionApiKey: 'k', now: 0 }), startingSince: 0, statusReason: last };
  const observed = { id: 'sb-1', state: 'running', exposedUrls: [], reason: null, endedFromOutside: false } as const;
  const resuming = { ...fresh, status: 'RESUMING' } as const;
  expect(nextSandboxStep(fresh, observed, 60_000)).toMatchObject({ to: { status: 'ERROR', statusReason: late(last) } });
  expect(nextSandboxStep({ ...fresh, statusReason: null }, observed, 60_000)).toMatchObject({ to: { statusReason: late(null) } });
  expect(nextSandboxStep({ ...resuming, pauseKind: 'stop' }, observed, 60_000)).toMatchObject({ to: { status: 'ERROR', statusReason: late(last) } });
  const frozen = { ...observed, state: 'frozen' } as const;
  const thawing = { ...resuming, pauseKind: 'freeze', pausedBy: { actor: 'user', reason: null, version: 2, since: 1 } } as const;
  const paused = { status: 'PAUSED', pauseKind: 'freeze', statusReason: late(null), pausedBy: { since: 1 } };
  expect(nextSandboxStep(thawing, frozen, 60_000)).toMatchObject({ to: paused });
  expect(nextSandboxStep(thawing, observed, 60_000)).toMatchObject({ to: { status: 'RUNNING' } });
  // One that ran nevertheless is frozen again, and its record says no longer that it did not run.
  const ran = nextSandboxStep({ ...thawing, status: 'PAUSED' }, observed, 60_000);
  expect(ran).toMatchObject({ kind: 'write', to: { status: 'PAUSED', pausedBy: { actor: 'user', reason: null, version: 2 } } });
  expect(ran.kind === 'write' && ran.to.pausedBy?.since).toBeUndefined();
  expect(ran.kind === 'write' && nextSandboxStep(ran.to, observed, 60_000)).toEqual({ kind: 'freeze' });
  expect(nextSandboxStep(fresh, null, 60_000)).toMatchObject({ to: { statusReason: late({ code: 'runtime_silent' }) } });
  // A sandbox that ended reports that, even if it is late.
  const exited: Reason = { code: 'process_exited', exitCode: 3, signal: null, program: null };
  expect(nextSandboxStep(fresh, { ...observed, state: 'stopped', reason: exited }, 60_000)).toMatchObject({ to: { status: 'ERROR', statusReason: exited } });
});
