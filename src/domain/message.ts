import type { Conversation, Message } from './conversation.ts';

/** What may wait for an agent at once. */
export const queueLimits = { messages: 100, bytes: 1_048_576 };

/** The message as one text. */
export function textOf({ content }: Message): string {
  return content.map(({ text }) => text).join('\n');
}

/** Why the conversation's queue does not take the message, in words; null where it does. */
export function queueRefusal({ queue }: Conversation, message: Message): string | null {
  if (queue.length >= queueLimits.messages) return `${queueLimits.messages} messages wait already; wait until the agent has taken some`;
  const bytes = [...queue.map((waiting) => waiting.message), message].reduce((sum, one) => sum + sizeOf(one), 0);
  return bytes > queueLimits.bytes ? `the messages that wait would exceed ${queueLimits.bytes} bytes; wait until the agent has taken some` : null;
}

/** UTF-8 takes at most three bytes for each of JavaScript's units: an upper bound that needs no encoder. */
function sizeOf({ content }: Message): number {
  return content.reduce((sum, { text }) => sum + 3 * text.length, 0);
}
