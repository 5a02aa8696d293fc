import { type Caller, userIdOf } from '../../domain/principal.ts';
import { messageRefusal } from '../../domain/conversation-next-step.ts';
import type { Message } from '../../domain/conversation.ts';
import { messageBody } from '../../domain/event.ts';
import { Failure } from '../../domain/failure.ts';
import { fingerprintOf } from '../../domain/fingerprint.ts';
import type { IdempotencyClaim } from '../../ports/idempotency-claim.ts';
import { unlessRepeated } from '../repeated-request.ts';
import type { ConversationUseCaseDeps } from './conversations.ts';
import { conversationNotFound, getVisibleConversation, requireVisible, writeConversation } from './conversation-records.ts';

export interface SentMessage {
  /** Its id in the events of its turn. */
  readonly messageId: string;
}

/**
 * Adds a message to the conversation's queue and returns when it is durable. The agent gets it after its current turn; a paused sandbox is
 * resumed for it. Messages wait until the conversation is READY. An agent gets a message at most once. If the agent can't be started, the
 * log says so. Throws `conversation_not_found`, `conversation_not_ready` (no agent, a failed start or sandbox, a full queue),
 * `conversation_limit_reached` (agents hold too much in memory), `idempotency_conflict` or `store_unavailable`.
 */
export async function sendMessage(
  deps: ConversationUseCaseDeps,
  caller: Caller,
  id: string,
  message: Message,
  claim?: IdempotencyClaim,
): Promise<SentMessage> {
  const { store, reconciler, random } = deps;
  const { sandboxId, sandboxSpecId } = await getVisibleConversation(store, caller, id);
  // A repeated request gets the same message id. The id depends on the owner, because two callers may use the same key.
  const messageId = claim === undefined ? random.id('msg') : `msg-${fingerprintOf([claim.ownerId, id, claim.key])}`;
  const outcome = await unlessRepeated(store.conversations, claim, async () => {
    deps.agentMemory.check();
    const sandbox = await store.sandboxes.find(sandboxId);
    const spec = deps.specs.find(sandboxSpecId) ?? null;
    const queued = { messageId, message, sandboxVersion: sandbox?.version ?? 0 };
    return await writeConversation(deps, id, (conversation) => {
      requireVisible(conversation, caller);
      const reason = messageRefusal(conversation, message, sandbox, spec);
      if (reason !== null) throw new Failure('conversation_not_ready', { id, reason });
      const to = { queue: [...conversation.queue, queued] };
      return { to, actor: 'user', userId: userIdOf(caller), reason: null, events: [messageBody(queued)] };
    }, claim);
  });
  if (outcome.kind === 'conflict') throw new Failure('idempotency_conflict', { key: claim?.key ?? '' });
  if (outcome.kind === 'unchanged') throw conversationNotFound(id);
  if (outcome.kind !== 'repeated') reconciler.enqueue(id);
  return { messageId };
}
