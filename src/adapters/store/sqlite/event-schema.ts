import { z } from 'zod';
import { toolCallStatuses } from '../../../domain/agent.ts';
import { conversationStartStatuses, executionStatuses } from '../../../domain/conversation.ts';
import type { EventActor, EventData, EventKind } from '../../../domain/event.ts';
import { pauseKinds, sandboxStatuses } from '../../../domain/sandbox.ts';
import { PermissionColumn } from './schema.ts';

export const eventActors: readonly EventActor[] = ['user', 'agent', 'skep', 'runtime'];

const channel = z.enum(['answer', 'thought']);
const startStatus = z.enum(conversationStartStatuses);
const executionStatus = z.enum(executionStatuses).nullable();
const sandboxStatus = z.enum(sandboxStatuses).nullable();

/** What is kept as JSON of an event, by its kind. */
export const EventDataColumns: { readonly [K in EventKind]: z.ZodType<EventData[K]> } = {
  message: z.object({ messageId: z.string(), role: z.enum(['user', 'agent']), channel, text: z.string() }),
  message_chunk: z.object({ messageId: z.string(), channel, text: z.string() }),
  tool_call: z.object({
    toolCallId: z.string(),
    title: z.string(),
    toolKind: z.string(),
    status: z.enum(toolCallStatuses),
    paths: z.array(z.string()),
    content: z.array(
      z.discriminatedUnion('type', [
        z.object({ type: z.literal('text'), text: z.string() }),
        z.object({ type: z.literal('diff'), path: z.string(), oldText: z.string().nullable(), newText: z.string() }),
      ]),
    ),
  }),
  plan: z.object({
    entries: z.array(
      z.object({
        content: z.string(),
        priority: z.enum(['high', 'medium', 'low']),
        status: z.enum(['pending', 'in_progress', 'completed']),
      }),
    ),
  }),
  usage: z.object({
    usedTokens: z.number(),
    contextTokens: z.number(),
    cost: z.object({ amount: z.number(), currency: z.string() }).nullable(),
  }),
  permission_requested: PermissionColumn,
  permission_answered: z.object({ permissionId: z.string(), optionId: z.string().nullable() }),
  turn_started: z.object({ messageId: z.string() }),
  turn_ended: z.object({
    messageId: z.string(),
    stopReason: z.enum(['end_turn', 'max_tokens', 'max_turn_requests', 'refusal', 'cancelled', 'failed', 'interrupted']),
  }),
  start_step: z.object({ from: startStatus.nullable(), to: startStatus }),
  execution_changed: z.object({ from: executionStatus, to: executionStatus }),
  agent_started: z.object({ sessionId: z.string(), loaded: z.boolean() }),
  sandbox_moved: z.object({ from: sandboxStatus, to: sandboxStatus, pauseKind: z.enum(pauseKinds).nullable() }),
  conversation_deleted: z.record(z.string(), z.never()),
};
