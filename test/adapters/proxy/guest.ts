import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { WebSocketServer } from 'ws';

// The program in the sandboxes of these tests. It records every byte that it receives.

const received: Buffer[] = [];
const port = Number(process.env['SKEP_PORT_8000']);

const page = `<!doctype html><title>guest</title><link rel="stylesheet" href="style.css"><script type="module" src="app.js"></script><h1>guest</h1>`;
const script = `
const log = (text) => document.body.insertAdjacentHTML('beforeend', '<p>' + text + '</p>');
const socket = new WebSocket(new URL('socket', location.href.replace(/^http/, 'ws')));
socket.onopen = () => socket.send('hello');
socket.onmessage = ({ data }) => log('socket ' + data);
const answer = await fetch('upload', { method: 'POST', body: new Blob(['x'.repeat(100000)]) });
log('upload ' + (await answer.json()).bytes);
`;

function json(response: ServerResponse, value: unknown): void {
  response.setHeader('Content-Type', 'application/json').end(JSON.stringify(value));
}

async function upload(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const hash = createHash('sha256');
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    hash.update(chunk);
  }
  json(response, { bytes, sha256: hash.digest('hex') });
}

function download(response: ServerResponse, bytes: number): void {
  const chunk = Buffer.alloc(65_536, 'skep');
  let left = bytes;
  const more = (): void => {
    while (left > 0) {
      const next = chunk.subarray(0, Math.min(left, chunk.length));
      left -= next.length;
      if (!response.write(next)) return;
    }
    response.end();
  };
  response.on('drain', more);
  more();
}

/** The open responses of `/stream`. Each has sent a line, and sends the next one on a request for `/next`. */
const streams = new Set<ServerResponse>();

const server = createServer((request, response) => {
  const url = URL.parse(`http://guest${request.url ?? '/'}`) ?? new URL('http://guest/other');
  switch (url.pathname) {
    case '/':
      return void response.setHeader('Content-Type', 'text/html').end(page);
    case '/app.js':
      return void response.setHeader('Content-Type', 'text/javascript').end(script);
    case '/style.css':
      return void response.setHeader('Content-Type', 'text/css').end('h1 { color: rgb(1, 2, 3) }');
    case '/received':
      return json(response, Buffer.concat(received).toString('latin1'));
    case '/upload':
      return void upload(request, response);
    case '/download':
      return download(response, Number(url.searchParams.get('bytes')));
    case '/stream':
      streams.add(response);
      response.on('close', () => streams.delete(response));
      return void response.write('first\n');
    case '/next':
      for (const stream of streams) stream.write('next\n');
      return json(response, streams.size);
    case '/headers': {
      const headers = JSON.parse(url.searchParams.get('set') ?? '[]') as [string, string][];
      for (const [name, value] of headers) response.appendHeader(name, value);
      return void response.writeHead(Number(url.searchParams.get('status') ?? '200')).end();
    }
    case '/raw':
      return void request.socket.end(url.searchParams.get('answer') ?? '', 'latin1');
    case '/broken':
      return void request.socket.destroy();
    default:
      return json(response, { method: request.method, url: request.url, headers: request.rawHeaders });
  }
});
server.on('connection', (socket) => socket.on('data', (chunk) => received.push(Buffer.from(chunk))));
const sockets = new WebSocketServer({ server });
sockets.on('connection', (_, request) => request.url === '/reset' && request.socket.resetAndDestroy());
sockets.on('connection', (socket) => socket.on('message', (data, isBinary) => socket.send(data, { binary: isBinary })));
server.listen(port, '127.0.0.1');
