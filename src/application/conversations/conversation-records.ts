import type { Conversation } from '../../domain/conversation.ts';
import { type EventBody, eventOf, type EventOrigin, statusEvents } from '../../domain/event.ts';
import { Failure } from '../../domain/failure.ts';
import { type Caller, isInScope } from '../../domain/principal.ts';
import type { IdempotencyClaim, ClaimOutcome } from '../../ports/idempotency-claim.ts';
import type { Store } from '../../ports/store.ts';
import type { CoreDeps } from '../use-cases.ts';

/** A change of a record, with its events. The events of the two statuses are added. */
export interface ConversationChange extends Omit<EventOrigin, 'at'> {
  readonly to: Partial<Omit<Conversation, 'id' | 'ownerId' | 'version' | 'updatedAt'>>;
  /** Written before the events of the statuses. */
  readonly events?: readonly EventBody[];
  /** The change also records activity of the sandbox. It is made only if the sandbox is RUNNING. */
  readonly usesSandbox?: boolean;
}

/** Returns the change of the current record. Null changes nothing. */
export type Change = (conversation: Conversation) => ConversationChange | null;

export type WriteOutcome =
  | { readonly kind: 'written'; readonly conversation: Conversation }
  | { readonly kind: 'unchanged' }
  | ClaimOutcome;

/**
 * Changes the record, again if somebody else wrote first. Returns the written record. Null if nothing was written: there is no such record
 * (then `change` is not called), `change` returned null, or the sandbox that it uses does not run.
 */
export async function changeConversation(deps: CoreDeps, id: string, change: Change): Promise<Conversation | null> {
  const outcome = await writeConversation(deps, id, change);
  return outcome.kind === 'written' ? outcome.conversation : null;
}

/** Like {@link changeConversation}, with a claim. Returns the claim's outcome if the claim exists. */
export async function writeConversation(
  { store, clock, logger }: CoreDeps, id: string, change: Change, claim?: IdempotencyClaim,
): Promise<WriteOutcome> {
  for (;;) {
    const from = await store.conversations.find(id);
    const changed = from === null ? null : change(from);
    if (from === null || changed === null) return { kind: 'unchanged' };
    const at = clock.now();
    const to: Conversation = { ...from, ...changed.to, version: from.version + 1, updatedAt: at };
    const { actor, userId = null, reason } = changed;
    const origin = { at, actor, userId, reason };
    const events = [...(changed.events ?? []).map((body) => eventOf(to, body, origin)), ...statusEvents(from, to, origin)];
    const outcome = await store.conversations.replace(to, events, claim, changed.usesSandbox === true ? at : undefined);
    if (outcome.kind === 'stale') continue;
    if (outcome.kind === 'sandbox_not_running') return { kind: 'unchanged' };
    if (outcome.kind !== 'replaced') return outcome;
    if (from.startStatus !== to.startStatus || from.executionStatus !== to.executionStatus) {
      const statuses = { conversation: id, from: from.startStatus, to: to.startStatus, execution: to.executionStatus };
      logger.info({ ...statuses, actor, user: userId, reason: to.statusReason }, 'conversation changed its status');
    }
    return { kind: 'written', conversation: to };
  }
}

/** Returns the record of the conversation. Throws `conversation_not_found` or `store_unavailable`. */
export async function getVisibleConversation(store: Store, caller: Caller | null, id: string): Promise<Conversation> {
  const conversation = await store.conversations.find(id);
  if (conversation === null) throw conversationNotFound(id);
  requireVisible(conversation, caller);
  return conversation;
}

/** Throws `conversation_not_found` if the conversation is not in the scope, or deleted. */
export function requireVisible({ id, ownerId, deletedAt }: Conversation, caller: Caller | null): void {
  if (!isInScope(ownerId, caller) || deletedAt !== null) throw conversationNotFound(id);
}

export function conversationNotFound(id: string): Failure {
  return new Failure('conversation_not_found', { id });
}

/** Returns what is recorded for the branch. A branch may have the name of a member of every object, such as `constructor`. */
export function ofBranch<T>(byBranch: Readonly<Record<string, T>>, branch: string): T | undefined {
  return Object.hasOwn(byBranch, branch) ? byBranch[branch] : undefined;
}
