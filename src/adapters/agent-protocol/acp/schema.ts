import { z } from 'zod';

/** Text, or something else whose kind and place are all that is made of it. */
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

/** What is left out, or null, stays as it was. */
const toolCall = z.object({
  toolCallId: z.string(),
  title: z.string().nullish(),
  kind: z.string().nullish(),
  status: z.enum(['pending', 'in_progress', 'completed', 'failed']).nullish().catch(null),
  content: z.array(toolCallContent).nullish(),
  locations: z.array(z.object({ path: z.string() })).nullish(),
});

export type WireToolCall = z.infer<typeof toolCall>;

const chunk = { content: block, messageId: z.string().nullish() };

const update = z.discriminatedUnion('sessionUpdate', [
  z.object({ sessionUpdate: z.literal('agent_message_chunk'), ...chunk }),
  z.object({ sessionUpdate: z.literal('agent_thought_chunk'), ...chunk }),
  toolCall.extend({ sessionUpdate: z.literal('tool_call') }),
  toolCall.extend({ sessionUpdate: z.literal('tool_call_update') }),
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

const known: ReadonlySet<string> = new Set(update.options.map(({ shape }) => shape.sessionUpdate.value));

/** An update of a kind that is not known here is `other`: agents may say more than anybody needs. */
export const sessionUpdate = z.object({
  sessionId: z.string(),
  update: z.union([update, z.object({ sessionUpdate: z.string().refine((kind) => !known.has(kind)) }).transform(() => 'other' as const)]),
});

export const permissionRequest = z.object({
  sessionId: z.string(),
  toolCall,
  options: z.array(
    z.object({
      optionId: z.string(),
      name: z.string(),
      kind: z.enum(['allow_once', 'allow_always', 'reject_once', 'reject_always']),
    }),
  ),
});

export type WirePermission = z.infer<typeof permissionRequest>;
