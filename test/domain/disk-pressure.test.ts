import { describe, expect, test } from 'vitest';
import { diskPressure, deletionCandidates } from '../../src/domain/disk-pressure.ts';
import { putInQuarantine } from '../../src/domain/quarantine.ts';
import { newSandbox, unowned, type Sandbox } from '../../src/domain/sandbox.ts';
import { type RestRule, sandboxSpec } from '../../src/domain/sandbox-spec.ts';

const minute = 60_000;
const now = 1000 * minute;
const rest: RestRule = { freezeAfterMs: null, stopAfterMs: 120 * minute, deleteAfterMs: 14_400 * minute, maxLifeMs: null };
const mortal: RestRule = { ...rest, maxLifeMs: 28_800 * minute };
const of = (id: string, fields: Partial<Sandbox>, rules: Partial<RestRule> = {}): Sandbox => {
  const spec = sandboxSpec({ id: 'x', rest: { ...rest, ...rules } });
  return { ...newSandbox({ id, ownerId: 'me', spec, sessionApiKey: 'k', now: 0 }), ...fields };
};
const stopped = { status: 'PAUSED', pauseKind: 'stop' } as const;
const idsOf = (sandboxes: readonly Sandbox[]): string[] => deletionCandidates(sandboxes, now).map(({ id }) => id);

describe('disk pressure', () => {
  test('is reported only above the limit, with the percentage rounded up as df does', () => {
    expect(diskPressure({ totalBytes: 1000, freeBytes: 100 }, 90)).toBeNull();
    expect(diskPressure({ totalBytes: 1000, freeBytes: 99 }, 90)).toEqual({ code: 'disk_pressure', usedPercent: 91, limitPercent: 90 });
  });

  test('is never reported with a limit of 100, or for a disk of 0 bytes', () => {
    expect(diskPressure({ totalBytes: 1000, freeBytes: 0 }, 100)).toBeNull();
    expect(diskPressure({ totalBytes: 0, freeBytes: 0 }, 90)).toBeNull();
  });

});

describe('deletion under disk pressure', () => {
  test('deletes stopped and failed sandboxes that a rule would delete later, longest idle first', () => {
    const sandboxes = [
      of('later', { ...stopped, statusSince: 500 * minute }),
      of('first', { ...stopped, statusSince: 400 * minute }),
      of('failed', { status: 'ERROR', statusSince: 450 * minute }, mortal),
      of('active', { ...stopped, statusSince: 300 * minute, lastActiveAt: 600 * minute }),
    ];
    expect(idsOf(sandboxes)).toEqual(['first', 'failed', 'later', 'active']);
  });

  test.each<[string, Sandbox]>([
    ['runs', of('x', { status: 'RUNNING' }, mortal)],
    ['is frozen', of('x', { status: 'PAUSED', pauseKind: 'freeze' })],
    ['is frozen and has a maximum life', of('x', { status: 'PAUSED', pauseKind: 'freeze' }, { ...mortal, stopAfterMs: null })],
    ['has no delete_after', of('x', stopped, { ...mortal, deleteAfterMs: null })],
    ['failed and has no rule that deletes it', of('x', { status: 'ERROR' })],
    ['is being resumed', of('x', { status: 'RESUMING', pauseKind: 'stop' })],
    ['was stopped less than 5 minutes ago', of('x', { ...stopped, statusSince: now - 5 * minute + 1 })],
    ['was active less than 5 minutes ago', of('x', { ...stopped, lastActiveAt: now - 5 * minute + 1 })],
    ['is MISSING', of('x', { status: 'MISSING' }, mortal)],
    ['is already deleted', of('x', { ...stopped, deletedAt: 5 })],
    ['is in quarantine', { ...putInQuarantine(of('x', {}), { keptForMs: minute, specId: null, ownerId: null }, 0), ...stopped }],
  ])('does not delete a sandbox that %s', (_what, sandbox) => expect(idsOf([sandbox])).toEqual([]));

  test('deletes sandboxes at rest also after the clock was set back, but none that was stopped since then', () => {
    const future = now + 60 * minute;
    const at = (id: string, statusSince: number) => of(id, { ...stopped, statusSince, lastActiveAt: future });
    expect(idsOf([at('before', future), at('since', now - minute), at('long', now - 5 * minute)])).toEqual(['before', 'long']);
    const second = now + 1000;
    expect(idsOf([of('just now', { ...stopped, statusSince: second, lastActiveAt: second })]), 'the clock was set back by a second').toEqual([]);
  });

  test('deletes only pool members while there are any', () => {
    const idle = of('idle', stopped);
    const member = of('member', { status: 'RUNNING', ownerId: unowned }, { deleteAfterMs: null });
    expect(idsOf([idle, member])).toEqual(['member']);
    expect(idsOf([idle, { ...member, deletedAt: 5 }])).toEqual(['idle']);
  });
});
