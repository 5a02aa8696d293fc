import { expect, test } from 'vitest';
import { lastProbe, type ProbeMiss } from '../../src/domain/readiness.ts';
import { nextSandboxStep, stepWithoutRuntime } from '../../src/domain/sandbox-next-step.ts';
import { type ReadinessRule, sandboxSpec } from '../../src/domain/sandbox-spec.ts';
import { newSandbox } from '../../src/domain/sandbox.ts';

const http: ReadinessRule = { probe: { kind: 'http', port: 8000, path: '/health?key=s3cret' }, withinMs: 60_000 };
const tcp: ReadinessRule = { probe: { kind: 'tcp', port: 22 }, withinMs: 60_000 };

test.each<[ReadinessRule, ProbeMiss, string]>([
  [http, { kind: 'answered', status: 503 }, 'the last probe of http port 8000 /health: answered 503'],
  [http, { kind: 'refused' }, 'the last probe of http port 8000 /health: connection refused'],
  [tcp, { kind: 'silent', withinMs: 2000 }, 'the last probe of tcp port 22: no answer within 2 s'],
  [tcp, { kind: 'failed', reason: 'its host can not be reached' }, 'the last probe of tcp port 22: its host can not be reached'],
  [tcp, { kind: 'unexposed' }, 'the last probe of tcp port 22: the port is not exposed'],
])('%j %j is told as: %s', (rule, miss, words) => {
  expect(lastProbe(rule, miss)).toBe(words);
});

test('what is too late says what was told last; one that was only frozen, and one whose runtime is silent, say what that is', () => {
  const spec = sandboxSpec({ id: 'x', ready: http });
  const fresh = { ...newSandbox({ id: 'sb-1', ownerId: 'me', spec, sessionApiKey: 'k', now: 0 }), startingSince: 0, statusDetail: 'seen' };
  const fact = { id: 'sb-1', state: 'running', exposedUrls: [], detail: null, endedFromOutside: false } as const;
  const resuming = { ...fresh, status: 'RESUMING' } as const;
  expect(nextSandboxStep(fresh, fact, 60_000)).toMatchObject({ event: 'expired', detail: 'it was not ready within 60 s; seen' });
  expect(nextSandboxStep({ ...fresh, statusDetail: null }, fact, 60_000)).toMatchObject({ detail: 'it was not ready within 60 s' });
  expect(nextSandboxStep({ ...resuming, pauseKind: 'stop' }, fact, 60_000)).toMatchObject({ event: 'failed', detail: 'it was not ready within 60 s; seen' });
  expect(nextSandboxStep({ ...resuming, pauseKind: 'freeze' }, fact, 60_000)).toMatchObject({ event: 'failed', detail: 'it was not ready within 60 s' });
  expect(stepWithoutRuntime(fresh, 60_000)).toMatchObject({ detail: 'it was not ready within 60 s; its runtime does not answer' });
  // Whatever is found to have ended is told as that, and not as late.
  expect(nextSandboxStep(fresh, { ...fact, state: 'stopped', detail: 'exited with code 3' }, 60_000)).toMatchObject({ event: 'failed', detail: 'exited with code 3' });
});
