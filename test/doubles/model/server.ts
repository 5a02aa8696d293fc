import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { chunks, completion } from './completion.ts';
import { replyTo, type ChatRequest, type ModelReply } from './replies.ts';

interface ModelRequest {
  /** The value of the header `Authorization`. */
  readonly authorization: string | null;
  readonly body: ChatRequest;
}

/** A model behind an OpenAI-compatible endpoint, which answers from a script. */
export interface ModelDouble {
  /** Ends in `/v1`. */
  readonly url: string;
  readonly port: number;
  readonly requests: ModelRequest[];
  close(): Promise<void>;
}

interface ModelOptions {
  /** Default: loopback. `0.0.0.0` lets containers reach it. */
  readonly host?: string;
  /** Returns the reply. Default: the script in the messages (see `modelScript`). */
  readonly reply?: (request: ChatRequest) => ModelReply;
}

export async function startModel({ host = '127.0.0.1', reply = replyTo }: ModelOptions = {}): Promise<ModelDouble> {
  const requests: ModelRequest[] = [];
  const server = createServer((request, response) => {
    answer(request, response).catch((error: unknown) => send(response, 500, { error: { message: String(error) } }));
  });

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.url === '/v1/models') return send(response, 200, { object: 'list', data: [{ id: 'stub', object: 'model', created: 0, owned_by: 'test' }] });
    if (request.url !== '/v1/chat/completions') return send(response, 404, { error: { message: 'no such route' } });
    const body = JSON.parse(await text(request)) as ChatRequest;
    requests.push({ authorization: request.headers.authorization ?? null, body });
    const said = reply(body);
    if ('status' in said) return send(response, said.status, { error: { message: said.message, type: 'stub_error', code: 'stub' } });
    if (body.stream !== true) return send(response, 200, completion(said, body.model));
    response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });
    for (const chunk of chunks(said, body.model)) response.write(`data: ${chunk}\n\n`);
    if (!('stall' in said && said.stall)) response.end();
  }

  server.listen(0, host);
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/v1`,
    port,
    requests,
    async close() {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

function send(response: ServerResponse, status: number, body: object): void {
  if (response.headersSent) response.destroy();
  else response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}
