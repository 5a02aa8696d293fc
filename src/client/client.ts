import { stripVTControlCharacters } from 'node:util';
import { z } from 'zod';
import { commandName } from './command-name.ts';

/** The HTTP API of a server. Every method throws a {@link ClientError} that holds the server's own message. */
export interface SkepClient {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  get<T>(path: string, schema: z.ZodType<T>): Promise<T>;
  post<T>(path: string, body: unknown, schema: z.ZodType<T>): Promise<T>;
  patch<T>(path: string, body: unknown, schema: z.ZodType<T>): Promise<T>;
  delete(path: string): Promise<void>;
}

/** How long a response may take, in milliseconds. The server itself waits at most 20 s for a pause or a deletion. */
const defaultTimeoutMs = 60_000;

interface ClientOptions {
  /** The address of the server, without a slash at its end: `http://127.0.0.1:3000`. */
  readonly url: string;
  readonly key: string;
  readonly timeoutMs?: number;
}

export function createClient({ url, key, timeoutMs = defaultTimeoutMs }: ClientOptions): SkepClient {
  const headers = { 'X-Session-API-Key': key };
  const send = async (method: string, path: string, body?: unknown): Promise<string> => {
    const content = body === undefined ? {} : { headers: { ...headers, 'Content-Type': 'application/json' }, body: JSON.stringify(body) };
    try {
      // The key is for this server only, so redirects are not followed.
      const signal = AbortSignal.timeout(timeoutMs);
      const response = await fetch(url + path, { method, redirect: 'manual', headers, signal, ...content });
      const text = await response.text();
      if (!response.ok) throw refused(response.status, text);
      return text;
    } catch (error) {
      throw error instanceof ClientError ? error : unreachable(url, error);
    }
  };
  const read = <T>(text: string, schema: z.ZodType<T>): T => {
    try {
      return schema.parse(JSON.parse(text));
    } catch (error) {
      throw new ClientError(`The server at ${url} is not Skep, or it is another version of it.`, { cause: error });
    }
  };
  return {
    url,
    headers,
    get: async (path, schema) => read(await send('GET', path), schema),
    post: async (path, body, schema) => read(await send('POST', path, body), schema),
    patch: async (path, body, schema) => read(await send('PATCH', path, body), schema),
    delete: async (path) => {
      await send('DELETE', path);
    },
  };
}

// The schemas name the fields that the client uses. The others stay, for whoever prints the whole.

export const conversation = z.looseObject({
  id: z.string(),
  title: z.string().nullable(),
  sandbox_id: z.string().nullable(),
  sandbox_status: z.string(),
  selected_repository: z.string().nullable(),
  start_status: z.string(),
  execution_status: z.string().nullable(),
  status_detail: z.string().nullable(),
});

export const conversationChanges = z.looseObject({
  kept_at: z.string().nullish(),
  complete: z.boolean(),
  commits: z.array(z.looseObject({ commit: z.string(), author_name: z.string(), subject: z.string() })),
  files: z.array(z.looseObject({
    path: z.string(),
    status: z.string(),
    old_path: z.string().nullable(),
    binary: z.boolean(),
    lines_added: z.int().nullable(),
    lines_removed: z.int().nullable(),
    committed: z.boolean(),
  })),
});

export const publication = z.looseObject({
  branch: z.string(),
  commit: z.string(),
  pull_request: z.looseObject({ number: z.int(), url: z.string() }).nullable(),
});

export const repository = z.looseObject({ name: z.string(), git_provider: z.string() });

export const branch = z.looseObject({ name: z.string(), commit: z.string(), is_default: z.boolean() });

export const sandbox = z.looseObject({
  id: z.string(),
  sandbox_spec_id: z.string(),
  status: z.string(),
  status_detail: z.string().nullable(),
  pause_kind: z.string().nullable(),
  last_active_at: z.string(),
  session_api_key: z.string().nullish(),
  exposed_urls: z.array(z.looseObject({ port: z.int(), url: z.string() })).nullish(),
});

export const sandboxSpec = z.looseObject({
  id: z.string(),
  agent: z.looseObject({}).nullish(),
  ports: z.array(z.looseObject({ port: z.int() })).optional(),
});

export const portLink = z.looseObject({ url: z.string(), expires_at: z.string() });

export const pageOf = <T extends z.ZodType>(item: T) => z.object({ items: z.array(item), next_page_id: z.string().nullable() });

export const messageAccepted = z.object({ message_id: z.string() });

export class ClientError extends Error {
  override readonly name = 'ClientError';
  /** The code of the server's problem details. */
  readonly code: string | null;
  /** What is there, if that is of the wrong type. */
  readonly fileType: string | null;

  constructor(message: string, given: ErrorOptions & Partial<Pick<ClientError, 'code' | 'fileType'>> = {}) {
    const { code = null, fileType = null, ...options } = given;
    super(message, options);
    this.code = code;
    this.fileType = fileType;
  }
}

const location = z.array(z.union([z.string(), z.number()]));
const problem = z.object({
  detail: z.union([z.string(), z.array(z.object({ loc: location, msg: z.string() }))]),
  code: z.string().optional(),
  file_type: z.string().optional(),
});

export function unreachable(url: string, error: unknown): ClientError {
  if (error instanceof Error && error.name === 'TimeoutError') {
    const message = `The server at ${url} did not answer in time. Look whether it did what you asked for, and try again.`;
    return new ClientError(message, { cause: error });
  }
  const cause = error instanceof Error && error.cause instanceof Error && 'code' in error.cause ? ` (${String(error.cause.code)})` : '';
  const message = `No Skep answers at ${url}${cause}. Start one with \`${commandName} serve\`, or give its address with --url.`;
  return new ClientError(message, { cause: error });
}

/** Returns the error for a response that is no success, with the message of its problem details. */
export function refused(status: number, text: string): ClientError {
  try {
    const { detail, code = null, file_type: fileType = null } = problem.parse(JSON.parse(text));
    const message = typeof detail === 'string' ? detail : detail.map(({ loc, msg }) => `${loc.join('.')}: ${msg}`).join('; ');
    return new ClientError(safeLine(message), { code, fileType });
  } catch (error) {
    return new ClientError(`The server answered with status ${status}. Is it Skep?`, { cause: error });
  }
}

// Line feeds and tabs stay. Marks that change the direction of text could make it read as something else.
// oxlint-disable-next-line no-control-regex -- control characters are what is removed
const controls = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g;

/** Returns the text without anything that controls a terminal. */
export function safeText(text: string): string {
  return stripVTControlCharacters(text).replaceAll(controls, '');
}

/** Returns such text on one line, so that it can't imitate lines of the program. */
export function safeLine(text: string): string {
  return safeText(text.replaceAll(/\s+/g, ' ')).trim();
}

/** Ends when the signal fires. Throws a {@link ClientError} if the server refuses or does not answer, or the connection breaks off. */
export async function* readBytes({ url, headers }: SkepClient, path: string, signal: AbortSignal): AsyncGenerator<Uint8Array, void> {
  let isOpen = false;
  try {
    const response = await fetch(url + path, { redirect: 'manual', headers, signal });
    if (!response.ok) throw refused(response.status, await response.text());
    isOpen = true;
    if (response.body !== null) yield* response.body;
  } catch (error) {
    if (signal.aborted) return;
    if (error instanceof ClientError) throw error;
    throw isOpen ? new ClientError(`The connection to ${url} was lost before the end.`, { cause: error }) : unreachable(url, error);
  }
}
