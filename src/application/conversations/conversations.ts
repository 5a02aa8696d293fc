import type { ConversationLimits } from '../../domain/conversation-limits.ts';
import { startSteps } from '../../domain/conversation-next-step.ts';
import { Failure } from '../../domain/failure.ts';
import { isInScope, type OwnerScope } from '../../domain/principal.ts';
import type { Reason } from '../../domain/reason.ts';
import type { Clock } from '../../ports/clock.ts';
import type { ConversationStore } from '../../ports/conversation-store.ts';
import type { Logger } from '../../ports/logger.ts';
import type { Random } from '../../ports/random.ts';
import type { RepositoryCheckouts } from '../../ports/repository-checkouts.ts';
import type { SandboxRuntime } from '../../ports/sandbox-runtime.ts';
import type { SandboxStore } from '../../ports/sandbox-store.ts';
import type { AgentMemory } from '../agents/agent-memory.ts';
import type { Events } from '../events/events.ts';
import type { Repositories } from '../repositories/repositories.ts';
import type { SandboxSpecs } from '../sandboxes/sandbox-specs.ts';
import type { Sandboxes } from '../sandboxes/sandboxes.ts';
import { waitAtMost } from '../timers.ts';
import { bindUseCases, type Bound } from '../use-cases.ts';
import type { ConversationReconciler } from './conversation-reconciler.ts';
import { type ConversationView, getConversation, searchConversations } from './get-conversation.ts';
import { checkVisible, conversationNotFound, getVisible } from './conversation-records.ts';
import { listChanges } from './list-changes.ts';
import { publishChanges } from './publish-changes.ts';
import { readPatch } from './read-patch.ts';
import { readWorkTree } from './read-work-tree.ts';
import { sendMessage } from './send-message.ts';
import { getTranscript } from './get-transcript.ts';
import { startConversation } from './start-conversation.ts';
import { endWorkChange } from './turns/turn-end.ts';

export type { ConversationView } from './get-conversation.ts';
export type { TranscriptEntry } from './get-transcript.ts';
export type { Changes } from './list-changes.ts';
export type { SentMessage } from './send-message.ts';
export type { StartConversationRequest } from './start-conversation.ts';

/** Requests the end of the current turn, and returns before it ends. Queued messages stay. Throws `conversation_not_found`. */
async function cancelTurn(deps: ConversationsDeps, scope: OwnerScope, id: string): Promise<ConversationView> {
  const view = await getConversation(deps, scope, id);
  const { turn } = view.conversation;
  if (turn !== null) await deps.reconciler.cancel(id, turn.messageId);
  return view;
}

/** Throws `conversation_not_found`, `permission_not_found` (it is no longer open), `invalid_request` (no such option). */
async function answerPermission(
  deps: ConversationsDeps,
  scope: OwnerScope,
  id: string,
  permissionId: string,
  optionId: string,
): Promise<ConversationView> {
  const written = await deps.reconciler.records.change(id, (conversation) => {
    checkVisible(conversation, scope);
    const { permission } = conversation;
    if (permission?.permissionId !== permissionId) throw new Failure('permission_not_found', { id: permissionId });
    const options = permission.options.map((option) => option.optionId);
    if (!options.includes(optionId)) {
      throw new Failure('invalid_request', { problems: [{ argument: 'optionId', reason: { code: 'unknown_option', options } }] });
    }
    return {
      to: { permission: null, executionStatus: 'running' },
      actor: 'user',
      reason: null,
      events: [{ kind: 'permission_answered', data: { permissionId, optionId } }],
    };
  });
  if (written === null) throw conversationNotFound(id);
  // Perhaps no process runs the turn, because its sandbox is frozen.
  deps.reconciler.enqueue(id);
  return await getConversation(deps, scope, id);
}

export interface ConversationUpdate {
  /** Null removes it. */
  readonly title?: string | null | undefined;
  /**
   * True ends the agent, and deletes the sandbox that the conversation started if no other conversation uses it. The transcript stays.
   * Can't be undone.
   */
  readonly archived?: boolean | undefined;
}

/**
 * Changes the title of the conversation, or archives it. Idempotent. Throws `conversation_not_found`, or `conversation_not_ready` if
 * `archived` is false for an archived conversation.
 */
async function updateConversation(
  deps: ConversationsDeps, scope: OwnerScope, id: string, { title, archived }: ConversationUpdate,
): Promise<ConversationView> {
  const { store, clock, reconciler, answerWithinMs } = deps;
  const { archivedAt } = await getVisible(store, scope, id);
  if (archived === false && archivedAt !== null) {
    throw new Failure('conversation_not_ready', { id, reason: { code: 'conversation_archived' } });
  }
  await reconciler.records.change(id, (conversation) => {
    checkVisible(conversation, scope);
    const renamed = title === undefined || title === conversation.title ? {} : { title };
    if (archived === true && conversation.archivedAt === null) {
      const { startStatus: step } = conversation;
      const statusReason: Reason = { code: 'step_failed', step, cause: { code: 'conversation_archived' } };
      const cutOff = startSteps[step].length === 0 ? null : ({ startStatus: 'ERROR', statusReason } as const);
      const to = { ...renamed, archivedAt: clock.now(), executionStatus: null, statusReason: null, ...cutOff };
      return { ...endWorkChange(conversation, to, 'conversation_archived'), reason: cutOff?.statusReason ?? null };
    }
    return 'title' in renamed ? { to: renamed, actor: 'user', reason: null } : null;
  });
  if (archived === true) await waitAtMost(clock, answerWithinMs, reconciler.interrupt(id));
  return await getConversation(deps, scope, id);
}

/** Deletes the conversation for every caller, and its sandbox if no other conversation uses it. Throws `conversation_not_found`. */
async function deleteConversation(deps: ConversationsDeps, scope: OwnerScope, id: string): Promise<void> {
  const { store, clock, reconciler, answerWithinMs } = deps;
  const conversation = await store.find(id);
  if (conversation === null || !isInScope(conversation.ownerId, scope)) throw conversationNotFound(id);
  await reconciler.records.change(id, (conversation) =>
    conversation.deletedAt === null ? endWorkChange(conversation, { deletedAt: clock.now() }, 'conversation_deleted') : null,
  );
  await waitAtMost(clock, answerWithinMs, reconciler.interrupt(id));
}

const useCases = {
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

/**
 * The use cases of conversations. `start` takes the owner, the others the caller's scope. Conversations outside the scope are not found.
 */
export type Conversations = Bound<typeof useCases>;

export function createConversations(deps: ConversationsDeps): Conversations {
  return bindUseCases(deps, useCases);
}

export interface ConversationDeps {
  readonly store: ConversationStore;
  readonly sandboxStore: SandboxStore;
  readonly sandboxes: Sandboxes;
  readonly repositories: Repositories;
  readonly checkouts: RepositoryCheckouts;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
}

export interface ConversationsDeps extends ConversationDeps {
  readonly specs: SandboxSpecs;
  readonly runtime: Pick<SandboxRuntime, 'execute' | 'getFiles'>;
  /** The first part of the names of pushed branches. */
  readonly product: string;
  readonly reconciler: ConversationReconciler;
  readonly conversationLimits: ConversationLimits;
  readonly events: Pick<Events, 'page'>;
  readonly agentMemory: AgentMemory;
  /** How long to wait for the end of a deleted or archived conversation, in milliseconds. */
  readonly answerWithinMs: number;
}
