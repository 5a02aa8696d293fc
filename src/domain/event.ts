import type { MessageChannel, MessageRole, PermissionRequest, PlanEntry, ToolCall, TurnStopReason } from './agent.ts';
import {
  type Conversation, type ConversationStartStatus, type ExecutionStatus, type QueuedMessage, textOf,
} from './conversation.ts';
import { isPooled, type PauseKind, type Sandbox, type SandboxStatus } from './sandbox.ts';

/** What each kind of event tells. */
export interface EventData {
  /** A whole message: the user's when it is taken in, the agent's when it is complete. */
  message: { readonly messageId: string; readonly role: MessageRole; readonly channel: MessageChannel; readonly text: string };
  /** A part of an agent's message, as it comes. The parts of one `messageId` make up the text of its `message`. */
  message_chunk: { readonly messageId: string; readonly channel: MessageChannel; readonly text: string };
  /** A tool call, as it stands after each change. */
  tool_call: ToolCall;
  plan: { readonly entries: readonly PlanEntry[] };
  /** Tokens that the session's context holds, and how many it can; the cost so far where the agent tells it. */
  usage: { readonly usedTokens: number; readonly contextTokens: number; readonly cost: { readonly amount: number; readonly currency: string } | null };
  permission_requested: PermissionRequest;
  /** `optionId` is null where the request was withdrawn. */
  permission_answered: { readonly permissionId: string; readonly optionId: string | null };
  turn_started: { readonly messageId: string };
  turn_ended: { readonly messageId: string; readonly stopReason: TurnStopReason };
  start_step: { readonly from: ConversationStartStatus | null; readonly to: ConversationStartStatus };
  execution_changed: { readonly from: ExecutionStatus | null; readonly to: ExecutionStatus | null };
  /** The agent was started; `loaded`: with the session that it had before. */
  agent_started: { readonly sessionId: string; readonly loaded: boolean };
  /** `from` is null for a new sandbox, `to` for one that is gone. */
  sandbox_moved: { readonly from: SandboxStatus | null; readonly to: SandboxStatus | null; readonly pauseKind: PauseKind | null };
  conversation_deleted: Readonly<Record<string, never>>;
}

export type EventKind = keyof EventData;

export const eventKinds = [
  'message', 'message_chunk', 'tool_call', 'plan', 'usage', 'permission_requested', 'permission_answered', 'turn_started',
  'turn_ended', 'start_step', 'execution_changed', 'agent_started', 'sandbox_moved', 'conversation_deleted',
] as const satisfies readonly EventKind[];

/** Who caused it: a caller, the agent, a rule or repair of Skep's own, or what the runtime found. */
export type EventActor = 'user' | 'agent' | 'skep' | 'runtime';

interface EventOf<K extends EventKind> {
  readonly kind: K;
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly ownerId: string;
  readonly conversationId: string | null;
  readonly sandboxId: string | null;
  readonly actor: EventActor;
  /** Why, in words. */
  readonly reason: string | null;
  readonly data: EventData[K];
}

/** An event before it has its place in the log. */
export type EventDraft = { [K in EventKind]: EventOf<K> }[EventKind];

/** An event of the log. `sequence` grows over the whole deployment, and never takes a value twice. */
export type Event = EventDraft & { readonly sequence: number };

/** What an event tells, without where and when. */
export type EventBody = { [K in EventKind]: Pick<EventOf<K>, 'kind' | 'data'> }[EventKind];

/** When something was caused, by whom and why. */
export interface EventOrigin {
  readonly at: number;
  readonly actor: EventActor;
  readonly reason: string | null;
}

/** The event, as one of the conversation. */
export function eventOf({ id, ownerId, sandboxId }: Conversation, body: EventBody, { at, actor, reason }: EventOrigin): EventDraft {
  return { ...body, at, ownerId, conversationId: id, sandboxId, actor, reason };
}

/** What a change of the record's two statuses tells; `from` is null for a new conversation. */
export function statusEvents(from: Conversation | null, to: Conversation, origin: EventOrigin): EventDraft[] {
  const bodies: EventBody[] = [];
  if (from?.startStatus !== to.startStatus) {
    bodies.push({ kind: 'start_step', data: { from: from?.startStatus ?? null, to: to.startStatus } });
  }
  const before = from?.executionStatus ?? null;
  if (before !== to.executionStatus) bodies.push({ kind: 'execution_changed', data: { from: before, to: to.executionStatus } });
  return bodies.map((body) => eventOf(to, body, origin));
}

/** A message of the user that was taken in. */
export function messageBody({ messageId, message }: QueuedMessage): EventBody {
  return { kind: 'message', data: { messageId, role: 'user', channel: 'answer', text: textOf(message) } };
}

/** What the log says of a write of a sandbox: the move, who caused it, and why. Of one in a pool nobody is told. */
export function movedEvents(from: Sandbox | null, to: Sandbox, actor: EventActor): readonly EventDraft[] {
  if (isPooled(to)) return [];
  return [
    {
      kind: 'sandbox_moved',
      at: to.updatedAt,
      ownerId: to.ownerId,
      conversationId: null,
      sandboxId: to.id,
      actor,
      reason: to.statusDetail,
      data: { from: from?.status ?? null, to: to.deletedAt === null ? to.status : null, pauseKind: to.pauseKind },
    },
  ];
}
