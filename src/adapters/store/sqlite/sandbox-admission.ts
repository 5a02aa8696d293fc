import type { EventDraft } from '../../../domain/event.ts';
import { limitReached, type LimitReached, type Newcomer, type SandboxLimits } from '../../../domain/sandbox-limits.ts';
import { isPooled, type Sandbox } from '../../../domain/sandbox.ts';
import type { IdempotencyClaim } from '../../../ports/idempotency-claim.ts';
import type { InsertSandboxOutcome, ReplaceOutcome, SandboxStore } from '../../../ports/sandbox-store.ts';
import { claimed, keepClaim } from './claims.ts';
import type { Connection } from './connection.ts';
import type { Journal } from './journal.ts';
import { rowOfSandbox } from './sandbox-row.ts';
import {
  countExisting,
  countExistingOf,
  countPooled,
  countRunning,
  countRunningOf,
  deleteSandbox,
  findReady,
  insertSandbox,
  replaceSandbox,
  sandboxState,
} from './sandbox-statements.ts';
import type { Statement } from './statement.ts';

type Admission = Pick<SandboxStore, 'insert' | 'claimFromPool' | 'insertPooled' | 'replace' | 'admit'>;

/** What is written of sandboxes, and who gets in. Everything that is decided is decided under the write lock. */
export function createAdmission(connection: Connection, journal: Journal): Admission {
  function count<V extends object>(counting: Statement<V & { max: number }, { count: number }>, values: V, max: number | null): number {
    return max === null ? 0 : (connection.get(counting, { ...values, max })?.count ?? 0);
  }

  function room(sandbox: Sandbox, limits: SandboxLimits, newcomer: Newcomer): LimitReached | null {
    if (isPooled(sandbox)) return null;
    const owner = { owner: sandbox.ownerId };
    const counts = {
      runningOfOwner: count(countRunningOf, owner, limits.runningPerOwner),
      running: count(countRunning, {}, limits.running),
      existingOfOwner: count(countExistingOf, owner, limits.existingPerOwner),
      existing: count(countExisting, {}, limits.existing),
    };
    return limitReached(limits, counts, newcomer);
  }

  function stateOf(id: string) {
    return connection.get(sandboxState, { id });
  }

  /** What stands against a new record; null if nothing does. */
  function known({ id }: Sandbox, claim: IdempotencyClaim | undefined): InsertSandboxOutcome | null {
    return stateOf(id) === undefined ? claimed(connection, 'sandbox', claim) : { kind: 'inserted' };
  }

  function add(sandbox: Sandbox, claim?: IdempotencyClaim, fingerprint = ''): { kind: 'inserted' } {
    connection.run(insertSandbox, { ...rowOfSandbox(sandbox), pool_fingerprint: fingerprint });
    keepClaim(connection, 'sandbox', claim, sandbox.id);
    return { kind: 'inserted' };
  }

  function swap(sandbox: Sandbox, events: readonly EventDraft[], write: (events: readonly EventDraft[]) => void): ReplaceOutcome {
    const changed = connection.run(replaceSandbox, { ...rowOfSandbox(sandbox), expected: sandbox.version - 1 });
    if (changed === 0) return { kind: 'stale' };
    write(events);
    return { kind: 'replaced' };
  }

  return {
    insert: async (sandbox, limits, claim, events = []) =>
      journal.transaction((write) => {
        const earlier = known(sandbox, claim);
        if (earlier !== null) return earlier;
        const reached = room(sandbox, limits, 'new');
        if (reached !== null) return { kind: 'limit', reached };
        write(events);
        return add(sandbox, claim);
      }),

    claimFromPool: async (sandbox, member, limits, claim, events = []) =>
      journal.transaction((write) => {
        const earlier = known(sandbox, claim);
        if (earlier !== null) return earlier;
        if (connection.get(findReady, { id: member.id, generation: member.version }) === undefined) return { kind: 'stale' };
        const reached = room(sandbox, limits, 'new');
        if (reached !== null) return { kind: 'limit', reached };
        connection.run(deleteSandbox, { id: member.id });
        write(events);
        return add(sandbox, claim);
      }),

    insertPooled: async (sandbox, fingerprint, size) =>
      journal.transaction(() => {
        if (stateOf(sandbox.id) !== undefined) return { kind: 'inserted' };
        if (count(countPooled, { fingerprint }, size) >= size) return { kind: 'full' };
        return add(sandbox, undefined, fingerprint);
      }),

    replace: async (sandbox, events = []) => journal.transaction((write) => swap(sandbox, events, write)),

    admit: async (sandbox, limits, events = []) =>
      journal.transaction((write) => {
        const stored = stateOf(sandbox.id);
        if (stored?.generation !== sandbox.version - 1) return { kind: 'stale' };
        // One that runs already takes no more room.
        const reached = stored.running === 1 ? null : room(sandbox, limits, 'resumed');
        return reached === null ? swap(sandbox, events, write) : { kind: 'limit', reached };
      }),
  };
}
