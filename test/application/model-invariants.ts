import { expect } from 'vitest';
import type { Event } from '../../src/domain/event.ts';
import { nextIdleAction } from '../../src/domain/idle-policy.ts';
import { countsAsRunning, lifecycle } from '../../src/domain/sandbox-lifecycle.ts';
import type { SandboxLimits } from '../../src/domain/admission-limits.ts';
import { poolFingerprint } from '../../src/domain/pool-plan.ts';
import { isPooled, type Sandbox, type ObservedSandbox } from '../../src/domain/sandbox.ts';
import type { Write } from './observed.ts';

/** Checks what must hold after every write. Throws if it does not hold. */
export function checkRecords(records: readonly Sandbox[], limits: SandboxLimits, poolSize: number): void {
  const there = records.filter(({ deletedAt }) => deletedAt === null);
  const owned = there.filter((one) => !isPooled(one));
  const of = (owner: string) => owned.filter(({ ownerId }) => ownerId === owner);
  most(owned.filter(countsAsRunning), limits.running, 'running');
  most(owned, limits.existing, 'existing');
  for (const owner of new Set(owned.map(({ ownerId }) => ownerId))) {
    most(of(owner).filter(countsAsRunning), limits.runningPerOwner, `running of ${owner}`);
    most(of(owner), limits.existingPerOwner, `existing of ${owner}`);
  }
  const pools = Map.groupBy(there.filter(isPooled), ({ spec }) => poolFingerprint(spec));
  for (const members of pools.values()) most(members, poolSize, 'pooled');
  const instances = there.map(({ instanceId }) => instanceId);
  expect(new Set(instances).size, 'one instance has two owners').toBe(instances.length);
}

function most(all: readonly Sandbox[], max: number | null, what: string): void {
  expect(all.length, what).toBeLessThanOrEqual(max ?? Infinity);
}

/** Checks that the write is a transition of the table and raises the version by one. */
export function checkWrite({ from, to, member }: Write): void {
  const shown = JSON.stringify({ from, to });
  expect(isMove(from, to, member), shown).toBe(true);
  // A sandbox that was stopped outside Skep did not crash.
  if (from?.status === 'RUNNING' && to.status === 'ERROR') expect(to.statusReason?.code, shown).not.toMatch(/outside|restarted/);
}

function isMove(from: Sandbox | null, to: Sandbox, member: string | null): boolean {
  if (from === null) return to.version === 1 && to.status === (member === null ? 'STARTING' : 'RUNNING');
  if (to.version !== from.version + 1 || to.ownerId !== from.ownerId || to.instanceId !== from.instanceId) return false;
  if (from.deletedAt !== null) return to.status === from.status && to.deletedAt === from.deletedAt;
  if (to.deletedAt !== null || to.status === from.status) return to.status === from.status;
  return Object.values(lifecycle[from.status]).includes(to.status as never);
}

export interface End {
  readonly records: readonly Sandbox[];
  readonly facts: ReadonlyMap<string, ObservedSandbox>;
  readonly now: number;
  /** Null if the pool could not be filled. */
  readonly pool: { readonly fingerprint: string; readonly size: number } | null;
}

/** Checks the end, after faults and sweeps: each sandbox is in a stable status, and records and observed states agree. */
export function checkEnd({ records, facts, now, pool }: End): void {
  const there = records.filter(({ deletedAt }) => deletedAt === null);
  const owners = new Map(there.map((one) => [one.instanceId, one.id]));
  for (const id of facts.keys()) expect(owners.get(id), `${id} is there, and nobody owns it: ${JSON.stringify(records.find(({ instanceId }) => instanceId === id))}`).toBeDefined();
  const settled = pool === null ? there.filter((one) => !isPooled(one)) : there;
  for (const one of settled) {
    const state = facts.get(one.instanceId)?.state ?? 'absent';
    const shown = `${JSON.stringify(one)} ${state}`;
    expect(['RUNNING', 'PAUSED', 'ERROR', 'MISSING'], shown).toContain(one.status);
    expect(state === 'running', shown).toBe(one.status === 'RUNNING');
    if (one.status === 'PAUSED') expect(state, shown).toBe(one.pauseKind === 'freeze' ? 'frozen' : 'stopped');
    if (one.status !== 'RUNNING') expect(one.statusReason, shown).not.toBeNull();
    expect(nextIdleAction(one, true)?.at ?? Infinity, `a rule of rest is overdue: ${shown}`).toBeGreaterThan(now);
  }
  if (pool === null) return;
  const members = there.filter((one) => isPooled(one) && poolFingerprint(one.spec) === pool.fingerprint);
  expect(members.map(({ status }) => status), 'the pool is full').toEqual(Array.from({ length: pool.size }, () => 'RUNNING'));
}

/** Checks that the events of a sandbox contain every change of its status, without a gap. */
export function checkEvents(events: readonly Event[], records: readonly Sandbox[], writes: readonly Write[]): void {
  expect(events.length).toBe(writes.filter(isTold).length);
  for (const record of records.filter((one) => !isPooled(one))) {
    const moves = events.flatMap((event) => (event.kind === 'sandbox_moved' && event.sandboxId === record.id ? [event.data] : []));
    const shown = `${JSON.stringify(moves)} ${JSON.stringify(record)}`;
    expect(moves[0]?.from, shown).toBeNull();
    for (const [index, move] of moves.slice(1).entries()) expect(move.from, shown).toBe(moves[index]?.to);
    expect(moves.at(-1)?.to, shown).toBe(record.deletedAt === null ? record.status : null);
  }
}

/** Returns whether the write has an event, which means that an owner would notice it. */
function isTold({ from, to }: Write): boolean {
  if (isPooled(to)) return false;
  if (from === null || from.status !== to.status || (from.deletedAt === null) !== (to.deletedAt === null)) return true;
  return (to.status === 'PAUSED' || to.status === 'PAUSING') && from.pauseKind !== to.pauseKind;
}
