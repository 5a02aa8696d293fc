import { permissionPolicies } from '../../domain/agent.ts';
import { isUnsettled } from '../../domain/conversation-start.ts';
import { type Conversation, conversationStartStatuses, executionStatuses, foldTitle } from '../../domain/conversation.ts';
import type { ConversationRow } from './database.ts';
import {
  jsonOrNull, parseColumn, parseOrNull, PathsColumn, PermissionColumn, QueueColumn, QueuedMessageColumn, wordOf, wordOrNull,
} from './json-columns.ts';

export function rowOfConversation(conversation: Conversation): ConversationRow {
  return {
    id: conversation.id,
    owner_id: conversation.ownerId,
    title: conversation.title,
    title_folded: foldTitle(conversation.title ?? ''),
    sandbox_id: conversation.sandboxId,
    sandbox_spec_id: conversation.sandboxSpecId,
    starts_sandbox: Number(conversation.startsSandbox),
    selected_repository: conversation.selectedRepository,
    selected_branch: conversation.selectedBranch,
    git_provider: conversation.gitProvider,
    start_status: conversation.startStatus,
    execution_status: conversation.executionStatus,
    status_detail: conversation.statusDetail,
    version: conversation.version,
    created_at: conversation.createdAt,
    updated_at: conversation.updatedAt,
    deleted_at: conversation.deletedAt,
    removed_at: conversation.removedAt,
    unsettled: Number(isUnsettled(conversation)),
    queue: JSON.stringify(conversation.queue),
    turn: jsonOrNull(conversation.turn),
    permission: jsonOrNull(conversation.permission),
    permission_policy: conversation.permissionPolicy,
    agent_session_id: conversation.agentSessionId,
    microagents: jsonOrNull(conversation.microagents),
  };
}

export function conversationOf(row: ConversationRow): Conversation {
  return {
    id: row.id,
    ownerId: row.owner_id,
    title: row.title,
    sandboxId: row.sandbox_id,
    sandboxSpecId: row.sandbox_spec_id,
    startsSandbox: row.starts_sandbox === 1,
    selectedRepository: row.selected_repository,
    selectedBranch: row.selected_branch,
    gitProvider: row.git_provider,
    queue: row.queue === '[]' ? [] : parseColumn(QueueColumn, row.queue),
    turn: parseOrNull(QueuedMessageColumn, row.turn),
    permission: parseOrNull(PermissionColumn, row.permission),
    permissionPolicy: wordOf(permissionPolicies, row.permission_policy),
    agentSessionId: row.agent_session_id,
    microagents: parseOrNull(PathsColumn, row.microagents),
    startStatus: wordOf(conversationStartStatuses, row.start_status),
    executionStatus: wordOrNull(executionStatuses, row.execution_status),
    statusDetail: row.status_detail,
    version: row.version,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    deletedAt: row.deleted_at,
    removedAt: row.removed_at,
  };
}
