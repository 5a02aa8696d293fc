/** How many conversations may exist at once; null is no limit. */
export interface ConversationLimits {
  readonly conversationsPerOwner: number | null;
  readonly conversations: number | null;
  /** In one sandbox, where each has an agent of its own. */
  readonly conversationsPerSandbox: number | null;
}

export const unlimitedConversations: ConversationLimits = {
  conversationsPerOwner: null,
  conversations: null,
  conversationsPerSandbox: null,
};

/** How many there are without the deleted ones. */
export interface ConversationCounts {
  readonly ofOwner: number;
  readonly all: number;
  readonly inSandbox: number;
}

export interface ConversationLimitReached {
  readonly limit: 'conversations_per_owner' | 'conversations' | 'conversations_per_sandbox';
  readonly max: number;
}

/** Returns the limit that one more conversation would exceed; null if there is room. */
export function conversationLimitReached(limits: ConversationLimits, counts: ConversationCounts): ConversationLimitReached | null {
  const rules = [
    ['conversations_per_owner', limits.conversationsPerOwner, counts.ofOwner],
    ['conversations', limits.conversations, counts.all],
    ['conversations_per_sandbox', limits.conversationsPerSandbox, counts.inSandbox],
  ] as const;
  for (const [limit, max, count] of rules) if (max !== null && count >= max) return { limit, max };
  return null;
}
