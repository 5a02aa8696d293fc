import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { EventSourceParserStream } from 'eventsource-parser/stream';
import { startServerProcess } from '../server-process.ts';

/** The client of the benchmark's server. */
export interface BenchServer extends AsyncDisposable {
  /** Starts a conversation and resolves when it is READY. */
  conversation(): Promise<string>;
  send(id: string, text: string): Promise<void>;
  /** Yields the conversation's events from now on: their kind, data and time. */
  events(id: string, after?: string): AsyncGenerator<{ readonly kind: string; readonly data: string }>;
  /** Returns the memory of the server's process, in bytes. */
  memory(): Promise<number>;
}

export async function startBenchServer(): Promise<BenchServer> {
  const server = await startServerProcess('conversations/server.ts', 'begin');
  const { child, listening: { url, key } } = server;
  const headers = { 'X-Session-API-Key': key, 'Content-Type': 'application/json' };
  const conversations = `${url}/api/v1/app-conversations`;
  const call = async (path: string, body?: unknown): Promise<Record<string, unknown>> => {
    const response = await fetch(conversations + path, { headers, ...(body !== undefined && { method: 'POST', body: JSON.stringify(body) }) });
    const text = await response.text();
    if (!response.ok) throw new Error(`${response.status}: ${text}`);
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- every answer is an object
    return JSON.parse(text) as Record<string, unknown>;
  };
  return {
    async conversation() {
      const { id } = await call('', {});
      for (;;) {
        const { start_status, status_detail } = await call(`/${String(id)}`);
        if (start_status === 'READY') return String(id);
        if (start_status === 'ERROR') throw new Error(String(status_detail));
        await pause(20);
      }
    },
    async send(id, text) {
      await call(`/${id}/messages`, { content: [{ type: 'text', text }] });
    },
    async *events(id, after = 'latest') {
      const left = new AbortController();
      try {
        const { body } = await fetch(`${conversations}/${id}/events/stream?after=${after}`, { headers, signal: left.signal });
        if (body === null) throw new Error('the stream has no body');
        for await (const { event = '', data } of body.pipeThrough(new TextDecoderStream()).pipeThrough(new EventSourceParserStream())) yield { kind: event, data };
      } finally {
        left.abort();
      }
    },
    async memory() {
      child.send('memory');
      const [bytes]: unknown[] = await once(child, 'message');
      return Number(bytes);
    },
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}
