import type { Conversation, Message } from './conversation.ts';
import type { ReasonOf } from './reason.ts';

/** How many conversations may exist at once; null is no limit. */
export interface ConversationLimits {
  readonly conversationsPerOwner: number | null;
  readonly conversations: number | null;
  /** In one sandbox. There, each conversation has its own agent. */
  readonly conversationsPerSandbox: number | null;
}

export const unlimitedConversations: ConversationLimits = {
  conversationsPerOwner: null,
  conversations: null,
  conversationsPerSandbox: null,
};

/** How many messages, and how many bytes of them, may wait for an agent. */
export const queueLimits = { messages: 100, bytes: 1_048_576 };

/** Returns why the queue does not accept the message; null if it does. */
export function queueRefusal({ queue }: Conversation, message: Message): ReasonOf<'queue_full'> | null {
  if (queue.length >= queueLimits.messages) return { code: 'queue_full', limit: 'messages', max: queueLimits.messages };
  const bytes = [...queue.map((waiting) => waiting.message), message].reduce((sum, one) => sum + sizeOf(one), 0);
  return bytes > queueLimits.bytes ? { code: 'queue_full', limit: 'bytes', max: queueLimits.bytes } : null;
}

/** Returns an upper bound without encoding: UTF-8 takes at most three bytes for each unit of a JavaScript string. */
function sizeOf({ content }: Message): number {
  return content.reduce((sum, { text }) => sum + 3 * text.length, 0);
}
