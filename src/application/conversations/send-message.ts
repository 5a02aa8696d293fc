import type { OwnerScope } from '../../domain/principal.ts';
import { messageRefusal } from '../../domain/conversation-next-step.ts';
import type { Conversation, Message } from '../../domain/conversation.ts';
import { messageBody } from '../../domain/event.ts';
import { Failure } from '../../domain/failure.ts';
import { fingerprintOf } from '../../domain/fingerprint.ts';
import type { IdempotencyClaim } from '../../ports/idempotency-claim.ts';
import type { ConversationsDeps } from './conversations.ts';
import { checkVisible, getConversation, getVisible, type ConversationView } from './get-conversation.ts';

/** A message that was accepted, with the id that the events of its turn name. */
export interface SentMessage extends ConversationView {
  readonly messageId: string;
}

/**
 * Puts a message into the conversation's queue and returns when that is durable. The agent gets it when its present turn has
 * ended; a paused sandbox is resumed for it. Before the conversation is READY messages wait. An agent gets a message at most
 * once; if its agent can't be started, the log says so. Throws `conversation_not_found`, `conversation_not_ready` (no agent, a
 * failed start or sandbox, a full queue), `conversation_limit_reached` (agents hold too much in memory), `idempotency_conflict` or
 * `store_unavailable`.
 */
export async function sendMessage(
  deps: ConversationsDeps,
  scope: OwnerScope,
  id: string,
  message: Message,
  claim?: IdempotencyClaim,
): Promise<SentMessage> {
  const { store, sandboxStore, reconciler, random, specs } = deps;
  const known = await getVisible(store, scope, id);
  const sandbox = await sandboxStore.find(known.sandboxId);
  const spec = specs.find(known.sandboxSpecId) ?? null;
  // A request that is made again gets the same id for its message. The keys of two callers have nothing to do with each other.
  const messageId = claim === undefined ? random.id('msg') : `msg-${fingerprintOf([claim.ownerId, id, claim.key])}`;
  const queued = { messageId, message, sandboxVersion: sandbox?.version ?? 0 };
  const enqueue = (conversation: Conversation) => {
    checkVisible(conversation, scope);
    const reason = messageRefusal(conversation, message, sandbox, spec);
    if (reason !== null) throw new Failure('conversation_not_ready', { id, reason });
    return { to: { queue: [...conversation.queue, queued] }, actor: 'user' as const, reason: null, events: [messageBody(queued)] };
  };
  // A repeat gets its answer all the same.
  if (claim === undefined || (await store.findClaim(claim)) === null) deps.agentMemory.check();
  const outcome = await reconciler.records.write(id, enqueue, { claim, known });
  if (outcome.kind === 'conflict') throw new Failure('idempotency_conflict', { key: claim?.key ?? '' });
  if (outcome.kind !== 'repeated') reconciler.enqueue(id);
  return { ...(await getConversation(deps, scope, id)), messageId };
}
