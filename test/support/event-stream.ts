import { EventSourceParserStream, type EventSourceMessage } from 'eventsource-parser/stream';

/** A stream of server-sent events, as its client sees it. */
export interface EventStream {
  readonly response: Response;
  /** Returns the next event. Null if the stream has ended. Rejects if the connection broke. */
  next(): Promise<EventSourceMessage | null>;
  /** Returns the next events, up to the first one for which `wanted` returns true. */
  upTo(wanted: (event: EventSourceMessage) => boolean): Promise<EventSourceMessage[]>;
  /** Closes the connection. */
  cut(): void;
}

/** The longest time to wait for an event. */
const patienceMs = 60_000;

/** Opens the stream. Throws if the server refuses it. */
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
