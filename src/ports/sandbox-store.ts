import type { EventDraft } from '../domain/event.ts';
import type { SandboxCount } from '../domain/limit-usage.ts';
import type { PoolMember } from '../domain/pool-plan.ts';
import type { NewSandboxLimits, SandboxLimits } from '../domain/admission-limits.ts';
import type { OwnerScope } from '../domain/principal.ts';
import type { Page, PageRequest } from '../domain/page.ts';
import type { Sandbox, SandboxStatus } from '../domain/sandbox.ts';
import type { ClaimOutcome, IdempotencyClaim, InsertOutcome, Limited } from './idempotency-claim.ts';

export interface SandboxFilter {
  readonly status?: SandboxStatus | undefined;
  readonly specId?: string | undefined;
  /** Only those whose metadata has all of these. */
  readonly metadata?: Readonly<Record<string, string>> | undefined;
  /** The oldest first, instead of the newest. */
  readonly oldestFirst?: boolean | undefined;
}

export type ReplaceOutcome = { readonly kind: 'replaced' } | { readonly kind: 'stale' };

/**
 * Keeps the records of sandboxes. A write is durable when its method resolves. Each method is atomic, also among several
 * processes that use one store, and writes its events in the same transaction. Failure: `store_unavailable`; the write may
 * have been made or not.
 */
export interface SandboxStore {
  /**
   * Adds a record, unless a limit is reached (counted in the same transaction) or the claim was made before. Idempotent by id: a
   * record that exists is left as it is, and the outcome is `inserted`.
   */
  insert(sandbox: Sandbox, limits: NewSandboxLimits, claim?: IdempotencyClaim, events?: readonly EventDraft[]): Promise<InsertOutcome>;

  /**
   * Gives a running pool member to an owner: in one transaction the member's record is deleted and the given one, which has its
   * `instanceId`, is added by the rules of `insert`. Returns `stale` and writes nothing unless the member is still RUNNING and unowned,
   * with exactly the given version.
   */
  claimFromPool(
    sandbox: Sandbox,
    member: Pick<Sandbox, 'id' | 'version'>,
    limits: NewSandboxLimits,
    claim?: IdempotencyClaim,
    events?: readonly EventDraft[],
  ): Promise<InsertOutcome | { readonly kind: 'stale' }>;

  /** Returns the outcome of the request that made the claim before; null if there was none. */
  findClaim(claim: IdempotencyClaim): Promise<ClaimOutcome | null>;

  /** Adds a pool member, unless `size` members with the fingerprint exist. Idempotent by id. */
  insertPooled(sandbox: Sandbox, fingerprint: string, size: number): Promise<{ readonly kind: 'inserted' } | { readonly kind: 'full' }>;

  /** Returns the pool members that are not deleted, oldest first. */
  pooled(): Promise<readonly PoolMember[]>;

  /**
   * Compare-and-set: writes the record if the stored one is exactly one version older; otherwise, and if there is none, returns
   * `stale`. `lastActiveAt` never moves back, so a `touch` in between is not lost. A pause by a rule (`isPausedByRule`) is also `stale`
   * if the stored `lastActiveAt` is later than that of the record: the sandbox is not idle any more.
   */
  replace(sandbox: Sandbox, events?: readonly EventDraft[]): Promise<ReplaceOutcome>;

  /** Like `replace`, for a transition that makes a sandbox count as running again. */
  admit(sandbox: Sandbox, limits: SandboxLimits, events?: readonly EventDraft[]): Promise<ReplaceOutcome | Limited>;

  /** Writes the time of activity without a new version. It never moves back. An unknown id is ignored. */
  touch(id: string, lastActiveAt: number): Promise<void>;

  /** Returns the record, also a deleted one; null if there is none. */
  find(id: string): Promise<Sandbox | null>;

  /** Returns the records with these ids (at most 100), also deleted ones, in no particular order. */
  findMany(ids: readonly string[]): Promise<readonly Sandbox[]>;

  /** Returns the record of the runtime's instance, also a deleted one; null if there is none. */
  findByInstance(instanceId: string): Promise<Sandbox | null>;

  /** Returns the running sandboxes of the owner (null: of all owners), without pool members, the longest idle first. */
  longestIdle(ownerId: string | null, limit: number): Promise<readonly Sandbox[]>;

  /** Returns the sandboxes of the scope that are not deleted, newest first unless the filter says otherwise. */
  search(scope: OwnerScope, filter: SandboxFilter, page: PageRequest): Promise<Page<Sandbox>>;

  /** Returns how many sandboxes each owner of the scope has in each status, without deleted ones and pool members. */
  countByStatus(scope: OwnerScope): Promise<readonly SandboxCount[]>;

  /**
   * Returns the sandboxes of the scope that are in ERROR or MISSING, and those that have been STARTING or RESUMING since before the time,
   * without deleted ones and pool members; the newest status first.
   */
  findFailedOrSlow(scope: OwnerScope, startingBefore: number, limit: number): Promise<readonly Sandbox[]>;

  /** Returns every record that is not removed or damaged, ordered by id, after the given id. Fewer than `limit` only at the end. */
  scan(afterId: string | null, limit: number): Promise<readonly Sandbox[]>;

  /**
   * Deletes a bounded number of the records that were removed before the time, in milliseconds since the epoch. Returns true if more may be
   * left.
   */
  purge(removedBefore: number): Promise<boolean>;
}
