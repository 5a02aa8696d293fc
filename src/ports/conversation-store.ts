import type { KeptChanges } from '../domain/change.ts';
import type { Conversation, ConversationSortOrder, ConversationStartStatus, AgentStatus } from '../domain/conversation.ts';
import type { ConversationLimits } from '../domain/conversation-limits.ts';
import type { EventDraft } from '../domain/event.ts';
import type { OwnerCount } from '../domain/limit-usage.ts';
import type { OwnerScope } from '../domain/principal.ts';
import type { Page, PageRequest } from '../domain/page.ts';
import type { IdempotencyClaim, ClaimOutcome, InsertOutcome } from './idempotency-claim.ts';
import type { ReplaceOutcome } from './sandbox-store.ts';

/** Times are in milliseconds since the epoch. */
export interface ConversationFilter {
  readonly ids?: readonly string[] | undefined;
  /** Ignores case and accents: `resume` finds `Résumé`. */
  readonly titleContains?: string | undefined;
  readonly createdFrom?: number | undefined;
  readonly createdBefore?: number | undefined;
  readonly updatedFrom?: number | undefined;
  readonly updatedBefore?: number | undefined;
  readonly sandboxId?: string | undefined;
}

export type ConversationCount = OwnerCount & {
  readonly startStatus: ConversationStartStatus;
  readonly executionStatus: AgentStatus | null;
};

/**
 * Keeps the records of conversations. A write is durable when its method resolves. Each method is atomic, also among several
 * processes that use one store. Failure: `store_unavailable`; the write may have been made or not.
 */
export interface ConversationStore {
  /**
   * Adds a record and its events, unless the claim was made before or a limit is reached. Idempotent by id: a record that exists is left
   * as it is, and no event is written. The limits are checked in the transaction of the write, so two never get the last place.
   * Default: no limits.
   */
  insert(
    conversation: Conversation,
    claim?: IdempotencyClaim,
    events?: readonly EventDraft[],
    limits?: ConversationLimits,
  ): Promise<InsertOutcome>;

  /**
   * Compare-and-set: writes the record and its events if the stored record is exactly one version older; otherwise returns `stale`. Nothing
   * is written if the claim was made before. With `activeAt`, first writes the activity of the sandbox, as `SandboxStore.touch` does. If
   * the sandbox is not RUNNING, writes nothing and returns `sandbox_not_running`.
   */
  replace(
    conversation: Conversation,
    events?: readonly EventDraft[],
    claim?: IdempotencyClaim,
    activeAt?: number,
  ): Promise<ReplaceOutcome | ClaimOutcome | { readonly kind: 'sandbox_not_running' }>;

  /** Returns the outcome of the request that made the claim before; null if there was none. */
  findClaim(claim: IdempotencyClaim): Promise<ClaimOutcome | null>;

  /** Undoes an insert, together with its claim. Does nothing if the record was changed since then. Idempotent. */
  undoInsert(id: string): Promise<void>;

  /** Returns the record, also a deleted one; null if there is none. */
  find(id: string): Promise<Conversation | null>;

  /** Returns the conversations of the scope that are not deleted, in the order. */
  search(
    scope: OwnerScope,
    filter: ConversationFilter,
    order: ConversationSortOrder,
    page: PageRequest,
  ): Promise<Page<Conversation>>;

  /** Returns how many conversations each owner of the scope has in each status, without archived and deleted ones. */
  countByStatus(scope: OwnerScope): Promise<readonly ConversationCount[]>;

  /**
   * Returns the conversations of the scope whose start or agent failed, and those that were created before the time and are not READY,
   * without archived and deleted ones; the last changed first.
   */
  findFailedOrSlow(scope: OwnerScope, createdBefore: number, limit: number): Promise<readonly Conversation[]>;

  /** Returns the conversations that use the sandbox: those that are neither deleted nor released. In no particular order. */
  findUsing(sandboxId: string): Promise<readonly Conversation[]>;

  /** Like `SandboxStore.scan`, for the conversations whose start, work (a queue, a turn), archiving or deletion is not finished. */
  scanUnsettled(afterId: string | null, limit: number): Promise<readonly Conversation[]>;

  /** Stores the changes of a conversation in place of earlier ones, and adds the events. */
  keepChanges(id: string, kept: KeptChanges, events?: readonly EventDraft[]): Promise<void>;

  /** Returns the kept changes of the conversation; null if there are none. */
  findKeptChanges(id: string): Promise<KeptChanges | null>;

  /** Like `SandboxStore.purge`, with the kept changes and the events of the records. Changes of status are kept. */
  purge(removedBefore: number): Promise<boolean>;
}
