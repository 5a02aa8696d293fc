import type { MessageChannel, MessageRole, PlanEntry, ToolCall, TurnStopReason } from './agent.ts';
import type { PermissionRequest } from './permission.ts';
import type { ChangeCounts } from './change.ts';
import {
  type Conversation, type ConversationStartStatus, type AgentStatus, type QueuedMessage, textOf,
} from './conversation.ts';
import type { MicroagentsEventData } from './applicable-microagents.ts';
import type { Reason } from './reason.ts';
import { isPooled, type PauseKind, type Sandbox, type SandboxStatus } from './sandbox.ts';

export const eventKinds = [
  'message', 'message_chunk', 'tool_call', 'plan', 'usage', 'permission_requested', 'permission_answered', 'turn_started',
  'turn_ended', 'work_tree_changed', 'start_step', 'setup_script', 'microagents', 'execution_changed', 'agent_started', 'sandbox_moved',
  'conversation_archived', 'conversation_deleted',
] as const;

export type EventKind = (typeof eventKinds)[number];

export interface EventData {
  /** A whole message: the user's when it is accepted, the agent's when it is complete. */
  message: { readonly messageId: string; readonly role: MessageRole; readonly channel: MessageChannel; readonly text: string };
  /** A part of an agent's message, as it arrives. The parts of one `messageId` make up the text of its `message`. */
  message_chunk: { readonly messageId: string; readonly channel: MessageChannel; readonly text: string };
  /** A tool call after each change. */
  tool_call: ToolCall;
  plan: { readonly entries: readonly PlanEntry[] };
  /** Tokens that the session's context holds, and how many it can hold; the cost so far, if the agent reports it. */
  usage: {
    readonly usedTokens: number;
    readonly contextTokens: number;
    readonly cost: { readonly amount: number; readonly currency: string } | null;
  };
  permission_requested: PermissionRequest;
  /** `optionId` is null if the request was withdrawn. */
  permission_answered: { readonly permissionId: string; readonly optionId: string | null };
  turn_started: { readonly messageId: string };
  turn_ended: { readonly messageId: string; readonly stopReason: TurnStopReason };
  /** The size of the changes since the start point. Written only if they differ from the changes that were kept before. */
  work_tree_changed: ChangeCounts;
  start_step: { readonly from: ConversationStartStatus | null; readonly to: ConversationStartStatus };
  /** The setup script of the repository began, ended, or did not end in time. `executionId` is null if it could not be started. */
  setup_script: { readonly executionId: string | null; readonly status: 'running' | 'succeeded' | 'failed' };
  /** The microagents that the agent gets, and those that it does not get, with the message of the next turn. */
  microagents: MicroagentsEventData;
  execution_changed: { readonly from: AgentStatus | null; readonly to: AgentStatus | null };
  /** The agent was started. `loaded`: it continues its earlier session. */
  agent_started: { readonly sessionId: string; readonly loaded: boolean };
  /** `from` is null for a new sandbox, `to` for a deleted one. */
  sandbox_moved: { readonly from: SandboxStatus | null; readonly to: SandboxStatus | null; readonly pauseKind: PauseKind | null };
  conversation_archived: Readonly<Record<string, never>>;
  conversation_deleted: Readonly<Record<string, never>>;
}

/** What happened to sandboxes and conversations, without what was said and done in them. */
export const statusChangeKinds: readonly EventKind[] = [
  'sandbox_moved', 'start_step', 'execution_changed', 'conversation_archived', 'conversation_deleted',
];

export const eventActors = ['user', 'agent', 'skep', 'runtime'] as const;

export type EventActor = (typeof eventActors)[number];

interface EventOf<K extends EventKind> {
  readonly kind: K;
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly ownerId: string;
  readonly conversationId: string | null;
  readonly sandboxId: string | null;
  readonly actor: EventActor;
  /** The user whose request this is. Null if it is no request, or a later effect of one. */
  readonly userId: string | null;
  readonly reason: Reason | null;
  readonly data: EventData[K];
}

/** An event that is not in the log yet. */
export type EventDraft = { [K in EventKind]: EventOf<K> }[EventKind];

/** An event of the log. `sequence` grows over the whole deployment and is never used twice. */
export type Event = EventDraft & { readonly sequence: number };

export type EventBody = { [K in EventKind]: Pick<EventOf<K>, 'kind' | 'data'> }[EventKind];

export interface EventOrigin {
  readonly at: number;
  readonly actor: EventActor;
  /** Default: null. */
  readonly userId?: string | null | undefined;
  readonly reason: Reason | null;
}

export function eventOf({ id, ownerId, sandboxId }: Conversation, body: EventBody, origin: EventOrigin): EventDraft {
  const { at, actor, userId = null, reason } = origin;
  return { ...body, at, ownerId, conversationId: id, sandboxId, actor, userId, reason };
}

/** Returns the events of a change of the record's two statuses. `from` is null for a new conversation. */
export function statusEvents(from: Conversation | null, to: Conversation, origin: EventOrigin): EventDraft[] {
  const bodies: EventBody[] = [];
  if (from?.startStatus !== to.startStatus) {
    bodies.push({ kind: 'start_step', data: { from: from?.startStatus ?? null, to: to.startStatus } });
  }
  const before = from?.executionStatus ?? null;
  if (before !== to.executionStatus) bodies.push({ kind: 'execution_changed', data: { from: before, to: to.executionStatus } });
  return bodies.map((body) => eventOf(to, body, origin));
}

export function messageBody({ messageId, message }: QueuedMessage): EventBody {
  return { kind: 'message', data: { messageId, role: 'user', channel: 'answer', text: textOf(message) } };
}

/** Returns the events of a write of a sandbox, by the user if it is a request. Pool members have no owner, so they have no events. */
export function sandboxMovedEvents(
  from: Sandbox | null, to: Sandbox, actor: EventActor, userId: string | null = null,
): readonly EventDraft[] {
  if (isPooled(to)) return [];
  return [
    {
      kind: 'sandbox_moved',
      at: to.updatedAt,
      ownerId: to.ownerId,
      conversationId: null,
      sandboxId: to.id,
      actor,
      userId,
      reason: to.statusReason,
      data: { from: from?.status ?? null, to: to.deletedAt === null ? to.status : null, pauseKind: to.pauseKind },
    },
  ];
}
