import { z } from 'zod';
import type { ToolCall, ToolCallContent } from '../../../domain/agent.ts';
import type { AgentUpdate } from '../../../ports/agent-protocol.ts';
import { permissionOptionsSchema } from '../../shared/event-data-schemas.ts';
import { createLruMap } from '../../shared/lru-map.ts';

/** An id that the agent chooses. It is stored in records and events, so its length is limited. */
const id = z.string().max(1000);

/** Text, or other content that is shown only by its kind and name. */
const block = z.object({
  type: z.string(),
  text: z.string().optional(),
  mimeType: z.string().nullish(),
  name: z.string().nullish(),
  uri: z.string().nullish(),
  resource: z.object({ uri: z.string() }).optional(),
});

type Block = z.infer<typeof block>;

const toolCallContent = z.union([
  z.object({ type: z.literal('content'), content: block }),
  z.object({ type: z.literal('diff'), path: z.string(), oldText: z.string().nullish(), newText: z.string() }),
  z.object({ type: z.string() }).transform(({ type }) => ({ type: 'other' as const, name: type })),
]);

type WireToolCallContent = z.infer<typeof toolCallContent>;

/** A member that is absent or null is unchanged. */
const toolCall = z.object({
  toolCallId: id,
  title: z.string().nullish(),
  kind: z.string().nullish(),
  status: z.enum(['pending', 'in_progress', 'completed', 'failed']).nullish().catch(null),
  content: z.array(toolCallContent).nullish(),
  locations: z.array(z.object({ path: z.string() })).nullish(),
});

type WireToolCall = z.infer<typeof toolCall>;

const update = z.discriminatedUnion('sessionUpdate', [
  z.object({
    sessionUpdate: z.enum(['agent_message_chunk', 'agent_thought_chunk']),
    content: block,
    messageId: z.string().nullish(),
  }),
  toolCall.extend({ sessionUpdate: z.enum(['tool_call', 'tool_call_update']) }),
  z.object({
    sessionUpdate: z.literal('plan'),
    entries: z.array(
      z.object({
        content: z.string(),
        priority: z.enum(['high', 'medium', 'low']).catch('medium'),
        status: z.enum(['pending', 'in_progress', 'completed']).catch('pending'),
      }),
    ),
  }),
  z.object({
    sessionUpdate: z.literal('usage_update'),
    used: z.number(),
    size: z.number(),
    cost: z.object({ amount: z.number(), currency: z.string() }).nullish(),
  }),
]);

type WireUpdate = z.infer<typeof update>;

/** An unknown update becomes `other`. */
export const sessionUpdate = z.object({
  sessionId: z.string(),
  update: z.union([update, z.object({ sessionUpdate: z.string() }).transform(() => 'other' as const)]),
});

export const permissionRequest = z.object({
  sessionId: z.string(),
  toolCall,
  options: z.array(permissionOptionsSchema.element.extend({ optionId: id })).max(50)
    .refine((options) => new Set(options.map(({ optionId }) => optionId)).size === options.length, 'two options have one id'),
});

export type WirePermission = z.infer<typeof permissionRequest>;

const authMethod = z.object({
  id,
  name: z.string().max(1000).catch(''),
  description: z.string().max(10_000).nullish().catch(null),
  vars: z.array(z.object({ name: z.string().max(100) })).max(20).optional().catch(undefined),
});

export type AuthMethod = z.infer<typeof authMethod>;

export const initialized = z.object({
  protocolVersion: z.number(),
  agentCapabilities: z
    .object({
      loadSession: z.boolean().optional().catch(false),
      sessionCapabilities: z.object({ resume: z.unknown() }).partial().nullish().catch(null),
    })
    .nullish()
    .catch(null),
  authMethods: z.array(authMethod).max(20).nullish().catch(null),
});

export type Initialized = z.infer<typeof initialized>;

export const createdSession = z.object({ sessionId: id.min(1) });

export const promptResponse = z.object({ stopReason: z.string() });

export const knownStopReason = z.enum(['end_turn', 'max_tokens', 'max_turn_requests', 'refusal', 'cancelled']);

/** The forms of an error's `data` that can add a text to its message. */
export const failureData = z.union([
  z.string(),
  z.object({ message: z.string() }).transform(({ message }) => message),
  z.object({ details: z.string() }).transform(({ details }) => details),
  z.object({ error: z.string() }).transform(({ error }) => error),
  z.object({ error: z.object({ message: z.string() }) }).transform(({ error }) => error.message),
]);

/** Returns the update in the port's form. Null if there is nothing to show. */
export function updateOf(update: WireUpdate, calls: ToolCalls): AgentUpdate | null {
  switch (update.sessionUpdate) {
    case 'agent_message_chunk':
    case 'agent_thought_chunk': {
      const channel = update.sessionUpdate === 'agent_message_chunk' ? 'answer' : 'thought';
      const text = textOf(update.content);
      return text === '' ? null : { kind: 'message_chunk', channel, messageId: update.messageId ?? null, text };
    }
    case 'tool_call':
    case 'tool_call_update':
      return { kind: 'tool_call', call: mergeToolCall(calls, update) };
    case 'plan':
      return { kind: 'plan', entries: update.entries.map((entry) => ({ ...entry, content: plainText(entry.content) })) };
    case 'usage_update':
      return { kind: 'usage', usedTokens: update.used, contextTokens: update.size, cost: update.cost ?? null };
  }
}

const maxCalls = 10_000;
const maxCallsSize = 32 * 1024 * 1024;

/** The current state of a turn's tool calls, because an update contains only the changes. */
type ToolCalls = ReturnType<typeof createToolCalls>;

/** The memory is bounded. A dropped call starts empty with its next update. */
export function createToolCalls() {
  return createLruMap<ToolCall>(maxCalls, maxCallsSize, sizeOf);
}

export function mergeToolCall(calls: ToolCalls, { toolCallId, title, kind, status, content, locations }: WireToolCall): ToolCall {
  const known = calls.get(toolCallId);
  const call: ToolCall = {
    toolCallId,
    title: title === null || title === undefined || title === '' ? (known?.title ?? toolCallId) : plainText(title),
    toolKind: kind ?? known?.toolKind ?? 'other',
    status: status ?? known?.status ?? 'pending',
    paths: locations?.map(({ path }) => path) ?? known?.paths ?? [],
    content: content?.map(contentOf) ?? known?.content ?? [],
  };
  calls.set(toolCallId, call);
  return call;
}

function sizeOf({ toolCallId, title, paths, content }: ToolCall): number {
  const parts = content.map((part) => (part.type === 'text' ? [part.text] : [part.path, part.newText, part.oldText ?? '']));
  return [toolCallId, title, ...paths, ...parts.flat()].reduce((size, text) => size + 100 + text.length, 500);
}

/** Returns the text of a block, or a name for content that is not text. */
function textOf({ type, text, mimeType, name, uri, resource }: Block): string {
  if (type === 'text') return plainText(text ?? '');
  const what = name ?? resource?.uri ?? uri ?? mimeType;
  const kind = type === 'resource_link' ? 'resource' : type;
  return plainText(what === null || what === undefined ? `[${kind}]` : `[${kind}: ${what}]`);
}

/** The texts of a changed file stay exactly as they are. */
function contentOf(content: WireToolCallContent): ToolCallContent {
  switch (content.type) {
    case 'content':
      return { type: 'text', text: textOf(content.content) };
    case 'diff':
      return { type: 'diff', path: content.path, oldText: content.oldText ?? null, newText: content.newText };
    case 'other':
      return { type: 'text', text: `[${plainText(content.name)}]` };
  }
}

// An escape sequence: a text with an end, a command with parameters, or a short one. Takes linear time, because no part runs over a place
// where a sequence can begin. Node's `stripVTControlCharacters` takes quadratic time, so an agent could block the server with it.
const escapeSequence =
  // oxlint-disable-next-line no-control-regex -- they are what has to go
  /\u001b[\]PX^_][^\u0007\u001b\u009c]*(?:\u0007|\u001b\\|\u009c)|(?:\u001b\[|\u009b)[0-?]*[ -/]*[@-~]|\u001b[ -/]*[0-~]/gu;

// The rest of an escape sequence that was split over two chunks, and invisible characters.
// oxlint-disable-next-line no-control-regex -- they are what has to go
const invisible = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/gu;

function plainText(text: string): string {
  return text.replace(escapeSequence, '').replace(invisible, '');
}

const maxLine = 2000;

export function oneLine(text: string): string {
  const line = plainText(text).replace(/\s+/gu, ' ').trim();
  return line.length > maxLine ? `${line.slice(0, maxLine)}...` : line;
}
