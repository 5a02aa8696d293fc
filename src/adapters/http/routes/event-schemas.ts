import { z } from 'zod';
import { toolCallStatuses } from '../../../domain/agent.ts';
import { conversationStartStatuses, executionStatuses } from '../../../domain/conversation.ts';
import { eventKinds, type Event, type EventData, type EventKind } from '../../../domain/event.ts';
import { pauseKinds } from '../../../domain/sandbox.ts';
import { timestamp, toTimestamp } from '../common-schemas.ts';
import { pageQuery, pageSchema } from '../page-token.ts';
import { sandboxStatus } from './sandboxes.ts';

const channel = z.enum(['answer', 'thought']).meta({ description: '`thought` shows how the agent came to its answer.' });
const startStatus = z.enum(conversationStartStatuses);
const executionStatus = z.enum(executionStatuses).nullable();
const toolCallContent = z.discriminatedUnion('type', [
  z.object({ type: z.literal('text'), text: z.string() }),
  z.object({ type: z.literal('diff'), path: z.string(), old_text: z.string().nullable(), new_text: z.string() }),
]);
const permissionOption = z.object({
  option_id: z.string(),
  name: z.string(),
  kind: z.enum(['allow_once', 'allow_always', 'reject_once', 'reject_always']),
});

const form = <S extends z.core.$ZodLooseShape>(id: string, shape: S) => z.object(shape).meta({ id });

/** What each kind of event tells, as it is answered. */
const data = {
  message: form('MessageEventData', { message_id: z.string(), role: z.enum(['user', 'agent']), channel, text: z.string() }),
  message_chunk: form('MessageChunkEventData', { message_id: z.string(), channel, text: z.string() }),
  tool_call: form('ToolCallEventData', {
    tool_call_id: z.string(),
    title: z.string(),
    tool_kind: z.string(),
    status: z.enum(toolCallStatuses),
    paths: z.array(z.string()),
    content: z.array(toolCallContent),
  }),
  plan: form('PlanEventData', {
    entries: z.array(
      z.object({ content: z.string(), priority: z.enum(['high', 'medium', 'low']), status: z.enum(['pending', 'in_progress', 'completed']) }),
    ),
  }),
  usage: form('UsageEventData', {
    used_tokens: z.number(),
    context_tokens: z.number(),
    cost: z.object({ amount: z.number(), currency: z.string() }).nullable(),
  }),
  permission_requested: form('PermissionRequestedEventData', { permission_id: z.string(), tool_call_id: z.string(), title: z.string(), options: z.array(permissionOption) }),
  permission_answered: form('PermissionAnsweredEventData', { permission_id: z.string(), option_id: z.string().nullable() }),
  turn_started: form('TurnStartedEventData', { message_id: z.string() }),
  turn_ended: form('TurnEndedEventData', {
    message_id: z.string(),
    stop_reason: z.enum(['end_turn', 'max_tokens', 'max_turn_requests', 'refusal', 'cancelled', 'failed', 'interrupted']),
  }),
  start_step: form('StartStepEventData', { from: startStatus.nullable(), to: startStatus }),
  execution_changed: form('ExecutionChangedEventData', { from: executionStatus, to: executionStatus }),
  agent_started: form('AgentStartedEventData', { session_id: z.string(), loaded: z.boolean() }),
  sandbox_moved: form('SandboxMovedEventData', { from: sandboxStatus.nullable(), to: sandboxStatus.nullable(), pause_kind: z.enum(pauseKinds).nullable() }),
  conversation_deleted: form('ConversationDeletedEventData', {}),
} satisfies Readonly<Record<EventKind, z.ZodObject>>;

type Told = { readonly [K in EventKind]: z.output<(typeof data)[K]> };

const tell: { readonly [K in EventKind]: (told: EventData[K]) => Told[K] } = {
  message: ({ messageId, role, channel, text }) => ({ message_id: messageId, role, channel, text }),
  message_chunk: ({ messageId, channel, text }) => ({ message_id: messageId, channel, text }),
  tool_call: ({ toolCallId, title, toolKind, status, paths, content }) => ({
    tool_call_id: toolCallId,
    title,
    tool_kind: toolKind,
    status,
    paths: [...paths],
    content: content.map((part) =>
      part.type === 'text' ? { ...part } : { type: part.type, path: part.path, old_text: part.oldText, new_text: part.newText },
    ),
  }),
  plan: ({ entries }) => ({ entries: entries.map((entry) => ({ ...entry })) }),
  usage: ({ usedTokens, contextTokens, cost }) => ({ used_tokens: usedTokens, context_tokens: contextTokens, cost }),
  permission_requested: ({ permissionId, toolCallId, title, options }) => ({
    permission_id: permissionId,
    tool_call_id: toolCallId,
    title,
    options: options.map(({ optionId, name, kind }) => ({ option_id: optionId, name, kind })),
  }),
  permission_answered: ({ permissionId, optionId }) => ({ permission_id: permissionId, option_id: optionId }),
  turn_started: ({ messageId }) => ({ message_id: messageId }),
  turn_ended: ({ messageId, stopReason }) => ({ message_id: messageId, stop_reason: stopReason }),
  start_step: ({ from, to }) => ({ from, to }),
  execution_changed: ({ from, to }) => ({ from, to }),
  agent_started: ({ sessionId, loaded }) => ({ session_id: sessionId, loaded }),
  sandbox_moved: ({ from, to, pauseKind }) => ({ from, to, pause_kind: pauseKind }),
  conversation_deleted: () => ({}),
};

export const eventResource = z
  .object({
    id: z.int().meta({ description: 'Its place in the log: later events have greater ones.' }),
    kind: z.enum(eventKinds),
    at: timestamp,
    conversation_id: z.string().nullable(),
    sandbox_id: z.string().nullable(),
    actor: z.enum(['user', 'agent', 'skep', 'runtime']).meta({
      description: 'Who caused it: a caller, the agent, a rule or repair of the deployment, or what its runtime found.',
    }),
    reason: z.string().nullable().meta({ description: 'Why, in words.' }),
    data: z.union(Object.values(data)).meta({ description: 'What it tells; which form it has follows from the kind.' }),
  })
  .meta({ id: 'Event', description: 'Something that was said or done.' });

export const eventPage = pageSchema(eventResource, 'EventPage');

const kinds = z.array(z.enum(eventKinds)).optional().meta({ description: 'Only these kinds; repeat the parameter for each.' });

const eventId = z.string().regex(/^\d{1,15}$/, 'must be the id of an event').transform(Number);

export const eventPageQuery = z.object({
  ...pageQuery,
  kinds,
  after: eventId.optional().meta({ description: 'Begin after the event of this id; `page_id` goes before it.', override: { type: 'string' } }),
});

export const eventStreamQuery = z.object({
  kinds,
  after: z
    .union([eventId, z.literal('latest')], { error: 'must be the id of an event, or latest' })
    .optional()
    .meta({
      description: 'Begin after the event of this id; `0` is the beginning of the log, `latest` its end. `Last-Event-ID` goes before it.',
      override: { type: 'string' },
    }),
});

export const eventStreamHeaders = z.object({
  'Last-Event-ID': eventId
    .optional()
    .meta({ description: 'The id of the last event that was seen; browsers send it when they connect again.', override: { type: 'string' } }),
});

/** What the head of a stream says of it. */
export const eventStreamHead = z.object({
  'Last-Event-ID': z.int().meta({ description: 'The id that the stream begins after, to go on from where no event was seen.' }),
});

export function presentEvent(event: Event): z.output<typeof eventResource> {
  return {
    id: event.sequence,
    kind: event.kind,
    at: toTimestamp(event.at),
    conversation_id: event.conversationId,
    sandbox_id: event.sandboxId,
    actor: event.actor,
    reason: event.reason,
    data: told(event.kind, event.data),
  };
}

function told<K extends EventKind>(kind: K, of: EventData[EventKind]): Told[K] {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- an event's data is of its kind
  return tell[kind](of as EventData[K]);
}
