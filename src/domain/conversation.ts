import type { PermissionPolicy, PermissionRequest } from './agent.ts';
import type { PullRequest, StartPoint } from './change.ts';
import type { ConversationMicroagent } from './conversation-microagents.ts';
import type { Reason } from './reason.ts';
import type { Sandbox } from './sandbox.ts';
import type { SandboxParameters } from './sandbox-parameters.ts';
import type { SandboxSpec } from './sandbox-spec.ts';

export const conversationStartStatuses = [
  'WORKING',
  'WAITING_FOR_SANDBOX',
  'PREPARING_REPOSITORY',
  'RUNNING_SETUP_SCRIPT',
  'LISTING_MICROAGENTS',
  'STARTING_AGENT',
  'READY',
  'ERROR',
] as const;

/** How far the start of a conversation has come. */
export type ConversationStartStatus = (typeof conversationStartStatuses)[number];

export const executionStatuses = ['idle', 'running', 'waiting_for_permission', 'frozen', 'error'] as const;

export type ExecutionStatus = (typeof executionStatuses)[number];

/** Returns true if it is archived or deleted, so no work is left in it. */
export function isEnded({ archivedAt, deletedAt }: Pick<Conversation, 'archivedAt' | 'deletedAt'>): boolean {
  return archivedAt !== null || deletedAt !== null;
}

export interface TextContent {
  readonly type: 'text';
  readonly text: string;
}

export interface Message {
  readonly content: readonly TextContent[];
}

/** A message that was accepted. */
export interface QueuedMessage {
  readonly messageId: string;
  readonly message: Message;
  /** The version of the sandbox's record when it was accepted; 0 if there was none yet. */
  readonly sandboxVersion: number;
}

/** Where the agent of a turn is, so that another process can go on with it. Streams count from the agent's start. */
export interface TurnAgent {
  readonly sessionId: string;
  /** By which the agent answers the message. */
  readonly requestId: number;
  /** How many bytes came before the message, on its standard input and its standard output. */
  readonly stdin: number;
  readonly stdout: number;
  /** The sequence number of the newest event before the turn. */
  readonly from: number;
  /** What goes to the agent before the message; null is nothing. */
  readonly context: string | null;
}

/** A message that the agent works on. */
export interface StartedMessage extends QueuedMessage {
  /** Absent if the turn ends with the process that runs it. */
  readonly agent?: TurnAgent | undefined;
  /** True once the user has cancelled its turn. */
  readonly cancelled?: boolean | undefined;
}

export interface RepositoryLocation {
  readonly provider: string;
  readonly path: string;
}

/** The record of a conversation. Times are in milliseconds since the epoch. */
export interface Conversation {
  readonly id: string;
  readonly ownerId: string;
  readonly title: string | null;
  /** Chosen with the conversation, so that an interrupted start continues with the same sandbox. */
  readonly sandboxId: string;
  readonly sandboxSpecId: string;
  /** True if the conversation starts its sandbox; false if it uses one that exists. */
  readonly startsSandbox: boolean;
  /** The parameters of the sandbox that it starts. */
  readonly sandboxParameters: SandboxParameters;
  readonly selectedRepository: string | null;
  readonly selectedBranch: string | null;
  readonly gitProvider: string | null;
  /** The repository's path as the provider had it when it was found. The selected name may lead elsewhere later. */
  readonly repositoryPath: string | null;
  /** What was checked out for it; null before that. */
  readonly startPoint: StartPoint | null;
  /** From each branch that it pushed to, the commits at which it may have left it. The last one is the newest. */
  readonly published: Readonly<Record<string, readonly string[]>>;
  /** The branches that it pushed to, each with the commit that it pushed last. */
  readonly publications: Readonly<Record<string, string>>;
  /** From each branch that it pushed to, the pull request that it last opened or updated for it. */
  readonly pullRequests: Readonly<Record<string, PullRequest>>;
  readonly queue: readonly QueuedMessage[];
  readonly turn: StartedMessage | null;
  readonly permission: PermissionRequest | null;
  readonly permissionPolicy: PermissionPolicy;
  /** The agent's own id of its session, to load it again; null before the first. */
  readonly agentSessionId: string | null;
  /** Those of the repository that could be read; null before they are listed. */
  readonly microagents: readonly ConversationMicroagent[] | null;
  readonly startStatus: ConversationStartStatus;
  /** What the agent does; null while there is none. */
  readonly executionStatus: ExecutionStatus | null;
  /** Why it has its statuses, or what happens right now. */
  readonly statusReason: Reason | null;
  readonly version: number;
  readonly createdAt: number;
  readonly updatedAt: number;
  /** When it was archived: its agent and its sandbox end, and what was said stays. */
  readonly archivedAt: number | null;
  /** When they had ended. */
  readonly releasedAt: number | null;
  readonly deletedAt: number | null;
  readonly removedAt: number | null;
}

export const conversationSortOrders = ['CREATED_AT', 'CREATED_AT_DESC', 'UPDATED_AT', 'UPDATED_AT_DESC'] as const;

export type ConversationSortOrder = (typeof conversationSortOrders)[number];

/** Without differences of case and accents. Upper case, because the lower case of a Greek sigma depends on its place in the word. */
export function foldTitle(text: string): string {
  return text.normalize('NFC').toUpperCase();
}

export function textOf({ content }: Message): string {
  return content.map(({ text }) => text).join('\n');
}

/**
 * Returns the conversation's working directory in its sandbox: the spec's. A conversation that brings a repository into a
 * sandbox which existed before gets its own folder below it, so that it overwrites nothing there. The result depends only on
 * what never changes, so it is the same after a restart.
 */
export function workingDirOf({ id, startsSandbox, selectedRepository }: Conversation, { workingDir }: SandboxSpec): string {
  const shared = !startsSandbox && selectedRepository !== null;
  return shared ? `${workingDir.replace(/\/+$/, '')}/${id}` : workingDir;
}

export interface NewConversation
  extends Pick<Conversation, 'id' | 'ownerId' | 'title' | 'selectedRepository' | 'selectedBranch' | 'sandboxId'> {
  readonly repository: RepositoryLocation | null;
  /** The existing sandbox that it uses; null if it starts one with the id `sandboxId`. */
  readonly taken: Sandbox | null;
  readonly spec: SandboxSpec;
  readonly sandboxParameters?: SandboxParameters;
  /** Waits in the queue until the agent runs; without an agent it stays there. */
  readonly initialMessage: QueuedMessage | null;
  /** Null is the spec's. */
  readonly permissionPolicy: PermissionPolicy | null;
  readonly now: number;
}

export function newConversation(from: NewConversation): Conversation {
  const { repository, taken, spec, sandboxParameters = {}, initialMessage, permissionPolicy, now, ...given } = from;
  return {
    ...given,
    gitProvider: repository?.provider ?? null,
    repositoryPath: repository?.path ?? null,
    startPoint: null,
    published: {},
    publications: {},
    pullRequests: {},
    sandboxSpecId: spec.id,
    startsSandbox: taken === null,
    sandboxParameters,
    queue: initialMessage === null ? [] : [initialMessage],
    turn: null,
    permission: null,
    permissionPolicy: permissionPolicy ?? spec.agent?.permissions ?? 'ask',
    agentSessionId: null,
    microagents: null,
    startStatus: 'WORKING',
    executionStatus: null,
    statusReason: null,
    version: 1,
    createdAt: now,
    updatedAt: now,
    archivedAt: null,
    releasedAt: null,
    deletedAt: null,
    removedAt: null,
  };
}
