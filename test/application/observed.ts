import type { Sandbox } from '../../src/domain/sandbox.ts';
import type { SandboxStore } from '../../src/ports/sandbox-store.ts';

/** One write of a sandbox in the store, with its time. `from` is null for a new sandbox. */
export interface Write {
  readonly from: Sandbox | null;
  readonly to: Sandbox;
  /** The pool member that was claimed by it. */
  readonly member: string | null;
  readonly at: number;
}

/** Wraps the store. Calls `onWrite` after each write that changed something. */
export function observed(store: SandboxStore, now: () => number, onWrite: (write: Write) => void): SandboxStore {
  const noting = async <T extends { readonly kind: string }>(to: Sandbox, member: string | null, made: string, call: () => Promise<T>): Promise<T> => {
    const from = await store.find(to.id);
    const outcome = await call();
    // An insert does not change a sandbox that exists already.
    if (outcome.kind === made && (made === 'replaced' || from === null)) onWrite({ from, to, member, at: now() });
    return outcome;
  };
  return {
    insert: (sandbox, ...rest) => noting(sandbox, null, 'inserted', () => store.insert(sandbox, ...rest)),
    insertPooled: (sandbox, ...rest) => noting(sandbox, null, 'inserted', () => store.insertPooled(sandbox, ...rest)),
    claimFromPool: (sandbox, member, ...rest) => noting(sandbox, member.id, 'inserted', () => store.claimFromPool(sandbox, member, ...rest)),
    replace: (sandbox, ...rest) => noting(sandbox, null, 'replaced', () => store.replace(sandbox, ...rest)),
    admit: (sandbox, ...rest) => noting(sandbox, null, 'replaced', () => store.admit(sandbox, ...rest)),
    touch: (id, at) => store.touch(id, at),
    find: (id) => store.find(id),
    findClaim: (claim) => store.findClaim(claim),
    findMany: (ids) => store.findMany(ids),
    findByInstance: (id) => store.findByInstance(id),
    longestIdle: (owner, limit) => store.longestIdle(owner, limit),
    pooled: () => store.pooled(),
    search: (owner, filter, page) => store.search(owner, filter, page),
    countByStatus: (scope) => store.countByStatus(scope),
    findFailedOrSlow: (scope, before, limit) => store.findFailedOrSlow(scope, before, limit),
    scan: (after, limit) => store.scan(after, limit),
    purge: (before) => store.purge(before),
  };
}
