import type { ExecutionLimits, ExecutionRecord } from '../domain/execution.ts';
import type { Page, PageRequest } from '../domain/page.ts';
import type { ClaimOutcome, IdempotencyClaim, InsertOutcome } from './idempotency-claim.ts';
import type { ReplaceOutcome } from './sandbox-store.ts';

/**
 * Keeps the records of executions. A write is durable when its method resolves. Each method is atomic, also among several processes that
 * use one store. The records of a sandbox go when the sandbox's record is purged. Failure: `store_unavailable`; the write may have been
 * made or not.
 */
export interface ExecutionStore {
  /**
   * Adds a record, unless the claim was made before or a limit is reached (counted in the same transaction). Idempotent by id: a record
   * that exists is left as it is, and the outcome is `inserted`.
   */
  insert(execution: ExecutionRecord, limits: ExecutionLimits, claim?: IdempotencyClaim): Promise<InsertOutcome>;

  /** Returns the outcome of the request that made the claim before; null if there was none. */
  findClaim(claim: IdempotencyClaim): Promise<ClaimOutcome | null>;

  /**
   * Deletes a record whose command was never started, with its claim, so that the request can be made again. A record that was changed
   * since its insert stays. Returns false if nothing was deleted.
   */
  undoInsert(id: string): Promise<boolean>;

  /** Compare-and-set: writes the record if the stored one is exactly one version older; otherwise returns `stale`. */
  replace(execution: ExecutionRecord): Promise<ReplaceOutcome>;

  /** Returns the record, also a deleted one; null if there is none. */
  find(id: string): Promise<ExecutionRecord | null>;

  /** Returns the sandbox's executions that are not deleted, newest first. */
  list(sandboxId: string, page: PageRequest): Promise<Page<ExecutionRecord>>;

  /** Returns the sandbox's executions that run and are not deleted, in no particular order. */
  running(sandboxId: string): Promise<readonly ExecutionRecord[]>;

  /** Returns at most 100 of the sandbox's executions that have ended and are not deleted, without the `newest` newest ones. */
  endedBeyondNewest(sandboxId: string, newest: number): Promise<readonly ExecutionRecord[]>;

  /** Like `SandboxStore.scan`, for the executions that are unsettled (`isExecutionUnsettled`). */
  scanUnsettled(afterId: string | null, limit: number): Promise<readonly ExecutionRecord[]>;

  /** Like `SandboxStore.purge`, with the claims of the records. */
  purge(removedBefore: number): Promise<boolean>;
}
