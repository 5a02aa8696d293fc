import type { Conversation, ConversationSortOrder } from '../domain/conversation.ts';
import type { EventDraft } from '../domain/event.ts';
import type { Page, PageRequest } from '../domain/page.ts';
import type { IdempotencyClaim, ClaimOutcome } from './idempotency-claim.ts';
import type { ReplaceOutcome } from './sandbox-store.ts';

/** Times are in milliseconds since the epoch. */
export interface ConversationFilter {
  readonly ids?: readonly string[];
  /** Case-insensitive. */
  readonly titleContains?: string;
  readonly createdFrom?: number;
  readonly createdBefore?: number;
  readonly updatedFrom?: number;
  readonly updatedBefore?: number;
  readonly sandboxId?: string;
}

export type InsertConversationOutcome = { readonly kind: 'inserted' } | ClaimOutcome;

/**
 * Keeps the records of conversations. A write is durable when its method resolves. Each method is atomic, also among several
 * processes that use one store. Failure: `store_unavailable`; the write may have been made or not.
 */
export interface ConversationStore {
  /**
   * Adds a record and its events, unless the claim was made before. Idempotent by id: a record that exists is left as it is,
   * and no event is written.
   */
  insert(conversation: Conversation, claim?: IdempotencyClaim, events?: readonly EventDraft[]): Promise<InsertConversationOutcome>;

  /**
   * Compare-and-set: writes the record and its events if the stored record is exactly one version older; otherwise returns
   * `stale`. Nothing is written if the claim was made before.
   */
  replace(conversation: Conversation, events?: readonly EventDraft[]): Promise<ReplaceOutcome>;
  replace(
    conversation: Conversation,
    events: readonly EventDraft[],
    claim: IdempotencyClaim | undefined,
  ): Promise<ReplaceOutcome | ClaimOutcome>;

  /** Undoes an insert, together with its claim. Idempotent. */
  withdraw(id: string): Promise<void>;

  /** Returns the record, also a deleted one; null if there is none. */
  find(id: string): Promise<Conversation | null>;

  /** Returns the owner's conversations that are not deleted, in the order. */
  search(
    ownerId: string,
    filter: ConversationFilter,
    order: ConversationSortOrder,
    page: PageRequest,
  ): Promise<Page<Conversation>>;

  /** Returns the conversations that use the sandbox and are not deleted, in no particular order. */
  findUsing(sandboxId: string): Promise<readonly Conversation[]>;

  /** Returns those whose start, work (a queue, a turn) or deletion is not finished, ordered by id, after the given id. */
  scanUnsettled(afterId: string | null, limit: number): Promise<readonly Conversation[]>;

  /** Deletes the records that were removed before the time. */
  purge(removedBefore: number): Promise<void>;
}
