import { withSilenceLimit } from './byte-stream.ts';
import { failureOf, invalidInput, isFailure, isPage, isTemporary, connectionLost, SkepError, unreachable } from './failures.ts';
import { keyedRoutes, type Operations, type Page } from './openapi.ts';
import { Backoff } from './backoff.ts';
import { Watchdog } from './waiting.ts';

export interface ClientOptions {
  /** The address of the server: `http://127.0.0.1:3000`. Without a scheme, `http` is used for this machine, and `https` for others. */
  readonly url: string;
  /** An API key. */
  readonly key?: string | undefined;
  /** The time limit for opening a stream or a WebSocket, in milliseconds. Default: 10,000. */
  readonly connectMs?: number | undefined;
  /** The time limit for a response, and for each part of it, in milliseconds. Default: 60,000; 290,000 where the server waits for git. */
  readonly silenceMs?: number | undefined;
  /** How long a request is repeated after temporary failures, in milliseconds. Default: 30,000. */
  readonly retryForMs?: number | undefined;
  /** How long to reconnect after a stream or a WebSocket was lost, in milliseconds. Default: 120,000. */
  readonly reconnectForMs?: number | undefined;
  /** Replaces the platform's `fetch`. */
  readonly fetch?: typeof fetch | undefined;
  /** Opens a WebSocket. Node 20 has no WebSocket, so pass one from the package `ws`: `(address) => new WebSocket(address)`. */
  readonly openSocket?: ((address: string) => ClientSocket) | undefined;
}

/** The members of a WebSocket that the client uses. */
export interface ClientSocket {
  binaryType: string;
  readonly readyState: number;
  send(data: string | Uint8Array<ArrayBuffer>): void;
  close(): void;
  addEventListener(type: 'open' | 'error' | 'close', listener: () => void): void;
  addEventListener(type: 'message', listener: (message: { readonly data: unknown }) => void): void;
}

export interface CallOptions {
  readonly signal?: AbortSignal | undefined;
  /** Replaces the client's `silenceMs`. `Infinity`: no limit. */
  readonly silenceMs?: number | undefined;
}

/** A method and a path template, for example `GET /api/v1/sandboxes/{id}`. */
export type Route = keyof Operations;
/** The parameters in the path of a route. */
type PathName<R extends string> = R extends `${string}{${infer N}}${infer Rest}` ? N | PathName<Rest> : never;
type InPath<N extends string> = [N] extends [never] ? unknown : { readonly path: Readonly<Record<N, string | number>> };
type Parts<R extends Route> = Omit<Operations[R], 'response'> & InPath<PathName<R>>;
export type RequestInput<R extends Route> = Parts<R> & CallOptions;
export type RequestArguments<R extends Route> = object extends Parts<R> ? [input?: RequestInput<R>] : [input: RequestInput<R>];
export type Answer<R extends Route> = Operations[R]['response'];

/** The routes that return a page. */
export type PageRoute = { [R in Route]: Answer<R> extends Page<unknown> ? R : never }[Route];
export type Item<R extends PageRoute> = Answer<R> extends { readonly items: readonly (infer I)[] } ? I : never;

type Value = string | number | boolean | null | undefined;
type Values = Readonly<Record<string, Value | readonly Value[]>>;

interface AnyInput extends CallOptions {
  readonly path?: Values | undefined;
  readonly query?: Values | undefined;
  readonly headers?: Readonly<Record<string, string | number | undefined>> | undefined;
  readonly body?: unknown;
}

interface PreparedRequest {
  readonly address: string;
  readonly init: RequestInit;
  readonly silenceMs: number;
  /** Whether it can be sent twice without harm. */
  readonly isSafe: boolean;
}

/** Adds a missing scheme: `https` for other machines, so the key is sent without TLS only if `http://` is written out. */
function withScheme(address: unknown): string {
  if (typeof address !== 'string') throw new TypeError('The client needs the address of a server: { url: "http://127.0.0.1:3000" }.');
  const missing = /^(?:localhost|127\.[\d.]+|\[::1\])(?:[:/]|$)/i.test(address) ? 'http://' : 'https://';
  const full = /^[a-z][\w+.-]*:\/\//i.test(address) ? address : missing + address;
  if (!/^https?:/i.test(full) || !URL.canParse(full)) throw invalidInput(['url'], `must be an http or https address, but is "${address}"`);
  return full;
}

/** For these, the server waits for git: for a clone, a push or a comparison of many files. */
const gitRoutes: ReadonlySet<string> = new Set<Route>([
  'GET /api/user/repository/{repository_name}/microagents', 'GET /api/user/repository/{repository_name}/microagents/content',
  'GET /api/v1/app-conversations/{id}/changes', 'POST /api/v1/app-conversations/{id}/publish',
]);

/** Node's `fetch` itself ends a request that has no response after 300 seconds. */
const gitSilenceMs = 290_000;

/** Sends requests. Repeats them if that can help and does no harm. */
export class Connection {
  readonly url: string;
  /** Headers with the key, for requests that you send yourself. */
  readonly headers: Readonly<Record<string, string>>;
  readonly connectMs: number;
  readonly silenceMs: number;
  readonly retryForMs: number;
  readonly reconnectForMs: number;
  readonly options: ClientOptions;

  constructor(options: ClientOptions) {
    this.url = withScheme(options.url).replace(/\/+$/, '');
    // The platform's error would show a key with a line feed as it is.
    if (/[^\t\x20-\x7e\x80-\xff]/.test(options.key ?? '')) {
      throw new SkepError('unauthorized', "The API key has a line feed or another character that can't be sent.", { context: {} });
    }
    this.headers = options.key === undefined ? {} : { 'X-Session-API-Key': options.key };
    this.connectMs = options.connectMs ?? 10_000;
    this.silenceMs = options.silenceMs ?? 60_000;
    this.retryForMs = options.retryForMs ?? 30_000;
    this.reconnectForMs = options.reconnectForMs ?? 120_000;
    this.options = options;
  }

  /** Sends any request of the API: `request('GET /api/v1/sandboxes/{id}', { path: { id } })`. Returns the parsed response. */
  async request<R extends Route>(route: R, ...[input = {} as RequestInput<R>]: RequestArguments<R>): Promise<Answer<R>> {
    return (await this.#send(route, input, this.retryForMs, false)) as Answer<R>;
  }

  /** Sends a request and returns the raw response: use `.text()`, or `.body` for large or endless ones. */
  async stream<R extends Route>(route: R, ...[input = {} as RequestInput<R>]: RequestArguments<R>): Promise<Response> {
    return (await this.#send(route, input, this.retryForMs, true)) as Response;
  }

  /** Opens a stream, in one attempt within `connectMs`. */
  async open<R extends Route>(route: R, input: RequestInput<R>): Promise<Response> {
    return (await this.#send(route, input, 0, true, this.connectMs)) as Response;
  }

  /** Yields the items of all pages of a listing. */
  async *items<R extends PageRoute>(route: R, ...[input]: RequestArguments<R>): AsyncGenerator<Item<R>, void> {
    const given: AnyInput = input ?? {};
    let pageId = given.query?.['page_id'];
    do {
      const query = { ...given.query, page_id: pageId };
      const page = (await this.request(route, ...([{ ...given, query }] as unknown as RequestArguments<R>))) as Page<unknown>;
      yield* page.items as Item<R>[];
      pageId = page.next_page_id;
    } while (pageId !== null);
  }

  async #send(route: string, input: AnyInput, retryForMs: number, isStream: boolean, connectMs?: number): Promise<unknown> {
    const request = this.#prepare(route, input);
    const backoff = new Backoff(retryForMs);
    for (;;) {
      try {
        return await this.#attempt(request, input, isStream, connectMs);
      } catch (error) {
        const isRefused = isFailure(error) && error.status === 429;
        if (!isTemporary(error) || !(request.isSafe || isRefused) || input.body instanceof ReadableStream) throw error;
        await backoff.wait(error, input.signal);
      }
    }
  }

  async #attempt({ address, init, silenceMs }: PreparedRequest, input: AnyInput, isStream: boolean, connectMs?: number): Promise<unknown> {
    const watch = new Watchdog(input.signal);
    let response: Response | null = null;
    try {
      if (connectMs !== undefined) watch.restart('connect', connectMs);
      // No time limit while bytes are uploaded.
      else if (typeof (init.body ?? '') === 'string') watch.restart('silence', silenceMs);
      const answering = (this.options.fetch ?? fetch)(address, { ...init, signal: watch.signal });
      response = await watch.race(answering, (late) => late.body?.cancel());
      const { body, ok, status, headers } = response;
      // Chromium adds a body to responses that have none.
      if (status === 204 || status === 304 || (ok && body === null)) return isStream ? response : undefined;
      const limited = body === null ? response : new Response(withSilenceLimit(body, watch, silenceMs), response);
      const type = headers.get('Content-Type');
      if (!ok || (isPage(type) && address !== `${this.url}/docs`)) throw await failureOf(limited);
      return !isStream && type?.toLowerCase().includes('json') === true ? await limited.json() : limited;
    } catch (error) {
      input.signal?.throwIfAborted();
      if (isFailure(error)) throw error;
      throw response === null ? unreachable(this.url, error, init.body instanceof ReadableStream) : connectionLost(undefined, error);
    } finally {
      watch.stop();
    }
  }

  #prepare(route: string, { path = {}, query = {}, headers, body, silenceMs = this.options.silenceMs }: AnyInput): PreparedRequest {
    const [method = '', template = ''] = route.split(' ');
    if (body instanceof ReadableStream && !sendsStreams()) throw invalidInput(['body'], "can't be a stream here; pass a Blob or bytes");
    const isJson = body !== undefined && ![Uint8Array, Blob, ReadableStream].some((bytes) => body instanceof bytes);
    const sent = new Headers(this.headers);
    if (body !== undefined) sent.set('Content-Type', isJson ? 'application/json' : 'application/octet-stream');
    if (keyedRoutes.has(route)) sent.set('Idempotency-Key', randomKey());
    for (const [name, value] of Object.entries(headers ?? {})) if (value !== undefined) sent.set(name, String(value));
    return {
      address: this.url + addressOf(template, path, query),
      silenceMs: silenceMs ?? (gitRoutes.has(route) ? gitSilenceMs : this.silenceMs),
      isSafe: method !== 'POST' || sent.has('Idempotency-Key'),
      init: {
        method,
        headers: sent,
        // The key must reach only this server, so redirects are not followed.
        redirect: 'manual',
        ...(body !== undefined && { body: isJson ? JSON.stringify(body) : (body as Blob) }),
        ...(body instanceof ReadableStream && { duplex: 'half' }),
      },
    };
  }
}

/** Returns false for a platform that would send the text `[object ReadableStream]` instead: some browsers. */
function sendsStreams(): boolean {
  // Not all declarations of a request know `duplex`.
  const init = { method: 'POST', body: new ReadableStream(), duplex: 'half' };
  const request = new Request('http://localhost', init as RequestInit);
  return !request.headers.has('Content-Type');
}

/** Returns the path and the query of a request. An empty part of the path would lead to another route. */
export function addressOf(template: string, path: Values, query: Values): string {
  const filled = template.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    if (path[name] === '') throw invalidInput(['path', name], 'must not be empty');
    return encodeURIComponent(String(path[name]));
  });
  const pairs = Object.entries(query).flatMap(([name, value]) => [value].flat().map((one) => [name, one ?? null] as const));
  const given = pairs.flatMap(([name, value]) => (value === null ? [] : [[name, String(value)]]));
  return given.length === 0 ? filled : `${filled}?${new URLSearchParams(given).toString()}`;
}

/** `crypto.randomUUID` exists only in secure contexts. */
function randomKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('');
}
