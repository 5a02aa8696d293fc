import type { ConversationLimits } from '../../domain/conversation-limits.ts';
import type { AgentMemory } from '../agents/agent-memory-limit.ts';
import type { Bound } from '../use-cases.ts';
import type { Events } from '../events/events.ts';
import type { Repositories } from '../repositories/repositories.ts';
import type { SandboxSpecs } from '../sandboxes/sandbox-specs.ts';
import type { Sandboxes } from '../sandboxes/sandboxes.ts';
import { answerPermission } from './answer-permission.ts';
import { cancelTurn } from './cancel-turn.ts';
import type { ChangeDeps } from './conversation-work-tree.ts';
import type { ConversationReconciler } from './conversation-reconciler.ts';
import { deleteConversation } from './delete-conversation.ts';
import { getConversation, searchConversations } from './get-conversation.ts';
import { listChanges } from './list-changes.ts';
import { publishChanges } from './publish-changes.ts';
import { readPatch } from './read-patch.ts';
import { readWorkTree } from './read-work-tree.ts';
import { sendMessage } from './send-message.ts';
import { getTranscript } from './get-transcript.ts';
import { startConversation } from './start-conversation.ts';
import { updateConversation } from './update-conversation.ts';

export type { ConversationView } from './get-conversation.ts';
export type { TranscriptEntry } from './get-transcript.ts';
export type { Changes } from './list-changes.ts';
export type { SentMessage } from './send-message.ts';
export type { StartConversationRequest } from './start-conversation.ts';

export const conversationUseCases = {
  start: startConversation,
  get: getConversation,
  search: searchConversations,
  send: sendMessage,
  cancel: cancelTurn,
  answerPermission,
  update: updateConversation,
  transcript: getTranscript,
  changes: listChanges,
  patch: readPatch,
  workTree: readWorkTree,
  publish: publishChanges,
  delete: deleteConversation,
};

/** The use cases of conversations. Conversations outside the scope of the caller are not found. */
export type Conversations = Bound<typeof conversationUseCases>;

/** The deps that the use cases and the reconciler of conversations share. */
export interface ConversationDeps extends ChangeDeps {
  readonly sandboxes: Sandboxes;
  readonly repositories: Repositories;
}

export interface ConversationUseCaseDeps extends ConversationDeps {
  readonly specs: SandboxSpecs;
  /** The first part of the names of pushed branches. */
  readonly product: string;
  readonly reconciler: ConversationReconciler;
  readonly conversationLimits: ConversationLimits;
  readonly events: Pick<Events, 'page'>;
  readonly agentMemory: AgentMemory;
  /** Runs the publications of one conversation one after another. */
  readonly publications: { runExclusive<T>(id: string, publish: () => Promise<T>, signal: AbortSignal): Promise<T> };
  /** How long to wait for the end of a deleted or archived conversation, in milliseconds. */
  readonly answerWithinMs: number;
}
