import { setTimeout as pause } from 'node:timers/promises';
import { EventSourceParserStream, type EventSourceMessage } from 'eventsource-parser/stream';
import type { Api } from './api.ts';
import { ClientError, refused, unreachable } from './client-error.ts';
import { shownEvent, type ShownEvent } from './schema.ts';

const firstWaitMs = 250;
const longestWaitMs = 5000;

export interface FollowOptions {
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
