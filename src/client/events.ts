import { setTimeout as pause } from 'node:timers/promises';
import { type EventSourceMessage, EventSourceParserStream } from 'eventsource-parser/stream';
import { z } from 'zod';
import { type Api, ClientError, refused, unreachable } from './client.ts';

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
const shownEvent = z.discriminatedUnion('kind', [
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

const page = pageOf(z.looseObject({ id: z.int() }));

/**
 * Reads the log at the path to its present end, oldest first; answers with the id of the last event, 0 where there is none.
 * Fails with a `ClientError`.
 */
export async function readEvents(api: Api, path: string, take: (event: ShownEvent) => Promise<void>): Promise<number> {
  let last = 0;
  let next: string | null = null;
  do {
    const { items, next_page_id }: z.output<typeof page> = await api.get(next === null ? path : `${path}?page_id=${encodeURIComponent(next)}`, page);
    for (const item of items) {
      last = item.id;
      const event = shownEvent.safeParse(item);
      if (event.success) await take(event.data);
    }
    next = next_page_id;
  } while (next !== null);
  return last;
}

const firstWaitMs = 250;
const longestWaitMs = 5000;

interface FollowOptions {
  /** Ends it. */
  readonly signal: AbortSignal;
  /** Called when the server could not be found again at once; it is looked for until it is. */
  readonly onLost?: (why: string) => void;
}

/**
 * The events of a stream, one after the other, from where the query says on. Where the connection is lost, or the server
 * ends it, it is made again, and goes on after the last event that was seen. Ends when the conversation does or the signal
 * fires; fails with a {@link ClientError} where the server refuses, or is not there to begin with.
 */
export async function* followEvents(api: Api, path: string, { signal, onLost }: FollowOptions): AsyncGenerator<ShownEvent, void> {
  let place: string | null = null;
  let waitMs = firstWaitMs;
  for (;;) {
    try {
      const stream: Opened | null = await open(api, path, place, signal);
      if (stream === null) return;
      place ??= stream.place;
      waitMs = firstWaitMs;
      for await (const { id, data } of stream.messages) {
        const event = shown(data, api);
        place = id ?? place;
        if (event === null) continue;
        yield event;
        if (event.kind === 'conversation_deleted') return;
      }
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof ClientError) throw error;
      if (waitMs === 2 * firstWaitMs) onLost?.(unreachable(api.url, error).message);
    }
    if (!(await waited(waitMs, signal))) return;
    waitMs = Math.min(waitMs * 2, longestWaitMs);
  }
}

interface Opened {
  /** The event that the stream begins after. */
  readonly place: string | null;
  readonly messages: AsyncIterable<EventSourceMessage>;
}

/** Null where what was followed is gone. A refusal is for good; once there was a stream, the server's own trouble is not. */
async function open(api: Api, path: string, place: string | null, signal: AbortSignal): Promise<Opened | null> {
  const resume = place === null ? {} : { 'Last-Event-ID': place };
  let response: Response;
  try {
    response = await fetch(api.url + path, { redirect: 'manual', headers: { ...api.headers, ...resume }, signal });
  } catch (error) {
    throw place === null && !signal.aborted ? unreachable(api.url, error) : error;
  }
  if (response.ok && response.body !== null) {
    const messages = response.body.pipeThrough(new TextDecoderStream()).pipeThrough(new EventSourceParserStream());
    return { place: response.headers.get('Last-Event-ID'), messages };
  }
  if (response.status === 404 && place !== null) return null;
  const refusal = refused(response.status, await response.text());
  const passes = place !== null && (response.status >= 500 || response.status === 429);
  throw passes ? new Error(refusal.message) : refusal;
}

/** Null for one of a kind that is not shown. */
function shown(data: string, { url }: Api): ShownEvent | null {
  try {
    return shownEvent.safeParse(JSON.parse(data)).data ?? null;
  } catch {
    throw new ClientError(`What answers at ${url} sends no events of Skep.`);
  }
}

async function waited(ms: number, signal: AbortSignal): Promise<boolean> {
  try {
    await pause(ms, undefined, { signal });
    return true;
  } catch {
    return false;
  }
}
