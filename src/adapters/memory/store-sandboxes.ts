import { limitReached, type LimitReached, type SandboxLimits } from '../../domain/limits.ts';
import { countsAsRunning } from '../../domain/sandbox-lifecycle.ts';
import type { Sandbox } from '../../domain/sandbox.ts';
import type { SandboxStore } from '../../ports/sandbox-store.ts';
import { Claims } from './store-claims.ts';
import { pageIn, scanOf } from './store-page.ts';
import { type StoreState, whileOpen } from './store-state.ts';

export function createMemorySandboxes(state: StoreState): SandboxStore {
  const records = new Map<string, Sandbox>();
  const claims = new Claims();
  const all = (): Sandbox[] => [...records.values()];

  function room(ownerId: string, limits: SandboxLimits): LimitReached | null {
    const running = all().filter(countsAsRunning);
    const ofOwner = running.filter((sandbox) => sandbox.ownerId === ownerId);
    return limitReached(limits, { ofOwner: ofOwner.length, all: running.length });
  }

  function swap(sandbox: Sandbox): { kind: 'replaced' } | { kind: 'stale' } {
    const stored = records.get(sandbox.id);
    if (stored?.generation !== sandbox.generation - 1) return { kind: 'stale' };
    const lastActiveAt = Math.max(stored.lastActiveAt, sandbox.lastActiveAt);
    records.set(sandbox.id, { ...sandbox, lastActiveAt });
    return { kind: 'replaced' };
  }

  return {
    insert: (sandbox, limits, claim) =>
      whileOpen(state, () => {
        if (records.has(sandbox.id)) return { kind: 'inserted' };
        const earlier = claims.find(claim);
        if (earlier !== null) return earlier;
        const reached = room(sandbox.ownerId, limits);
        if (reached !== null) return { kind: 'limit', reached };
        records.set(sandbox.id, sandbox);
        claims.keep(claim, sandbox.id);
        return { kind: 'inserted' };
      }),

    replace: (sandbox) => whileOpen(state, () => swap(sandbox)),

    admit: (sandbox, limits) =>
      whileOpen(state, () => {
        const stored = records.get(sandbox.id);
        if (stored?.generation !== sandbox.generation - 1) return { kind: 'stale' };
        const reached = countsAsRunning(stored) ? null : room(sandbox.ownerId, limits);
        return reached === null ? swap(sandbox) : { kind: 'limit', reached };
      }),

    touch: (id, lastActiveAt) =>
      whileOpen(state, () => {
        const stored = records.get(id);
        if (stored !== undefined && stored.lastActiveAt < lastActiveAt) records.set(id, { ...stored, lastActiveAt });
      }),

    find: (id) => whileOpen(state, () => records.get(id) ?? null),

    findMany: (ids) => whileOpen(state, () => all().filter(({ id }) => ids.includes(id))),

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
        for (const { id, removedAt } of all()) {
          if (removedAt === null || removedAt >= removedBefore) continue;
          records.delete(id);
          claims.forget(id);
        }
      }),
  };
}
