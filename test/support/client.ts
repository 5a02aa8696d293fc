/** A response of the server. The body is parsed if it is JSON, otherwise it is text. */
export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: unknown;
}

export type Json = Record<string, unknown>;

export interface Client {
  (method: string, path: string, body?: unknown, headers?: Readonly<Record<string, string>>): Promise<Answer>;
}

/** Returns a client that sends the key, and bodies as JSON. */
export function createClient(url: string, key: string | null): Client {
  return async (method, path, body, headers = {}) => {
    const response = await fetch(`${url}${path}`, {
      method,
      headers: {
        ...(key !== null && { 'X-Session-API-Key': key }),
        ...(body !== undefined && { 'Content-Type': 'application/json' }),
        ...headers,
      },
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
      redirect: 'manual',
      signal: AbortSignal.timeout(60_000),
    });
    const text = await response.text();
    const json = response.headers.get('content-type')?.includes('json') === true;
    return { status: response.status, headers: response.headers, body: json ? JSON.parse(text) : text };
  };
}

/** Returns the body as an object. Throws if it is not an object. */
export function object(answer: Answer): Json {
  if (typeof answer.body !== 'object' || answer.body === null) throw new Error(`not an object: ${String(answer.body)}`);
  return answer.body as Json;
}

/** Returns the items of a page. */
export function items(answer: Answer): Json[] {
  return object(answer)['items'] as Json[];
}
