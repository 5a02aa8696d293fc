import { describe, expect, test } from 'vitest';
import { activityIntervalMs, dueTimeoutPause, expiresAt, nextDueAt, nextIdleAction, dueIdleAction, timeoutOf, withTimeout } from '../../src/domain/idle-policy.ts';
import { newSandbox, unowned, type Sandbox } from '../../src/domain/sandbox.ts';
import { sandboxSpec } from '../../src/domain/sandbox-spec.ts';

const minute = 60_000;
const spec = sandboxSpec({
  id: 'x',
  ready: { probe: { kind: 'none' }, withinMs: 1000 },
  rest: { freezeAfterMs: 15 * minute, stopAfterMs: 120 * minute, deleteAfterMs: 14_400 * minute, maxLifeMs: 28_800 * minute },
});
const of = (fields: Partial<Sandbox>): Sandbox => ({ ...newSandbox({ id: 'sb-1', ownerId: 'me', spec, sessionApiKey: 'k', now: 0 }), ...fields });

describe('the idle policy', () => {
  test.each<[string, Partial<Sandbox>, string, number, string]>([
    ['freezes a RUNNING sandbox, counted from its last activity', { status: 'RUNNING', lastActiveAt: 7 }, 'freeze', 15 * minute + 7, 'idle'],
    ['stops a frozen sandbox, counted from the freeze', { status: 'PAUSED', pauseKind: 'freeze', statusSince: 7 }, 'stop', 120 * minute + 7, 'idle'],
    ['deletes a stopped sandbox, counted from the stop', { status: 'PAUSED', pauseKind: 'stop', statusSince: 7 }, 'delete', 14_400 * minute + 7, 'idle'],
    ['deletes a failed sandbox, counted from its creation', { status: 'ERROR', createdAt: 7 }, 'delete', 28_800 * minute + 7, 'life_over'],
    ['deletes a sandbox at the end of its life, even if it is not idle yet', { status: 'RUNNING', lastActiveAt: 28_800 * minute }, 'delete', 28_800 * minute, 'life_over'],
  ])('%s', (_what, fields, tier, at, code) => {
    const sandbox = of(fields);
    expect(nextIdleAction(sandbox, true)).toMatchObject({ tier, at, reason: { code } });
    expect(dueIdleAction(sandbox, at - 1, true)).toBeNull();
    expect(dueIdleAction(sandbox, at, true)).toMatchObject({ tier });
  });

  test.each([['freeze', true, 'freeze'], ['freeze', false, 'stop'], ['stop', true, 'stop']] as const)('pauses a RUNNING sandbox at the end of its timeout (%s, can freeze: %s)', (kind, canFreeze, tier) => {
    const timed = { ...spec, rest: { ...spec.rest, timeoutPause: { kind, afterMs: 5 * minute } } };
    const sandbox = of({ status: 'RUNNING', createdAt: 7, lastActiveAt: 4 * minute, spec: timed });
    const pause = { tier, at: 5 * minute + 7, reason: { code: 'timeout_over' } };
    expect(nextIdleAction(sandbox, canFreeze)).toEqual(pause);
    expect(dueTimeoutPause(sandbox, pause.at - 1, canFreeze)).toBeNull();
    expect(dueTimeoutPause(sandbox, pause.at, canFreeze)).toEqual(pause);
    expect(expiresAt(sandbox)).toBe(28_800 * minute + 7);
    for (const status of ['STARTING', 'PAUSED', 'ERROR'] as const) expect(dueTimeoutPause({ ...sandbox, status }, pause.at, canFreeze)).toBeNull();
    expect(dueTimeoutPause({ ...sandbox, refused: { times: 1, retryAt: pause.at + 9 } }, pause.at, canFreeze)).toBeNull();
    // The machine's time was set back after the refusal.
    expect(dueTimeoutPause({ ...sandbox, refused: { times: 1, retryAt: pause.at + 8 * minute } }, pause.at, canFreeze)).toEqual(pause);
    expect(timeoutOf(withTimeout(sandbox, 8 * minute))).toBe(8 * minute);
    expect(expiresAt(withTimeout(sandbox, 8 * minute))).toBe(28_800 * minute + 7);
  });

  test('has no action for pool members, deleted sandboxes, and specs without rules', () => {
    expect(nextIdleAction(of({ status: 'RUNNING', ownerId: unowned }), true)).toBeNull();
    expect(nextIdleAction(of({ status: 'RUNNING', deletedAt: 5 }), true)).toBeNull();
    expect(nextIdleAction(of({ status: 'RUNNING', spec: sandboxSpec({ id: 'y' }) }), true)).toBeNull();
  });

  test.each<[string, Partial<Sandbox>]>([
    ['freezeAfterMs', { status: 'RUNNING' }], ['maxLifeMs', { status: 'ERROR' }],
  ])('has a time that a date can show, even if a record has a longer %s', (rule, fields) => {
    const longest = sandboxSpec({ id: 'y', rest: { ...sandboxSpec({ id: 'y' }).rest, [rule]: 99_999_999 * 24 * 60 * minute } });
    const sandbox = of({ ...fields, createdAt: Date.UTC(2026), lastActiveAt: Date.UTC(2026), spec: longest });
    expect(new Date(nextIdleAction(sandbox, true)?.at ?? NaN).toISOString()).toBe('+275760-09-13T00:00:00.000Z');
    expect(expiresAt(sandbox)).toBe(rule === 'maxLifeMs' ? 8.64e15 : null);
  });

  test('counts the deadline of a start from its start slot', () => {
    expect(nextDueAt(of({ status: 'STARTING', startingSince: 50 }), 0)).toBe(1050);
    expect(nextDueAt(of({ status: 'RESUMING', startingSince: 50 }), 0)).toBe(1050);
    expect(nextDueAt(of({ status: 'STARTING', startingSince: 50, spec: sandboxSpec({ id: 'y' }) }), 51)).toBeNull();
    expect(nextDueAt(of({ status: 'RUNNING', startingSince: 50, lastActiveAt: 100 }), 0)).toBe(100 + 15 * minute);
    expect(nextDueAt(of({ status: 'STARTING', spec: sandboxSpec({ id: 'y' }) }), 0)).toBeNull();
    expect(nextDueAt(of({ status: 'STARTING', startingSince: 50, deletedAt: 60 }), 0)).toBeNull();
  });

  test.each([[null, 30_000], [20_000, 6666], [0, 100]])('an idle time of %s ms: activity is written every %i ms', (freezeAfterMs, everyMs) => {
    expect(activityIntervalMs({ spec: { ...spec, rest: { ...spec.rest, freezeAfterMs } } })).toBe(everyMs);
  });
});
