import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { gunzipSync } from 'node:zlib';
import { runBackend } from './backend.ts';

export interface GitHttpOptions {
  /** The folder whose bare repositories are served. */
  readonly root: string;
  /** The accepted value of `Authorization`. Default: every request is accepted. */
  readonly authorization?: string;
}

/** A request, and the size of its response. */
export interface GitHttpRequest {
  readonly method: string;
  /** The path, without the query. */
  readonly path: string;
  readonly authorization: string | null;
  /** The command of a protocol 2 request: `ls-refs`, `fetch`. Null for the first request. */
  readonly command: string | null;
  readonly body: string;
  status: number;
  /** The size of the response's body. */
  bytes: number;
  /** The number of objects in the pack that was sent. */
  objects: number;
}

/** Handles a request instead of the double. Returns true if it has sent the response. */
export type GitHttpInterceptor = (request: GitHttpRequest, response: ServerResponse) => boolean | Promise<boolean>;

/** A host of git repositories on loopback. Git's own backend serves git's protocol over HTTP. */
export interface GitHttp {
  readonly url: string;
  readonly requests: GitHttpRequest[];
  /** Null: the double responds normally. */
  interceptor: GitHttpInterceptor | null;
  close(): Promise<void>;
}

export async function startGitHttp({ root, authorization }: GitHttpOptions): Promise<GitHttp> {
  const requests: GitHttpRequest[] = [];
  const server = createServer((request, response) => void handle(request, response).catch(() => response.destroy()));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const double: GitHttp = { url, requests, interceptor: null, close };

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const sent = await buffer(request);
    const asked = new URL(request.url ?? '/', url);
    const plain = request.headers['content-encoding'] === 'gzip' ? gunzipSync(sent) : sent;
    const body = plain.toString('latin1');
    const log: GitHttpRequest = {
      method: request.method ?? '',
      path: asked.pathname,
      authorization: request.headers.authorization ?? null,
      command: /command=([a-z-]+)/u.exec(body)?.[1] ?? null,
      body,
      status: 0,
      bytes: 0,
      objects: 0,
    };
    requests.push(log);
    if (double.interceptor !== null && (await double.interceptor(log, response))) return;
    if (authorization !== undefined && log.authorization !== authorization) {
      log.status = 401;
      response.writeHead(401, { 'www-authenticate': 'Basic realm="git"', 'content-type': 'text/plain' }).end('who are you?');
      return;
    }
    const answer = await runBackend(root, request, asked, plain);
    Object.assign(log, { status: answer.status, bytes: answer.body.length, objects: objectsIn(answer.body) });
    response.writeHead(answer.status, answer.headers).end(answer.body);
  }

  async function close(): Promise<void> {
    server.closeAllConnections();
    server.close();
    await once(server, 'close');
  }

  return double;
}

/** Returns the number of objects in the pack of a protocol 2 fetch response. 0 if there is no pack. */
function objectsIn(answer: Buffer): number {
  const pack: Buffer[] = [];
  for (let at = 0; at + 4 <= answer.length; ) {
    const length = Number.parseInt(answer.toString('latin1', at, at + 4), 16);
    if (Number.isNaN(length)) return 0;
    // The first band is the pack. The others are messages.
    if (length > 5 && answer[at + 4] === 1) pack.push(answer.subarray(at + 5, at + length));
    if (pack.length > 0 && Buffer.concat(pack).length >= 12) break;
    at += Math.max(length, 4);
  }
  const header = Buffer.concat(pack);
  return header.toString('latin1', 0, 4) === 'PACK' ? header.readUInt32BE(8) : 0;
}
