import type { Conversation, QueuedMessage } from './conversation.ts';
import type { EventBody, EventDraft, EventOrigin } from './event.ts';
import { textOf } from './message.ts';

/** The event, as one of the conversation. */
export function eventOf({ id, ownerId, sandboxId }: Conversation, body: EventBody, { at, actor, reason }: EventOrigin): EventDraft {
  return { ...body, at, ownerId, conversationId: id, sandboxId, actor, reason };
}

/** What a change of the record's two statuses tells; `from` is null for a new conversation. */
export function statusEvents(from: Conversation | null, to: Conversation, origin: EventOrigin): EventDraft[] {
  const bodies: EventBody[] = [];
  if (from?.startStatus !== to.startStatus) {
    bodies.push({ kind: 'start_step', data: { from: from?.startStatus ?? null, to: to.startStatus } });
  }
  const before = from?.executionStatus ?? null;
  if (before !== to.executionStatus) bodies.push({ kind: 'execution_changed', data: { from: before, to: to.executionStatus } });
  return bodies.map((body) => eventOf(to, body, origin));
}

/** A message of the user that was taken in. */
export function messageBody({ messageId, message }: QueuedMessage): EventBody {
  return { kind: 'message', data: { messageId, role: 'user', channel: 'answer', text: textOf(message) } };
}
