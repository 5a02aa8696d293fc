import { setTimeout as pause } from 'node:timers/promises';
import { type EventSourceMessage, EventSourceParserStream } from 'eventsource-parser/stream';
import { z } from 'zod';
import { ClientError, pageOf, refused, type SkepClient, unreachable } from './client.ts';

const envelope = { id: z.int(), at: z.string(), sandbox_id: z.string().nullable(), reason: z.string().nullable() };
const event = <K extends string, D extends z.ZodType>(kind: K, data: D) => z.looseObject({ ...envelope, kind: z.literal(kind), data });

/** The events that the client knows. It skips all others. */
const shownEvent = z.discriminatedUnion('kind', [
  event('message', z.looseObject({ message_id: z.string(), role: z.string(), channel: z.string(), text: z.string() })),
  event('message_chunk', z.looseObject({ message_id: z.string(), channel: z.string(), text: z.string() })),
  event('tool_call', z.looseObject({ title: z.string(), status: z.string(), paths: z.array(z.string()) })),
  event('plan', z.looseObject({ entries: z.array(z.looseObject({ content: z.string(), status: z.string() })) })),
  event('permission_requested', z.looseObject({
    permission_id: z.string(), title: z.string(), options: z.array(z.looseObject({ option_id: z.string(), name: z.string() })),
  })),
  event('permission_answered', z.looseObject({ option_id: z.string().nullable() })),
  event('turn_ended', z.looseObject({ message_id: z.string(), stop_reason: z.string() })),
  event('start_step', z.looseObject({ to: z.string() })),
  event('setup_script', z.looseObject({ execution_id: z.string().nullable(), status: z.string() })),
  event('agent_started', z.looseObject({})),
  event('sandbox_moved', z.looseObject({ from: z.string().nullable(), to: z.string().nullable(), pause_kind: z.string().nullable() })),
  event('conversation_archived', z.looseObject({})),
  event('conversation_deleted', z.looseObject({})),
]);
export type ShownEvent = z.output<typeof shownEvent>;
export type PermissionRequest = Extract<ShownEvent, { kind: 'permission_requested' }>['data'];

const page = pageOf(z.looseObject({ id: z.int() }));

/** Reads up to the present, oldest first. Returns the id of the last event, or 0. Throws a {@link ClientError}. */
export async function readEvents(client: SkepClient, path: string, take: (event: ShownEvent) => Promise<void>): Promise<number> {
  let last = 0;
  let next: string | null = null;
  do {
    const query: string = next === null ? '' : `?page_id=${encodeURIComponent(next)}`;
    const { items, next_page_id }: z.output<typeof page> = await client.get(path + query, page);
    for (const item of items) {
      last = item.id;
      const event = shownEvent.safeParse(item);
      if (event.success) await take(event.data);
    }
    next = next_page_id;
  } while (next !== null);
  return last;
}

/** How long a stream may be silent, in milliseconds. The server sends a heartbeat every 15 s. */
const maxSilenceMs = 60_000;
const firstWaitMs = 250;
const longestWaitMs = 5000;

export interface FollowOptions {
  readonly signal: AbortSignal;
  /** Called once the first attempts to reconnect have failed. The attempts go on. */
  readonly onLost?: (message: string) => void;
}

/**
 * Yields the events of a stream in order. If the connection is lost, it reconnects and goes on after the last event that it has
 * seen. Ends with the conversation, or when the signal fires. Throws a {@link ClientError} if the server refuses, or does not answer
 * the first request.
 */
export async function* followEvents(client: SkepClient, path: string, { signal, onLost }: FollowOptions): AsyncGenerator<ShownEvent, void> {
  let lastId: string | null = null;
  let waitMs = firstWaitMs;
  for (;;) {
    try {
      const stream: OpenStream | null = await open(client, path, lastId, signal);
      if (stream === null) return;
      lastId ??= stream.startsAfter;
      waitMs = firstWaitMs;
      for await (const { id, data } of stream.messages) {
        const event = parseEvent(data, client);
        lastId = id ?? lastId;
        if (event === null) continue;
        yield event;
        if (event.kind === 'conversation_deleted') return;
      }
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof ClientError) throw error;
      if (waitMs === 2 * firstWaitMs) onLost?.(unreachable(client.url, error).message);
    }
    await pause(waitMs, undefined, { signal }).catch(() => {});
    if (signal.aborted) return;
    waitMs = Math.min(waitMs * 2, longestWaitMs);
  }
}

/** `startsAfter` is the id of the event before the stream's first one. */
type OpenStream = { readonly startsAfter: string | null; readonly messages: AsyncIterable<EventSourceMessage> };

/** Returns null if what was followed is gone. Throws a {@link ClientError} if no new attempt can help. */
async function open({ url, headers }: SkepClient, path: string, lastId: string | null, signal: AbortSignal): Promise<OpenStream | null> {
  const resume = lastId === null ? {} : { 'Last-Event-ID': lastId };
  const silence = new AbortController();
  const timer = setTimeout(() => silence.abort(new DOMException('nothing came for a while', 'TimeoutError')), maxSilenceMs).unref();
  const ends = AbortSignal.any([signal, silence.signal]);
  let response: Response;
  try {
    response = await fetch(url + path, { redirect: 'manual', headers: { ...headers, ...resume }, signal: ends });
  } catch (error) {
    throw lastId === null && !signal.aborted ? unreachable(url, error) : error;
  }
  if (response.ok && response.body !== null) {
    const alive = new TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>({
      transform(bytes, controller) {
        timer.refresh();
        controller.enqueue(bytes);
      },
    });
    const messages = response.body.pipeThrough(alive).pipeThrough(new TextDecoderStream()).pipeThrough(new EventSourceParserStream());
    return { startsAfter: response.headers.get('Last-Event-ID'), messages };
  }
  if (response.status === 404 && lastId !== null) return null;
  const refusal = refused(response.status, await response.text());
  const isTemporary = lastId !== null && (response.status >= 500 || response.status === 429);
  throw isTemporary ? new Error(refusal.message) : refusal;
}

/** Returns null for an event of a kind that the client does not know. */
function parseEvent(data: string, { url }: SkepClient): ShownEvent | null {
  try {
    return shownEvent.safeParse(JSON.parse(data)).data ?? null;
  } catch {
    throw new ClientError(`The server at ${url} sends no events of Skep.`);
  }
}
