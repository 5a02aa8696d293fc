import type { Conversation, ConversationSortOrder } from '../domain/conversation.ts';
import type { Page, PageRequest } from '../domain/page.ts';
import type { Claim, ClaimOutcome } from './claim.ts';
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
  /** Adds a record, unless the claim says that this request was made before. Idempotent by id. */
  insert(conversation: Conversation, claim?: Claim): Promise<InsertConversationOutcome>;

  /** Compare-and-set: writes the record if the stored one is exactly one generation older; `stale` otherwise. */
  replace(conversation: Conversation): Promise<ReplaceOutcome>;

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

  /** How many conversations that are not deleted use the sandbox. */
  countUsing(sandboxId: string): Promise<number>;

  /** Those whose start or deletion is under way, by id, from after the given one: what a sweep goes through. */
  scanUnsettled(afterId: string | null, limit: number): Promise<readonly Conversation[]>;

  /** Forgets the records that were removed before the time. */
  purge(removedBefore: number): Promise<void>;
}
