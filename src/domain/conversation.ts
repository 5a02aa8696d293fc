import type { PermissionPolicy, PermissionRequest } from './agent.ts';
import type { Sandbox } from './sandbox.ts';
import type { SandboxSpec } from './sandbox-spec.ts';

export const conversationStartStatuses = [
  'WORKING',
  'WAITING_FOR_SANDBOX',
  'PREPARING_REPOSITORY',
  'LISTING_MICROAGENTS',
  'STARTING_AGENT',
  'READY',
  'ERROR',
] as const;

/** How far the start of a conversation has come. */
export type ConversationStartStatus = (typeof conversationStartStatuses)[number];

export const executionStatuses = ['idle', 'running', 'waiting_for_permission', 'error'] as const;

export type ExecutionStatus = (typeof executionStatuses)[number];

/** A part of a message. */
export interface TextContent {
  readonly type: 'text';
  readonly text: string;
}

export interface Message {
  readonly content: readonly TextContent[];
}

/** A message that was taken in. */
export interface QueuedMessage {
  readonly messageId: string;
  readonly message: Message;
}

/** What is written down of a conversation. Times are in milliseconds since the epoch. */
export interface Conversation {
  readonly id: string;
  readonly ownerId: string;
  readonly title: string | null;
  /** Chosen when the conversation is made, so that a start which is interrupted goes on with the same sandbox. */
  readonly sandboxId: string;
  readonly sandboxSpecId: string;
  /** Whether the conversation starts its sandbox itself, rather than taking one that exists. */
  readonly startsSandbox: boolean;
  readonly selectedRepository: string | null;
  readonly selectedBranch: string | null;
  readonly gitProvider: string | null;
  /** Taken in and not yet handed to the agent, oldest first. */
  readonly queue: readonly QueuedMessage[];
  /** The message that the agent works on; null between turns. */
  readonly turn: QueuedMessage | null;
  /** What the agent waits for; null otherwise. */
  readonly permission: PermissionRequest | null;
  readonly permissionPolicy: PermissionPolicy;
  /** The agent's own name for its session, with which it may be found again; null before the first. */
  readonly agentSessionId: string | null;
  /** Paths of the repository's microagents, relative to its root; null before they were listed. */
  readonly microagents: readonly string[] | null;
  readonly startStatus: ConversationStartStatus;
  /** What the agent does; null while there is none. */
  readonly executionStatus: ExecutionStatus | null;
  readonly statusDetail: string | null;
  readonly version: number;
  readonly createdAt: number;
  readonly updatedAt: number;
  readonly deletedAt: number | null;
  readonly removedAt: number | null;
}

export const conversationSortOrders = ['CREATED_AT', 'CREATED_AT_DESC', 'UPDATED_AT', 'UPDATED_AT_DESC'] as const;

export type ConversationSortOrder = (typeof conversationSortOrders)[number];

/**
 * A text as titles are compared: two that differ only in case, or in how an accent is encoded, become one. Upper case,
 * because lower case depends on a letter's place in its word (a Greek sigma at the end).
 */
export function foldTitle(text: string): string {
  return text.normalize('NFC').toUpperCase();
}

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

/**
 * Where in its sandbox a conversation works: the spec's working directory. One that brings a repository into a sandbox that
 * it was given has a folder of its own below, so that it overwrites nothing of whoever else works there. It follows
 * from what never changes, so that it is the same after every restart.
 */
export function workingDirOf({ id, startsSandbox, selectedRepository }: Conversation, { workingDir }: SandboxSpec): string {
  const shared = !startsSandbox && selectedRepository !== null;
  return shared ? `${workingDir.replace(/\/+$/, '')}/${id}` : workingDir;
}

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
