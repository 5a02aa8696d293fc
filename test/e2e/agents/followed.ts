import { EventSourceParserStream } from 'eventsource-parser/stream';
import { key } from './scene.ts';

export interface Followed {
  readonly id: number;
  /** The data as received. */
  readonly data: string;
}

/** Reads `count` events of a stream, after the event with the id `after` if it is set. */
export async function followed(url: string, path: string, count: number, after?: number): Promise<Followed[]> {
  const leave = new AbortController();
  const signal = AbortSignal.any([leave.signal, AbortSignal.timeout(60_000)]);
  const headers = { 'X-Session-API-Key': key, ...(after !== undefined && { 'Last-Event-ID': String(after) }) };
  const response = await fetch(`${url}${path}`, { headers, signal });
  if (response.status !== 200 || response.body === null) throw new Error(`no stream: ${response.status}`);
  const told: Followed[] = [];
  try {
    for await (const { id, data } of response.body.pipeThrough(new TextDecoderStream()).pipeThrough(new EventSourceParserStream())) {
      if (id !== undefined) told.push({ id: Number(id), data });
      if (told.length === count) break;
    }
  } finally {
    leave.abort();
  }
  return told;
}
