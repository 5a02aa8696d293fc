import { once } from 'node:events';
import { request, type IncomingHttpHeaders, type IncomingMessage, type OutgoingHttpHeaders } from 'node:http';

export interface Sent {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

export interface SendOptions {
  readonly method?: string;
  readonly headers?: OutgoingHttpHeaders;
  readonly body?: string | Buffer;
}

/** Sends a request with unchanged path and headers, including `Host`. Returns the head of the response. */
export async function open(port: number, path: string, { method = 'GET', headers = {}, body }: SendOptions = {}): Promise<IncomingMessage> {
  const outgoing = request({ host: '127.0.0.1', port, path, method, headers, agent: false });
  outgoing.end(body);
  const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
  return response;
}

/** Sends a request like `open`, and returns the response with its whole body as text. */
export async function send(port: number, path: string, options: SendOptions = {}): Promise<Sent> {
  const response = await open(port, path, options);
  let body = '';
  for await (const chunk of response.setEncoding('utf8')) body += String(chunk);
  return { status: response.statusCode ?? 0, headers: response.headers, body };
}

/** Returns the `code` of problem details. */
export function codeOf({ body }: Sent): unknown {
  return (JSON.parse(body) as { readonly code?: unknown }).code;
}

/** Returns the options of a request with this credential. */
export function withKey(credential: string, more: Readonly<Record<string, string>> = {}): { readonly headers: Record<string, string> } {
  return { headers: { 'X-Session-API-Key': credential, ...more } };
}

/** Opens a link at the target, and returns the cookie that it sets. */
export async function cookieOf(port: number, target: string, link: string): Promise<string> {
  const { headers } = await send(port, `${target}${new URL(link).search}`);
  return headers['set-cookie']?.[0]?.split(';')[0] ?? '';
}
