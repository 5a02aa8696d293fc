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
 * Keeps the records of conversations. What a method has answered is durable; each method is atomic, also among several
 * processes over one store. Failure: `store_unavailable`; after it, a write may or may not have been made.
 */
export interface ConversationStore {
  /**
   * Adds a record and the events that go with it, unless the claim says that this request was made before. Idempotent by
   * id: a record that exists already is left as it is, and no event is written.
   */
  insert(conversation: Conversation, claim?: IdempotencyClaim, events?: readonly EventDraft[]): Promise<InsertConversationOutcome>;

  /**
   * Compare-and-set: writes the record, and the events that go with it, if the stored one is exactly one version
   * older; `stale` otherwise. With a claim that was made before nothing is written.
   */
  replace(conversation: Conversation, events?: readonly EventDraft[]): Promise<ReplaceOutcome>;
  replace(conversation: Conversation, events: readonly EventDraft[], claim: IdempotencyClaim | undefined): Promise<ReplaceOutcome | ClaimOutcome>;

  /** Takes back an insert that turned out not to be possible, its claim included. Idempotent. */
  withdraw(id: string): Promise<void>;

  /** The record, a deleted one too; null when there is none. */
  find(id: string): Promise<Conversation | null>;

  /** The owner's conversations that are not deleted, in the order. */
  search(
    ownerId: string,
    filter: ConversationFilter,
    order: ConversationSortOrder,
    page: PageRequest,
  ): Promise<Page<Conversation>>;

  /** The conversations that are not deleted and use the sandbox, in no particular order. */
  findUsing(sandboxId: string): Promise<readonly Conversation[]>;

  /** Those whose start, work (a queue, a turn) or deletion is under way, by id, from after the given one: what a sweep goes through. */
  scanUnsettled(afterId: string | null, limit: number): Promise<readonly Conversation[]>;

  /** Forgets the records that were removed before the time. */
  purge(removedBefore: number): Promise<void>;
}
