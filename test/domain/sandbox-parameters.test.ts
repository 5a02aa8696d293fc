import { describe, expect, test } from 'vitest';
import { poolFingerprint } from '../../src/domain/pool-plan.ts';
import { parameterProblems, type SandboxParameters, applyParameters } from '../../src/domain/sandbox-parameters.ts';
import { sandboxSpec } from '../../src/domain/sandbox-spec.ts';

const spec = sandboxSpec({
  id: 'node', initialEnv: { CI: '1', LEVEL: '1' }, secrets: ['DATABASE_URL'], allowedSecrets: ['NPM_TOKEN'], ports: [{ name: 'HTTP', port: 80 }],
  rest: { freezeAfterMs: 5, stopAfterMs: 6, deleteAfterMs: 7, maxLifeMs: 60_000 },
});

describe('the spec of a sandbox', () => {
  test('is the given spec with the parameters of the start', () => {
    const own = applyParameters(spec, { env: { LEVEL: '2', NEW: '' }, timeoutMs: 1000, resources: { cpus: 0.5 }, secrets: ['NPM_TOKEN', 'DATABASE_URL'] });
    expect(own).toEqual({
      ...spec,
      initialEnv: { CI: '1', LEVEL: '2', NEW: '' },
      secrets: ['DATABASE_URL', 'NPM_TOKEN'],
      resources: { ...spec.resources, cpus: 0.5 },
      rest: { ...spec.rest, maxLifeMs: 1000 },
    });
  });

  test('has the timeout as a pause, with the maximum life of the spec, if the start asks for it', () => {
    const { rest } = applyParameters(spec, { timeoutMs: 1000, pauseAtTimeout: { kind: 'freeze', wakesOnAccess: true } });
    expect(rest).toEqual({ ...spec.rest, timeoutPause: { kind: 'freeze', wakesOnAccess: true, afterMs: 1000 } });
  });

  test.each<[string, SandboxParameters]>([['nothing', {}], ['metadata', { metadata: { task: '7' } }]])('is the given spec itself if the start asks for %s', (_, parameters) => {
    expect(applyParameters(spec, parameters)).toBe(spec);
  });

  test.each<[string, boolean, SandboxParameters]>([
    ['a time limit', true, { timeoutMs: 1000 }],
    ['the values of the spec', true, { env: { CI: '1' }, resources: { cpus: 2 }, secrets: ['DATABASE_URL'] }],
    ['a new variable', false, { env: { NEW: '' } }],
    ['less memory', false, { resources: { memoryBytes: 2 ** 20 } }],
    ['a secret', false, { secrets: ['NPM_TOKEN'] }],
  ])('with %s has the same fingerprint as pool members: %s', (_, isSame, parameters) => {
    expect(poolFingerprint(applyParameters(spec, parameters)) === poolFingerprint(spec)).toBe(isSame);
  });
});

const problemsOf = (parameters: SandboxParameters, of = spec, limitsResources = true) => parameterProblems(of, parameters, { limitsResources });

describe('parameterProblems', () => {
  test('accepts parameters within the limits of the spec', () => {
    expect(problemsOf({ env: { CI: '0' }, metadata: { a: 'b' }, timeoutMs: 60_000, resources: { cpus: 2, memoryBytes: 2 ** 31, pids: 512 }, secrets: ['NPM_TOKEN'] })).toEqual([]);
    expect(problemsOf({ timeoutMs: 60_001 }, sandboxSpec({ id: 'free' }))).toEqual([]);
  });

  test('rejects variables that Skep sets, and variables of secrets', () => {
    const names = ['SESSION_API_KEY', 'SKEP_SANDBOX_ID', 'PORT', 'DATABASE_URL', 'NPM_TOKEN'];
    const env = Object.fromEntries(names.map((name) => [name, 'x']));
    expect(problemsOf({ env, secrets: ['NPM_TOKEN'] })).toEqual([{ argument: 'env', reason: { code: 'env_reserved', names } }]);
    expect(problemsOf({ env: { PORT: '80' } }, sandboxSpec({ id: 'no-port' }))).toEqual([]);
  });

  test('rejects values that look like credentials without showing them, unless the spec allows them', () => {
    const env = { GIT_URL: 'https://me:hunter2@example.org/x', CI: '1' };
    const problems = problemsOf({ env });
    expect(problems).toEqual([{ argument: 'env', reason: { code: 'env_credential', names: ['GIT_URL'] } }]);
    expect(JSON.stringify(problems)).not.toContain('hunter2');
    expect(problemsOf({ env }, { ...spec, allowPlainSecrets: true })).toEqual([]);
  });

  test('rejects secrets that the spec does not name', () => {
    const reason = { code: 'secrets_not_allowed', names: ['SKEP_API_KEY', 'PATH'], allowed: ['DATABASE_URL', 'NPM_TOKEN'] };
    expect(problemsOf({ secrets: ['SKEP_API_KEY', 'NPM_TOKEN', 'PATH'] })).toEqual([{ argument: 'secrets', reason }]);
  });

  test('rejects a longer life than the spec allows', () => {
    expect(problemsOf({ timeoutMs: 60_001 })).toEqual([{ argument: 'timeoutMs', reason: { code: 'timeout_above_spec', maxMs: 60_000 } }]);
  });

  test('rejects more resources than the spec allows, and resources that the spec does not limit', () => {
    const unbounded = sandboxSpec({ id: 'wide', resources: { ...spec.resources, pids: null } });
    expect(problemsOf({ resources: { cpus: 2.1, memoryBytes: 2 ** 31 + 1, pids: 1 } }, unbounded).map(({ argument, reason }) => [argument, reason])).toEqual([
      ['resources', { code: 'resource_above_spec', resource: 'cpus', max: 2 }],
      ['resources', { code: 'resource_above_spec', resource: 'memory_bytes', max: 2 ** 31 }],
      ['resources', { code: 'resource_above_spec', resource: 'pids', max: null }],
    ]);
  });

  test('rejects less memory than the minimum of the runtime', () => {
    const [below, least] = [999, 1000].map((memoryBytes) =>
      parameterProblems(spec, { resources: { memoryBytes } }, { limitsResources: true, minMemoryBytes: 1000 }));
    expect(below).toEqual([{ argument: 'resources', reason: { code: 'memory_below_minimum', min: 1000 } }]);
    expect([least, problemsOf({ resources: { memoryBytes: 1 } })]).toEqual([[], []]);
  });

  test('rejects resources if the runtime cannot limit them', () => {
    expect(problemsOf({ resources: { cpus: 1 } }, spec, false)).toEqual([{ argument: 'resources', reason: { code: 'resources_not_limited' } }]);
    expect(problemsOf({ env: { A: 'b' } }, spec, false)).toEqual([]);
  });
});
