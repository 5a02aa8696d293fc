import type { EventDraft } from '../domain/event.ts';
import type { LimitReached, SandboxLimits } from '../domain/sandbox-limits.ts';
import type { Page, PageRequest } from '../domain/page.ts';
import type { Sandbox, SandboxStatus } from '../domain/sandbox.ts';
import type { IdempotencyClaim, ClaimOutcome } from './idempotency-claim.ts';

export interface SandboxFilter {
  readonly status?: SandboxStatus;
  readonly specId?: string;
}

/** A member of a pool. */
export interface PooledSandbox {
  readonly sandbox: Sandbox;
  /** A digest of the spec's content: a member of an earlier content is not handed out. */
  readonly fingerprint: string;
}

export type InsertSandboxOutcome =
  | { readonly kind: 'inserted' }
  | { readonly kind: 'limit'; readonly reached: LimitReached }
  | ClaimOutcome;

export type ReplaceOutcome = { readonly kind: 'replaced' } | { readonly kind: 'stale' };

/**
 * Keeps the records of sandboxes. What a method has answered is durable. Each method is atomic, also among several
 * processes over one store. The events that a write brings are part of its transaction. Failure: `store_unavailable`; after it, a write may or may not have been made.
 */
export interface SandboxStore {
  /**
   * Adds a record, unless a limit is reached by those that run already (counted in the same transaction), or the claim
   * says that this request was made before. A record with this id that exists already is left as it is, and answers
   * `inserted`: idempotent by id.
   */
  insert(sandbox: Sandbox, limits: SandboxLimits, claim?: IdempotencyClaim, events?: readonly EventDraft[]): Promise<InsertSandboxOutcome>;

  /**
   * Makes the running, unowned member of a pool the owner's: in one transaction the member's record goes and the given one,
   * which has its `instanceId`, is added, under the rules of `insert`. `stale` when the member is not (any more)
   * there in exactly the given version, RUNNING and unowned: nothing was written then.
   */
  claimFromPool(
    sandbox: Sandbox,
    member: Pick<Sandbox, 'id' | 'version'>,
    limits: SandboxLimits,
    claim?: IdempotencyClaim,
    events?: readonly EventDraft[],
  ): Promise<InsertSandboxOutcome | { readonly kind: 'stale' }>;

  /** Adds an unowned record for a pool unless the spec (by its content, see `pooled`) has that many members already. Idempotent by id. */
  insertPooled(sandbox: Sandbox, fingerprint: string, size: number): Promise<{ readonly kind: 'inserted' } | { readonly kind: 'full' }>;

  /** The unowned records that are not deleted, oldest first, each with the fingerprint that it was added under. */
  pooled(): Promise<readonly PooledSandbox[]>;

  /**
   * Compare-and-set: writes the record if the stored one is exactly one version older; `stale` otherwise, also
   * when there is none. `lastActiveAt` never moves back, so that a `touch` in between is not lost.
   */
  replace(sandbox: Sandbox, events?: readonly EventDraft[]): Promise<ReplaceOutcome>;

  /** Like `replace`, for a move that makes a sandbox count as running again. */
  admit(
    sandbox: Sandbox,
    limits: SandboxLimits,
    events?: readonly EventDraft[],
  ): Promise<ReplaceOutcome | { readonly kind: 'limit'; readonly reached: LimitReached }>;

  /** Notes activity without a new version; never moves the time back. An unknown id is ignored. */
  touch(id: string, lastActiveAt: number): Promise<void>;

  /** The record, a deleted one too; null when there is none. */
  find(id: string): Promise<Sandbox | null>;

  /** Those of the given ids that exist, deleted ones too, in no particular order. At most 100 ids. */
  findMany(ids: readonly string[]): Promise<readonly Sandbox[]>;

  /** The record that the runtime's instance belongs to, a deleted one too; null when there is none. */
  findByInstance(instanceId: string): Promise<Sandbox | null>;

  /** The running sandboxes of the owner (null: of all owners) that are not pooled, the longest without activity first. */
  longestIdle(ownerId: string | null, limit: number): Promise<readonly Sandbox[]>;

  /** The owner's sandboxes that are not deleted, newest first. */
  search(ownerId: string, filter: SandboxFilter, page: PageRequest): Promise<Page<Sandbox>>;

  /** Every record that is not known to be removed, by id, from after the given one: what a sweep goes through. */
  scan(afterId: string | null, limit: number): Promise<readonly Sandbox[]>;

  /** Forgets the records that were removed before the time, in milliseconds since the epoch. */
  purge(removedBefore: number): Promise<void>;
}
