import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { fingerprintOf } from '../../src/domain/fingerprint.ts';
import { claimMember, newPoolMember, planPool, poolFingerprint, type PooledSpec, type PoolMember } from '../../src/domain/pool-plan.ts';
import { isPooled, sandboxStatuses } from '../../src/domain/sandbox.ts';
import { sandboxSpec, type SandboxSpecInput } from '../../src/domain/sandbox-spec.ts';

function pooled(id: string, size: number, others: Partial<SandboxSpecInput> = {}): PooledSpec {
  const spec = sandboxSpec({ id, pool: { size }, ...others });
  return { spec, fingerprint: poolFingerprint(spec) };
}

const specs = [pooled('a', 3), pooled('b', 2)];
/** A time at which no member is young any more. */
const later = 1_000_000;
const nobody: ReadonlySet<string> = new Set();

const members: fc.Arbitrary<PoolMember[]> = fc
  .array(fc.record({ of: fc.constantFrom(...specs, pooled('gone', 1)), status: fc.constantFrom(...sandboxStatuses) }), { maxLength: 12 })
  .map((all) =>
    all.map(({ of: { spec, fingerprint }, status }, index) => ({
      fingerprint,
      sandbox: { ...newPoolMember({ id: `sb-${index}`, spec, sessionApiKey: 'k', now: index }), status },
    })),
  );

describe('a pool', () => {
  test('is planned to its full size, with no more starts at once than allowed', () => {
    fc.assert(
      fc.property(members, fc.integer({ min: 1, max: 6 }), (all, atOnce) => {
        const { remove, add } = planPool(all, specs, { atOnce, blockedFingerprints: nobody, now: later });
        const removed = new Set(remove.map(({ sandbox }) => sandbox.id));
        const left = all.filter(({ sandbox }) => !removed.has(sandbox.id));
        expect(left.every(({ sandbox }) => ['STARTING', 'RUNNING'].includes(sandbox.status))).toBe(true);
        const starting = left.filter(({ sandbox }) => sandbox.status === 'STARTING').length;
        expect(add.length).toBeLessThanOrEqual(Math.max(0, atOnce - starting));
        const lacking = specs.map(({ spec, fingerprint }) => spec.pool.size - left.filter((one) => one.fingerprint === fingerprint).length);
        for (const [index, { fingerprint }] of specs.entries()) {
          expect(add.filter((one) => one.fingerprint === fingerprint).length).toBeLessThanOrEqual(lacking[index] ?? 0);
        }
        expect(lacking.every((count) => count >= 0)).toBe(true);
        const most = lacking.reduce((sum, count) => sum + count, 0);
        expect(add.length).toBe(Math.min(most, Math.max(0, atOnce - starting)));
      }),
      { numRuns: 2000 },
    );
  });

  test('keeps RUNNING members up to its size', () => {
    fc.assert(
      fc.property(members, (all) => {
        const removed = new Set(planPool(all, specs, { atOnce: 2, blockedFingerprints: nobody, now: later }).remove.map(({ sandbox }) => sandbox.id));
        for (const { spec, fingerprint } of specs) {
          const running = all.filter((one) => one.fingerprint === fingerprint && one.sandbox.status === 'RUNNING');
          const kept = running.filter(({ sandbox }) => !removed.has(sandbox.id));
          expect(kept.length).toBe(Math.min(running.length, spec.pool.size));
        }
      }),
    );
  });

  test('keeps a RUNNING member instead of a STARTING one, even if it is younger', () => {
    const { spec, fingerprint } = pooled('b', 1);
    const member = (id: string, status: 'STARTING' | 'RUNNING', now: number): PoolMember => ({ fingerprint, sandbox: { ...newPoolMember({ id, spec, sessionApiKey: 'k', now }), status } });
    const plan = planPool([member('sb-early', 'STARTING', 1), member('sb-late', 'RUNNING', 2)], [{ spec, fingerprint }], { atOnce: 2, blockedFingerprints: nobody, now: later });
    expect([plan.remove.map(({ sandbox }) => sandbox.id), plan.add]).toEqual([['sb-early'], []]);
  });

  test('does not remove young members that another configuration may use', () => {
    fc.assert(
      fc.property(members, (all) => {
        const early = planPool(all, specs, { atOnce: 2, blockedFingerprints: nobody, now: 20 }).remove;
        const known = new Set(specs.map(({ fingerprint }) => fingerprint));
        for (const { sandbox } of early) {
          expect(['RUNNING', 'STARTING']).not.toContain(sandbox.status);
          expect(known.has(all.find((one) => one.sandbox === sandbox)?.fingerprint ?? '')).toBe(true);
        }
      }),
    );
  });

  test('adds no member for a spec that is held back, and fills the other specs', () => {
    const [a, b] = specs;
    const plan = planPool([], specs, { atOnce: 4, blockedFingerprints: new Set([a?.fingerprint ?? '']), now: later });
    expect(plan.add).toEqual([b, b]);
  });

  test('alternates between specs when it starts members', () => {
    expect(planPool([], specs, { atOnce: 3, blockedFingerprints: nobody, now: later }).add.map(({ spec }) => spec.id)).toEqual(['a', 'b', 'a']);
  });

  test('gives a claimed member an owner, and its life begins at the claim', () => {
    const { spec } = pooled('a', 1);
    const member = { ...newPoolMember({ id: 'sb-m', spec, sessionApiKey: 'its key', now: 1 }), status: 'RUNNING' as const, version: 7 };
    const urls = [{ name: 'HTTP', port: 80, url: 'http://127.0.0.1:1' }];
    const mine = claimMember(member, { id: 'sb-1', ownerId: 'me', spec, now: 50 }, urls);
    expect(mine).toMatchObject({
      id: 'sb-1', instanceId: 'sb-m', ownerId: 'me', status: 'RUNNING', sessionApiKey: 'its key', exposedUrls: urls,
      version: 1, createdAt: 50, lastActiveAt: 50, statusSince: 50,
    });
    expect([isPooled(member), isPooled(mine)]).toEqual([true, false]);
  });
});

describe('the fingerprint of a spec', () => {
  test.each<[string, Partial<SandboxSpecInput>]>([
    ['its image', { image: 'other' }],
    ['its command', { command: ['true'] }],
    ['its environment', { initialEnv: { A: '2' } }],
    ['its ports', { ports: [{ name: 'HTTP', port: 81 }] }],
    ['its resources', { resources: { cpus: 1, memoryBytes: null, pids: null, openFiles: null, logBytes: null, diskBytes: null } }],
    ['its isolation', { isolation: { ...pooled('x', 1).spec.isolation, network: 'none' } }],
    ["its runtime's options", { runtimeOptions: { docker: { oci_runtime: 'runsc' } } }],
    ['its labels', { labels: { a: 'b' } }],
  ])('changes with %s', (_what, change) => {
    expect(pooled('x', 1, change).fingerprint).not.toBe(pooled('x', 1).fingerprint);
  });

  test('does not depend on the description, idle rules, pool size, or order of keys', () => {
    const rest = { freezeAfterMs: 1, stopAfterMs: 1, deleteAfterMs: 1, maxLifeMs: 1 };
    expect(pooled('x', 5, { description: 'd', rest }).fingerprint).toBe(pooled('x', 1).fingerprint);
    expect(fingerprintOf({ a: 1, b: [{ c: 2, d: 3 }] })).toBe(fingerprintOf({ b: [{ d: 3, c: 2 }], a: 1 }));
    expect(fingerprintOf([1, 2])).not.toBe(fingerprintOf([2, 1]));
  });
});
