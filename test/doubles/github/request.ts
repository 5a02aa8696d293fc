import type { IncomingMessage, ServerResponse } from 'node:http';

/** A request, read to its end. */
export interface DoubleRequest {
  readonly method: string;
  /** As it came, without the prefix of the API and without the query. */
  readonly path: string;
  /** Decoded. */
  readonly segments: readonly string[];
  readonly query: URLSearchParams;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly isGraphql: boolean;
}

export interface DoubleResponse {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** Text and bytes are sent as they are; anything else as JSON. */
  readonly body?: unknown;
}

/** A request and its response. */
export interface Recorded extends DoubleRequest {
  /** When it had arrived, in milliseconds, by the clock of `performance`. */
  readonly at: number;
  status: number | null;
}

export async function readRequest(message: IncomingMessage, prefix: string): Promise<DoubleRequest> {
  const chunks: Buffer[] = [];
  for await (const chunk of message) chunks.push(Buffer.from(chunk));
  const [rawPath = '', query = ''] = (message.url ?? '').split(/\?(.*)/su);
  const isGraphql = rawPath === (prefix === '' ? '/graphql' : prefix.replace(/\/v3$/u, '/graphql'));
  const path = isGraphql ? '/graphql' : rawPath.startsWith(`${prefix}/`) ? rawPath.slice(prefix.length) : `outside:${rawPath}`;
  const headers = Object.fromEntries(Object.entries(message.headers).map(([name, value]) => [name, String(value)]));
  return {
    method: message.method ?? '',
    path,
    segments: path.split('/').slice(1).map((segment) => decodeURIComponent(segment)),
    query: new URLSearchParams(query),
    headers,
    body: Buffer.concat(chunks).toString('utf8'),
    isGraphql,
  };
}

export function send(response: ServerResponse, { status, headers = {}, body }: DoubleResponse): void {
  const isText = typeof body === 'string' || Buffer.isBuffer(body);
  const type = isText ? 'text/plain; charset=utf-8' : 'application/json; charset=utf-8';
  const text = body === undefined ? '' : isText ? body : JSON.stringify(body);
  response.writeHead(status, { 'content-type': type, ...headers, 'content-length': Buffer.byteLength(text) });
  response.end(text);
}

/** GitHub's form of an error. */
export function refusal(status: number, message: string): DoubleResponse {
  return { status, body: { message, documentation_url: 'https://docs.github.com/rest', status: String(status) } };
}
