import type { Conversation } from '../../domain/conversation.ts';
import { sandboxLoss, shownExecution } from '../../domain/conversation-next-step.ts';
import type { Sandbox, SandboxStatus } from '../../domain/sandbox.ts';
import type { SandboxStore } from '../../ports/sandbox-store.ts';

/**
 * A conversation as its owner sees it, and the status of its sandbox; MISSING when the sandbox was deleted. Its
 * `executionStatus` is never `running` while the sandbox rests or is lost.
 */
export interface ConversationView {
  readonly conversation: Conversation;
  readonly sandboxStatus: SandboxStatus;
}

/** The views of conversations, read from the store only. */
export async function viewsOf(store: SandboxStore, conversations: readonly Conversation[]): Promise<ConversationView[]> {
  const ids = [...new Set(conversations.map(({ sandboxId }) => sandboxId))];
  const found = ids.length === 0 ? [] : await store.findMany(ids);
  const sandboxes = new Map(found.filter(({ deletedAt }) => deletedAt === null).map((sandbox) => [sandbox.id, sandbox] as const));
  return conversations.map((conversation) => viewOf(conversation, sandboxes.get(conversation.sandboxId) ?? null));
}

function viewOf(conversation: Conversation, sandbox: Sandbox | null): ConversationView {
  const sandboxStatus = sandbox?.status ?? beforeSandbox(conversation);
  const executionStatus = shownExecution(conversation, sandboxStatus);
  const lost = executionStatus === 'error' && conversation.executionStatus !== 'error';
  const statusDetail = lost ? sandboxLoss(sandbox) : conversation.statusDetail;
  return { conversation: { ...conversation, executionStatus, statusDetail }, sandboxStatus };
}

/** A sandbox that is not written down is about to be, or was purged. */
function beforeSandbox({ startStatus, startsSandbox }: Conversation): SandboxStatus {
  return startStatus === 'WORKING' && startsSandbox ? 'STARTING' : 'MISSING';
}
