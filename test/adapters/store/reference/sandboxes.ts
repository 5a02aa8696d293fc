import { isInScope } from '../../../../src/domain/principal.ts';
import type { EventDraft } from '../../../../src/domain/event.ts';
import { countsAsRunning, isPausedByRule } from '../../../../src/domain/sandbox-lifecycle.ts';
import type { LimitReached, NewSandboxLimits } from '../../../../src/domain/admission-limits.ts';
import { isQuarantined } from '../../../../src/domain/quarantine.ts';
import { isPooled, type Sandbox } from '../../../../src/domain/sandbox.ts';
import type { IdempotencyClaim, InsertOutcome } from '../../../../src/ports/idempotency-claim.ts';
import type { ReplaceOutcome, SandboxStore } from '../../../../src/ports/sandbox-store.ts';
import type { ReferenceEvents } from './events.ts';
import { atOnce, Claims, compare, firstReached, pageIn, scanOf } from './records.ts';

export function createReferenceSandboxes(log: ReferenceEvents): SandboxStore {
  const records = new Map<string, Sandbox>();
  /** The fingerprint that each pool member was added under, by its id. */
  const fingerprints = new Map<string, string>();
  const claims = new Claims();
  const all = (): Sandbox[] => [...records.values()];
  const pooled = (): Sandbox[] => all().filter((sandbox) => isPooled(sandbox) && sandbox.deletedAt === null);

  function room(sandbox: Sandbox, limits: NewSandboxLimits, isNew: boolean): LimitReached | null {
    if (isPooled(sandbox)) return null;
    const ofOwners = all().filter((one) => one.deletedAt === null && !isPooled(one));
    const running = ofOwners.filter(countsAsRunning);
    const existing = ofOwners.filter((one) => !isQuarantined(one));
    const ofOwner = (some: readonly Sandbox[]): number => some.filter(({ ownerId }) => ownerId === sandbox.ownerId).length;
    const reached = firstReached([['running_per_owner', limits.runningPerOwner, ofOwner(running)], ['running', limits.running, running.length]]);
    if (!isNew || reached !== null) return reached;
    const { fullDisk = null } = limits;
    return firstReached([['existing_per_owner', limits.existingPerOwner, ofOwner(existing)], ['existing', limits.existing, existing.length]])
      ?? (fullDisk === null ? null : { limit: 'disk', max: fullDisk.limitPercent });
  }

  /** Returns the outcome of an earlier insert of the same record or with the same claim. Null if there was none. */
  function known(sandbox: Sandbox, claim: IdempotencyClaim | undefined): InsertOutcome | null {
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
    if (isPausedByRule(sandbox) && stored.lastActiveAt > sandbox.lastActiveAt) return { kind: 'stale' };
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
      atOnce(() => {
        const earlier = known(sandbox, claim);
        if (earlier !== null) return earlier;
        const reached = room(sandbox, limits, true);
        return reached === null ? add(sandbox, claim, events) : { kind: 'limit', reached };
      }),

    claimFromPool: (sandbox, { id, version }, limits, claim, events = []) =>
      atOnce(() => {
        const earlier = known(sandbox, claim);
        if (earlier !== null) return earlier;
        const member = pooled().find((one) => one.id === id);
        if (member?.version !== version || member.status !== 'RUNNING') return { kind: 'stale' };
        const reached = room(sandbox, limits, true);
        if (reached !== null) return { kind: 'limit', reached };
        forget(id);
        return add(sandbox, claim, events);
      }),

    findClaim: (claim) => atOnce(() => claims.find(claim)),

    insertPooled: (sandbox, fingerprint, size) =>
      atOnce(() => {
        if (records.has(sandbox.id)) return { kind: 'inserted' };
        if (pooled().filter(({ id }) => fingerprints.get(id) === fingerprint).length >= size) return { kind: 'full' };
        fingerprints.set(sandbox.id, fingerprint);
        return add(sandbox, undefined, []);
      }),

    pooled: () =>
      atOnce(() =>
        pooled()
          .toSorted((a, b) => a.createdAt - b.createdAt || compare(a.id, b.id))
          .map((sandbox) => ({ sandbox, fingerprint: fingerprints.get(sandbox.id) ?? '' })),
      ),

    replace: (sandbox, events = []) => atOnce(() => swap(sandbox, events)),

    admit: (sandbox, limits, events = []) =>
      atOnce(() => {
        const stored = records.get(sandbox.id);
        if (stored?.version !== sandbox.version - 1) return { kind: 'stale' };
        const reached = countsAsRunning(stored) ? null : room(sandbox, limits, false);
        return reached === null ? swap(sandbox, events) : { kind: 'limit', reached };
      }),

    touch: (id, lastActiveAt) =>
      atOnce(() => {
        const stored = records.get(id);
        if (stored !== undefined && stored.lastActiveAt < lastActiveAt) records.set(id, { ...stored, lastActiveAt });
      }),

    find: (id) => atOnce(() => records.get(id) ?? null),

    findMany: (ids) => atOnce(() => all().filter(({ id }) => ids.includes(id))),

    findByInstance: (instanceId) => atOnce(() => all().find((one) => one.instanceId === instanceId) ?? null),

    longestIdle: (ownerId, limit) =>
      atOnce(() =>
        all()
          .filter((one) => one.status === 'RUNNING' && one.deletedAt === null && !isPooled(one))
          .filter((one) => ownerId === null || one.ownerId === ownerId)
          .toSorted((a, b) => a.lastActiveAt - b.lastActiveAt || compare(a.id, b.id))
          .slice(0, limit),
      ),

    search: (scope, { status, specId, metadata = {}, oldestFirst, ...unused }, page) =>
      atOnce(() => {
        unused satisfies Record<string, never>;
        const found = all()
          .filter((sandbox) => !isPooled(sandbox) && isInScope(sandbox.ownerId, scope) && sandbox.deletedAt === null)
          .filter((sandbox) => status === undefined || sandbox.status === status)
          .filter((sandbox) => specId === undefined || sandbox.spec.id === specId)
          .filter((sandbox) => Object.entries(metadata).every(([key, value]) => sandbox.metadata[key] === value));
        return pageIn(found, ({ createdAt, id }) => ({ value: createdAt, id }), oldestFirst === true ? 'asc' : 'desc', page);
      }),

    countByStatus: (scope) =>
      atOnce(() => {
        const seen = all().filter((one) => !isPooled(one) && one.deletedAt === null && isInScope(one.ownerId, scope));
        return [...Map.groupBy(seen, ({ ownerId, status }) => JSON.stringify([ownerId, status])).values()]
          .flatMap((alike) => alike.slice(0, 1).map(({ ownerId, status }) => ({ ownerId, status, count: alike.length })));
      }),

    findFailedOrSlow: (scope, startingBefore, limit) =>
      atOnce(() => {
        const [failed, starting] = [new Set(['ERROR', 'MISSING']), new Set(['STARTING', 'RESUMING'])];
        return all()
          .filter((one) => !isPooled(one) && one.deletedAt === null && isInScope(one.ownerId, scope))
          .filter(({ status, statusSince }) => failed.has(status) || (starting.has(status) && statusSince < startingBefore))
          .toSorted((a, b) => b.statusSince - a.statusSince)
          .slice(0, limit);
      }),

    scan: (afterId, limit) =>
      atOnce(() => scanOf(all().filter(({ removedAt }) => removedAt === null), afterId, limit)),

    purge: (removedBefore) =>
      atOnce(() => {
        for (const { id, removedAt } of all()) if (removedAt !== null && removedAt < removedBefore) forget(id);
        return false;
      }),
  };
}
