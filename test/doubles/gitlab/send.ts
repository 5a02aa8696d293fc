import type { ServerResponse } from 'node:http';
import type { Reply } from './exchange.ts';
import type { Fault } from './faults.ts';

/** Sends the answer, or does what the fault says in place of it. */
export function send(response: ServerResponse, reply: Reply, fault: Fault | null): void {
  switch (fault?.kind) {
    case undefined:
      return write(response, reply);
    case 'headers':
      return write(response, { ...reply, headers: { ...reply.headers, ...fault.headers } });
    case 'throttle':
      response.writeHead(429, { 'content-type': 'text/plain', ...fault.headers });
      response.end('Retry later\n');
      return undefined;
    case 'status':
      return write(response, { status: fault.status, headers: fault.headers ?? {}, body: fault.body ?? { message: `${fault.status} Trouble` } });
    case 'stall':
      return undefined;
    case 'reset':
      response.socket?.resetAndDestroy();
      return undefined;
    case 'cut': {
      const text = JSON.stringify(reply.body);
      response.writeHead(reply.status, { 'content-type': 'application/json', 'content-length': String(Buffer.byteLength(text)) });
      response.write(text.slice(0, Math.floor(text.length / 2)), () => response.socket?.destroy());
      return undefined;
    }
    case 'body':
      response.writeHead(200, { 'content-type': fault.contentType ?? 'application/json' });
      response.end(fault.text);
      return undefined;
  }
}

function write(response: ServerResponse, { status, headers, body }: Reply): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers });
  response.end(JSON.stringify(body));
}
