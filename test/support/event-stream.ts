import { EventSourceParserStream, type EventSourceMessage } from 'eventsource-parser/stream';

/** A stream of server-sent events, as a client of it sees them. */
export interface EventStream {
  readonly response: Response;
  /** The next one; null where the stream has ended. Rejects where it was broken off. */
  next(): Promise<EventSourceMessage | null>;
  /** The next ones, up to the first that is wanted. */
  upTo(wanted: (event: EventSourceMessage) => boolean): Promise<EventSourceMessage[]>;
  /** Goes away. */
  cut(): void;
}

/** Fails where nothing comes for so long. */
const patienceMs = 60_000;

/** Opens the stream; fails where it is refused. */
export async function openEventStream(url: string, key: string, lastEventId: string | null = null): Promise<EventStream> {
  const leaving = new AbortController();
  const resume = lastEventId === null ? {} : { 'Last-Event-ID': lastEventId };
  const response = await fetch(url, { headers: { 'X-Session-API-Key': key, ...resume }, signal: leaving.signal });
  if (!response.ok || response.body === null) throw new Error(`${url} answered ${response.status}: ${await response.text()}`);
  const reader = response.body.pipeThrough(new TextDecoderStream()).pipeThrough(new EventSourceParserStream()).getReader();
  const next = async (): Promise<EventSourceMessage | null> => {
    const late = setTimeout(() => leaving.abort(new Error(`nothing came within ${patienceMs} ms`)), patienceMs);
    try {
      const { value } = await reader.read();
      return value ?? null;
    } finally {
      clearTimeout(late);
    }
  };
  return {
    response,
    next,
    async upTo(wanted) {
      const seen: EventSourceMessage[] = [];
      for (;;) {
        const event = await next();
        if (event === null) throw new Error(`the stream ended before; last: ${seen.at(-1)?.data ?? 'nothing'}`);
        seen.push(event);
        if (wanted(event)) return seen;
      }
    },
    cut: () => leaving.abort(),
  };
}
