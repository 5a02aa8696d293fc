import type { Conversation, ConversationSortOrder } from '../../domain/conversation.ts';
import { sandboxLossReason, shownExecutionStatus } from '../../domain/conversation-next-step.ts';
import type { Page, PageRequest } from '../../domain/page.ts';
import { type Caller, scopeOf } from '../../domain/principal.ts';
import type { Reason } from '../../domain/reason.ts';
import type { Sandbox, SandboxStatus } from '../../domain/sandbox.ts';
import type { ConversationFilter } from '../../ports/conversation-store.ts';
import { findSandbox } from '../sandboxes/sandbox-records.ts';
import { getVisibleConversation } from './conversation-records.ts';
import type { ConversationUseCaseDeps } from './conversations.ts';

/** `sandboxStatus` is MISSING if the sandbox was deleted. `executionStatus` is never `running` while the sandbox is paused or lost. */
export interface ConversationView {
  readonly conversation: Conversation;
  readonly sandboxStatus: SandboxStatus;
}

/** Returns the conversation. Throws `conversation_not_found` or `store_unavailable`. */
export async function getConversation(deps: ConversationUseCaseDeps, caller: Caller | null, id: string): Promise<ConversationView> {
  const conversation = await getVisibleConversation(deps.store, caller, id);
  return viewOf(conversation, await findSandbox(deps.store, null, conversation.sandboxId));
}

export async function searchConversations(
  { store }: ConversationUseCaseDeps,
  caller: Caller | null,
  filter: ConversationFilter,
  order: ConversationSortOrder,
  page: PageRequest,
): Promise<Page<ConversationView>> {
  const { items, next } = await store.conversations.search(scopeOf(caller), filter, order, page);
  const ids = [...new Set(items.map(({ sandboxId }) => sandboxId))];
  const found = ids.length === 0 ? [] : await store.sandboxes.findMany(ids);
  const sandboxes = new Map(found.filter(({ deletedAt }) => deletedAt === null).map((sandbox) => [sandbox.id, sandbox] as const));
  return { items: items.map((conversation) => viewOf(conversation, sandboxes.get(conversation.sandboxId) ?? null)), next };
}

function viewOf(conversation: Conversation, sandbox: Sandbox | null): ConversationView {
  const sandboxStatus = sandbox?.status ?? statusWithoutRecord(conversation);
  const executionStatus = shownExecutionStatus(conversation, sandboxStatus, sandbox);
  const lost = executionStatus === 'error' && conversation.executionStatus !== 'error';
  const statusReason = lost ? sandboxLossReason(sandbox) : withSandbox(conversation.statusReason, sandbox);
  return { conversation: { ...conversation, executionStatus, statusReason }, sandboxStatus };
}

/** Returns the reason without the sandbox that stays, if that was deleted meanwhile. */
function withSandbox(reason: Reason | null, sandbox: Sandbox | null): Reason | null {
  return reason?.code === 'changes_not_kept' && sandbox === null ? { code: reason.code, cause: reason.cause } : reason;
}

/** A sandbox without a record is not written yet, or was purged. */
function statusWithoutRecord({ startStatus, startsSandbox }: Conversation): SandboxStatus {
  return startStatus === 'WORKING' && startsSandbox ? 'STARTING' : 'MISSING';
}
