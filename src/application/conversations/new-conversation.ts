import type { PermissionPolicy } from '../../domain/agent.ts';
import type { Conversation, Message } from '../../domain/conversation.ts';
import type { Sandbox } from '../../domain/sandbox.ts';
import type { SandboxSpec } from '../../domain/sandbox-spec.ts';

/** What a new conversation is made from. */
export interface NewConversation {
  readonly id: string;
  readonly ownerId: string;
  readonly title: string | null;
  /** The sandbox that it takes; null where it starts one under `sandboxId`. */
  readonly taken: Sandbox | null;
  readonly sandboxId: string;
  readonly spec: SandboxSpec;
  readonly selectedRepository: string | null;
  readonly selectedBranch: string | null;
  readonly gitProvider: string | null;
  /** Waits in the queue until the agent is there; without an agent it stays there. */
  readonly initialMessage: { readonly messageId: string; readonly message: Message } | null;
  /** Null is the spec's. */
  readonly permissionPolicy: PermissionPolicy | null;
  readonly now: number;
}

/** The record of a conversation that is about to be started. */
export function newConversation(from: NewConversation): Conversation {
  return {
    id: from.id,
    ownerId: from.ownerId,
    title: from.title,
    sandboxId: from.sandboxId,
    sandboxSpecId: from.spec.id,
    startsSandbox: from.taken === null,
    selectedRepository: from.selectedRepository,
    selectedBranch: from.selectedBranch,
    gitProvider: from.gitProvider,
    queue: from.initialMessage === null ? [] : [from.initialMessage],
    turn: null,
    permission: null,
    // Without an agent nothing asks; whoever gives it one later is asked.
    permissionPolicy: from.permissionPolicy ?? from.spec.agent?.permissions ?? 'ask',
    agentSessionId: null,
    microagents: null,
    startStatus: 'WORKING',
    executionStatus: null,
    statusDetail: null,
    version: 1,
    createdAt: from.now,
    updatedAt: from.now,
    deletedAt: null,
    removedAt: null,
  };
}
