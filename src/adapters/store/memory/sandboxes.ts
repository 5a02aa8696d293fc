import type { EventDraft } from '../../../domain/event.ts';
import { limitReached, type LimitReached, type Newcomer, type SandboxLimits } from '../../../domain/sandbox-limits.ts';
import { countsAsRunning } from '../../../domain/sandbox-lifecycle.ts';
import { isPooled, type Sandbox } from '../../../domain/sandbox.ts';
import type { IdempotencyClaim } from '../../../ports/idempotency-claim.ts';
import type { InsertSandboxOutcome, ReplaceOutcome, SandboxStore } from '../../../ports/sandbox-store.ts';
import { Claims } from './claims.ts';
import type { MemoryEvents } from './events.ts';
import { compare, pageIn, scanOf } from './page.ts';
import { type StoreState, whileOpen } from './state.ts';

export function createMemorySandboxes(state: StoreState, log: MemoryEvents): SandboxStore {
  const records = new Map<string, Sandbox>();
  /** What each member of a pool was added under, by its id. */
  const fingerprints = new Map<string, string>();
  const claims = new Claims();
  const all = (): Sandbox[] => [...records.values()];
  const pooled = (): Sandbox[] => all().filter((sandbox) => isPooled(sandbox) && sandbox.deletedAt === null);

  function room(sandbox: Sandbox, limits: SandboxLimits, newcomer: Newcomer): LimitReached | null {
    if (isPooled(sandbox)) return null;
    const existing = all().filter((one) => one.deletedAt === null && !isPooled(one));
    const running = existing.filter(countsAsRunning);
    const ofOwner = (some: readonly Sandbox[]): number => some.filter(({ ownerId }) => ownerId === sandbox.ownerId).length;
    const counts = {
      runningOfOwner: ofOwner(running),
      running: running.length,
      existingOfOwner: ofOwner(existing),
      existing: existing.length,
    };
    return limitReached(limits, counts, newcomer);
  }

  /** What stands against a new record; null if nothing does. */
  function known(sandbox: Sandbox, claim: IdempotencyClaim | undefined): InsertSandboxOutcome | null {
    return records.has(sandbox.id) ? { kind: 'inserted' } : claims.find(claim);
  }

  function add(sandbox: Sandbox, claim: IdempotencyClaim | undefined, events: readonly EventDraft[]): { kind: 'inserted' } {
    records.set(sandbox.id, sandbox);
    claims.keep(claim, sandbox.id);
    log.write(events);
    return { kind: 'inserted' };
  }

  function swap(sandbox: Sandbox, events: readonly EventDraft[]): ReplaceOutcome {
    const stored = records.get(sandbox.id);
    if (stored?.version !== sandbox.version - 1) return { kind: 'stale' };
    const lastActiveAt = Math.max(stored.lastActiveAt, sandbox.lastActiveAt);
    records.set(sandbox.id, { ...sandbox, lastActiveAt });
    log.write(events);
    return { kind: 'replaced' };
  }

  function forget(id: string): void {
    records.delete(id);
    fingerprints.delete(id);
    claims.forget(id);
  }

  return {
    insert: (sandbox, limits, claim, events = []) =>
      whileOpen(state, () => {
        const earlier = known(sandbox, claim);
        if (earlier !== null) return earlier;
        const reached = room(sandbox, limits, 'new');
        return reached === null ? add(sandbox, claim, events) : { kind: 'limit', reached };
      }),

    claimFromPool: (sandbox, { id, version }, limits, claim, events = []) =>
      whileOpen(state, () => {
        const earlier = known(sandbox, claim);
        if (earlier !== null) return earlier;
        const member = pooled().find((one) => one.id === id);
        if (member?.version !== version || member.status !== 'RUNNING') return { kind: 'stale' };
        const reached = room(sandbox, limits, 'new');
        if (reached !== null) return { kind: 'limit', reached };
        forget(id);
        return add(sandbox, claim, events);
      }),

    insertPooled: (sandbox, fingerprint, size) =>
      whileOpen(state, () => {
        if (records.has(sandbox.id)) return { kind: 'inserted' };
        if (pooled().filter(({ id }) => fingerprints.get(id) === fingerprint).length >= size) return { kind: 'full' };
        fingerprints.set(sandbox.id, fingerprint);
        return add(sandbox, undefined, []);
      }),

    pooled: () =>
      whileOpen(state, () =>
        pooled()
          .toSorted((a, b) => a.createdAt - b.createdAt || compare(a.id, b.id))
          .map((sandbox) => ({ sandbox, fingerprint: fingerprints.get(sandbox.id) ?? '' })),
      ),

    replace: (sandbox, events = []) => whileOpen(state, () => swap(sandbox, events)),

    admit: (sandbox, limits, events = []) =>
      whileOpen(state, () => {
        const stored = records.get(sandbox.id);
        if (stored?.version !== sandbox.version - 1) return { kind: 'stale' };
        const reached = countsAsRunning(stored) ? null : room(sandbox, limits, 'resumed');
        return reached === null ? swap(sandbox, events) : { kind: 'limit', reached };
      }),

    touch: (id, lastActiveAt) =>
      whileOpen(state, () => {
        const stored = records.get(id);
        if (stored !== undefined && stored.lastActiveAt < lastActiveAt) records.set(id, { ...stored, lastActiveAt });
      }),

    find: (id) => whileOpen(state, () => records.get(id) ?? null),

    findMany: (ids) => whileOpen(state, () => all().filter(({ id }) => ids.includes(id))),

    findByInstance: (instanceId) => whileOpen(state, () => all().find((one) => one.instanceId === instanceId) ?? null),

    longestIdle: (ownerId, limit) =>
      whileOpen(state, () =>
        all()
          .filter((one) => one.status === 'RUNNING' && one.deletedAt === null && !isPooled(one))
          .filter((one) => ownerId === null || one.ownerId === ownerId)
          .toSorted((a, b) => a.lastActiveAt - b.lastActiveAt || compare(a.id, b.id))
          .slice(0, limit),
      ),

    search: (ownerId, { status, specId }, page) =>
      whileOpen(state, () => {
        const found = all()
          .filter((sandbox) => sandbox.ownerId === ownerId && sandbox.deletedAt === null)
          .filter((sandbox) => status === undefined || sandbox.status === status)
          .filter((sandbox) => specId === undefined || sandbox.spec.id === specId);
        return pageIn(found, ({ createdAt, id }) => ({ value: createdAt, id }), 'desc', page);
      }),

    scan: (afterId, limit) =>
      whileOpen(state, () => scanOf(all().filter(({ removedAt }) => removedAt === null), afterId, limit)),

    purge: (removedBefore) =>
      whileOpen(state, () => {
        for (const { id, removedAt } of all()) if (removedAt !== null && removedAt < removedBefore) forget(id);
      }),
  };
}
