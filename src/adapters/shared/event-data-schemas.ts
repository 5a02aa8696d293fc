import { z } from 'zod';
import { toolCallStatuses, turnStopReasons } from '../../domain/agent.ts';
import { permissionOptionKinds, type PermissionRequest } from '../../domain/permission.ts';
import { omissionReasons } from '../../domain/applicable-microagents.ts';
import { conversationStartStatuses, agentStatuses } from '../../domain/conversation.ts';
import type { EventData, EventKind } from '../../domain/event.ts';
import { pauseKinds, sandboxStatuses } from '../../domain/sandbox.ts';

export const sandboxStatusSchema = z.enum(sandboxStatuses).meta({ id: 'SandboxStatus' });

export const pauseKindSchema = z.enum(pauseKinds)
  .meta({ id: 'PauseKind', description: '`freeze` keeps memory and processes; `stop` frees the memory and keeps the files.' });

export const conversationStartStatusSchema = z.enum(conversationStartStatuses).meta({ id: 'ConversationStartStatus' });

/** Its name is not that of the field `execution_status`: generators of clients name the status of an `Execution` so. */
export const agentStatusSchema = z.enum(agentStatuses).meta({ id: 'AgentStatus' });

const channel = z.enum(['answer', 'thought']).describe('`thought` shows how the agent came to its answer.');
const executionStatus = agentStatusSchema.nullable();
const sandboxStatus = sandboxStatusSchema.nullable();

export const permissionOptionsSchema = z.array(
  z.object({ optionId: z.string(), name: z.string(), kind: z.enum(permissionOptionKinds) }),
);

const permissionSchema: z.ZodType<PermissionRequest> = z.object({
  permissionId: z.string(), toolCallId: z.string(), title: z.string(), options: permissionOptionsSchema,
});

/** The schemas of event data, by kind. The store validates with them, and the HTTP interface documents them. */
export const eventDataSchemas: { readonly [K in EventKind]: z.ZodType<EventData[K]> } = {
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
        z.object({ type: z.literal('text'), text: z.string() }).meta({ id: 'ToolCallText' }),
        z.object({ type: z.literal('diff'), path: z.string(), oldText: z.string().nullable(), newText: z.string() })
          .meta({ id: 'ToolCallDiff' }),
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
  permission_requested: permissionSchema,
  permission_answered: z.object({ permissionId: z.string(), optionId: z.string().nullable() }),
  turn_started: z.object({ messageId: z.string() }),
  turn_ended: z.object({ messageId: z.string(), stopReason: z.enum(turnStopReasons) }),
  work_tree_changed: z.object({ files: z.int(), linesAdded: z.int(), linesRemoved: z.int() }),
  start_step: z.object({ from: conversationStartStatusSchema.nullable(), to: conversationStartStatusSchema }),
  setup_script: z.object({ executionId: z.string().nullable(), status: z.enum(['running', 'succeeded', 'failed']) }),
  microagents: z.object({
    given: z.array(z.object({ path: z.string(), trigger: z.string().nullable() })),
    leftOut: z.array(z.object({ path: z.string(), why: z.enum(omissionReasons) })),
    leftOutCount: z.number(),
  }),
  execution_changed: z.object({ from: executionStatus, to: executionStatus }),
  agent_started: z.object({ sessionId: z.string(), loaded: z.boolean() }),
  sandbox_moved: z.object({ from: sandboxStatus, to: sandboxStatus, pauseKind: pauseKindSchema.nullable() }),
  conversation_archived: z.strictObject({}),
  conversation_deleted: z.strictObject({}),
};
