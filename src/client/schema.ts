import { z } from 'zod';

// What the terminal client reads of the answers; a later server may say more.

export const conversation = z.object({
  id: z.string(),
  title: z.string().nullable(),
  sandbox_id: z.string().nullable(),
  sandbox_status: z.string(),
  selected_repository: z.string().nullable(),
  start_status: z.string(),
  execution_status: z.string().nullable(),
});
export type Conversation = z.output<typeof conversation>;

export const sandbox = z.object({
  id: z.string(),
  sandbox_spec_id: z.string(),
  status: z.string(),
  status_detail: z.string().nullable(),
  pause_kind: z.string().nullable(),
  last_active_at: z.string(),
});
export type Sandbox = z.output<typeof sandbox>;

export const pageOf = <T extends z.ZodType>(item: T) => z.object({ items: z.array(item), next_page_id: z.string().nullable() });

export const messageAccepted = z.object({ message_id: z.string() });

const envelope = { id: z.int(), at: z.string(), sandbox_id: z.string().nullable(), reason: z.string().nullable() };
const event = <K extends string, D extends z.ZodType>(kind: K, data: D) => z.object({ ...envelope, kind: z.literal(kind), data });

/** The events that are shown; whatever else there is, is passed over. */
export const shownEvent = z.discriminatedUnion('kind', [
  event('message', z.object({ message_id: z.string(), role: z.string(), channel: z.string(), text: z.string() })),
  event('message_chunk', z.object({ message_id: z.string(), channel: z.string(), text: z.string() })),
  event('tool_call', z.object({ title: z.string(), status: z.string(), paths: z.array(z.string()) })),
  event('plan', z.object({ entries: z.array(z.object({ content: z.string(), status: z.string() })) })),
  event(
    'permission_requested',
    z.object({ permission_id: z.string(), title: z.string(), options: z.array(z.object({ option_id: z.string(), name: z.string() })) }),
  ),
  event('permission_answered', z.object({ option_id: z.string().nullable() })),
  event('turn_ended', z.object({ message_id: z.string(), stop_reason: z.string() })),
  event('start_step', z.object({ to: z.string() })),
  event('agent_started', z.object({})),
  event('sandbox_moved', z.object({ from: z.string().nullable(), to: z.string().nullable(), pause_kind: z.string().nullable() })),
  event('conversation_deleted', z.object({})),
]);
export type ShownEvent = z.output<typeof shownEvent>;
export type PermissionAsked = Extract<ShownEvent, { kind: 'permission_requested' }>['data'];
