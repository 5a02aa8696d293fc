import type { OpenPermission, PermissionPolicy } from './permission.ts';
import type { PullRequest, StartPoint } from './change.ts';
import type { ConversationMicroagent } from './applicable-microagents.ts';
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

export const agentStatuses = ['idle', 'running', 'waiting_for_permission', 'frozen', 'error'] as const;

export type AgentStatus = (typeof agentStatuses)[number];

/** Returns true if it is archived or deleted, so it takes no more work. */
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

/** The position of a turn's agent, so that another process can continue the turn. Streams count from the agent's start. */
export interface TurnPosition {
  readonly sessionId: string;
  /** The id of the protocol request that the agent answers when the turn ends. */
  readonly requestId: number;
  /** How many bytes came before the message, on the agent's standard input and standard output. */
  readonly stdin: number;
  readonly stdout: number;
  /** The sequence number of the newest event before the turn. */
  readonly from: number;
  /** Text that the agent gets before the message; null if there is none. */
  readonly context: string | null;
}

/** A turn that has begun, with its message. An answer of its user counts as accepted last: it sets `sandboxVersion`. */
export interface StartedTurn extends QueuedMessage {
  /** True if the agent began to work by itself. Then the message is empty. Read by {@link isUnprompted}. */
  readonly unprompted?: boolean | undefined;
  /** Its position. Absent if the turn ends with the process that runs it. */
  readonly agent?: TurnPosition | undefined;
  /** True once the user has cancelled its turn. */
  readonly cancelled?: boolean | undefined;
  /** The id of that user. Absent in older records. */
  readonly cancelledBy?: string | undefined;
}

/** Returns true if nobody sent the turn's message, because the agent began to work by itself. */
export function isUnprompted({ unprompted }: StartedTurn): boolean {
  return unprompted === true;
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
  /** Chosen when the conversation is created, so that an interrupted start continues with the same sandbox. */
  readonly sandboxId: string;
  readonly sandboxSpecId: string;
  /** True if the conversation starts its sandbox; false if it uses one that exists. */
  readonly startsSandbox: boolean;
  /** True if the sandbox ends with the last conversation that uses it, because a conversation started it: this one or another one. */
  readonly endsSandbox: boolean;
  readonly sandboxParameters: SandboxParameters;
  /** The name as the client wrote it. */
  readonly selectedRepository: string | null;
  readonly selectedBranch: string | null;
  readonly gitProvider: string | null;
  /** The provider's path of the repository when it was found. Later the selected name may mean another repository. */
  readonly repositoryPath: string | null;
  /** The commit and branch that were checked out; null before that. */
  readonly startPoint: StartPoint | null;
  /** For each branch, the newest commits that it pushed or tried to push there, the last one last. */
  readonly possibleTips: Readonly<Record<string, readonly string[]>>;
  /** The branches that it pushed to, each with the commit that it pushed last. */
  readonly publications: Readonly<Record<string, string>>;
  /** For each branch that it pushed to, the pull request that it last opened or updated. */
  readonly pullRequests: Readonly<Record<string, PullRequest>>;
  readonly queue: readonly QueuedMessage[];
  readonly turn: StartedTurn | null;
  readonly permission: OpenPermission | null;
  readonly permissionPolicy: PermissionPolicy;
  /** The agent's own id of its session, to load it again; null before the first session. */
  readonly agentSessionId: string | null;
  /** The microagents of the repository that could be read; null before they are listed. */
  readonly microagents: readonly ConversationMicroagent[] | null;
  readonly startStatus: ConversationStartStatus;
  /** What the agent does; null while there is no agent. */
  readonly executionStatus: AgentStatus | null;
  /** Why it has its statuses, or what happens right now. */
  readonly statusReason: Reason | null;
  readonly version: number;
  readonly createdAt: number;
  readonly updatedAt: number;
  /** When it was archived. Its agent and its sandbox end; its events stay. */
  readonly archivedAt: number | null;
  /** When its agent and its sandbox had ended after that. Null while its sandbox stays, see `holdsSandbox`. */
  readonly releasedAt: number | null;
  readonly deletedAt: number | null;
  readonly removedAt: number | null;
}

export const conversationSortOrders = ['CREATED_AT', 'CREATED_AT_DESC', 'UPDATED_AT', 'UPDATED_AT_DESC'] as const;

export type ConversationSortOrder = (typeof conversationSortOrders)[number];

/** The accents of Latin, Greek and Cyrillic letters. Marks of other scripts are vowels, or make another letter. */
const accents = /[\u0300-\u036f]/g;

/**
 * Returns the text without accents, in one case and one Unicode form. Upper case, because the lower case of a Greek sigma depends on its
 * place in the word.
 */
export function foldTitle(text: string): string {
  return text.normalize('NFD').replaceAll(accents, '').normalize('NFC').toUpperCase();
}

export function textOf({ content }: Message): string {
  return content.map(({ text }) => text).join('\n');
}

/**
 * Returns the conversation's working directory in its sandbox: the one of the spec. If the conversation brings a repository into an
 * existing sandbox, it gets its own folder below, so that it overwrites nothing. The result depends only on values that never change, so it
 * is the same after a restart.
 */
export function workingDirOf({ id, startsSandbox, selectedRepository }: Conversation, { workingDir }: SandboxSpec): string {
  const shared = !startsSandbox && selectedRepository !== null;
  return shared ? `${workingDir.replace(/\/+$/, '')}/${id}` : workingDir;
}

/**
 * Returns a glob pattern of the folders that other conversations can have inside the working directory of this one; null if it started no
 * sandbox. All ids have one form (see `Random`), so the pattern also matches the folders of conversations that have no record any more.
 */
export function foldersOfOthers({ id, startsSandbox }: Conversation): string | null {
  const random = id.indexOf('-') + 1;
  return startsSandbox ? id.slice(0, random) + id.slice(random).replaceAll(/[a-z0-9]/g, '[a-z0-9]') : null;
}

export interface NewConversation
  extends Pick<Conversation, 'id' | 'ownerId' | 'title' | 'selectedRepository' | 'selectedBranch' | 'sandboxId'> {
  readonly repository: RepositoryLocation | null;
  /** The existing sandbox that it uses; null if it starts one with the id `sandboxId`. */
  readonly taken: Sandbox | null;
  /** The conversations that use that sandbox already. */
  readonly others?: readonly Pick<Conversation, 'endsSandbox'>[];
  readonly spec: SandboxSpec;
  readonly sandboxParameters?: SandboxParameters;
  /** Waits in the queue until the agent runs; without an agent it stays there. */
  readonly initialMessage: QueuedMessage | null;
  /** Null: the policy of the spec. */
  readonly permissionPolicy: PermissionPolicy | null;
  readonly now: number;
}

export function newConversation(from: NewConversation): Conversation {
  const { repository, taken, others = [], spec, sandboxParameters = {}, initialMessage, permissionPolicy, now, ...given } = from;
  return {
    ...given,
    gitProvider: repository?.provider ?? null,
    repositoryPath: repository?.path ?? null,
    startPoint: null,
    possibleTips: {},
    publications: {},
    pullRequests: {},
    sandboxSpecId: spec.id,
    startsSandbox: taken === null,
    endsSandbox: taken === null || others.some(({ endsSandbox }) => endsSandbox),
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
