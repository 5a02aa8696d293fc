import { z } from 'zod';
import { permissionOptionsSchema } from '../../shared/event-data-schemas.ts';
import { oneLine } from './updates.ts';

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

export type Block = z.infer<typeof block>;

const toolCallContent = z.union([
  z.object({ type: z.literal('content'), content: block }),
  z.object({ type: z.literal('diff'), path: z.string(), oldText: z.string().nullish(), newText: z.string() }),
  z.object({ type: z.string() }).transform(({ type }) => ({ type: 'other' as const, name: type })),
]);

export type WireToolCallContent = z.infer<typeof toolCallContent>;

const exitCode = { exit_code: z.number().nullish() };

/** What a tool returned, as text. ACP leaves its form to the agents: Codex has the first one, OpenCode the second. */
const rawOutput = z.union([
  z.string(),
  z.object({ aggregated_output: z.string(), ...exitCode }).transform((result) => withExitCode(result.aggregated_output, result)),
  z.object({ output: z.string(), ...exitCode }).transform((result) => withExitCode(result.output, result)),
  z.object({ stdout: z.string(), stderr: z.string().default(''), ...exitCode })
    .transform((result) => withExitCode(result.stdout + result.stderr, result)),
  z.unknown().transform((value) => JSON.stringify(value)),
]);

function withExitCode(text: string, { exit_code: code }: { readonly exit_code?: number | null | undefined }): string {
  if (code === null || code === undefined) return text;
  return `${text}${text === '' || text.endsWith('\n') ? '' : '\n'}[exit code ${code}]`;
}

/** A member that is absent or null is unchanged. */
const toolCall = z.object({
  toolCallId: id,
  title: z.string().nullish(),
  // One of some words.
  kind: z.string().max(100).nullish().catch(null),
  status: z.enum(['pending', 'in_progress', 'completed', 'failed']).nullish().catch(null),
  content: z.array(toolCallContent).nullish(),
  rawOutput: rawOutput.nullish(),
  locations: z.array(z.object({ path: z.string() })).nullish(),
});

export type WireToolCall = z.infer<typeof toolCall>;

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

export type WireUpdate = z.infer<typeof update>;

/** An unknown update becomes `other`. */
export const sessionUpdate = z.object({
  sessionId: z.string(),
  update: z.union([update, z.object({ sessionUpdate: z.string() }).transform(() => 'other' as const)]),
});

export const permissionRequest = z.object({
  sessionId: id,
  toolCall,
  options: z.array(permissionOptionsSchema.element.extend({ optionId: id, name: z.string().transform((name) => oneLine(name)) })).max(50)
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
