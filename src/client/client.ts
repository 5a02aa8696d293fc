import { stripVTControlCharacters } from 'node:util';
import { z } from 'zod';

interface ApiOptions {
  /** Where the server is: `http://127.0.0.1:3000`. */
  readonly url: string;
  readonly key: string;
}

/** The HTTP interface of a server, as its client sees it. */
export interface Api {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  get<T>(path: string, schema: z.ZodType<T>): Promise<T>;
  post<T>(path: string, body: unknown, schema: z.ZodType<T>): Promise<T>;
  delete(path: string): Promise<void>;
}

/** Every method fails with a {@link ClientError} that has the server's own words. */
export function createApi({ url, key }: ApiOptions): Api {
  const headers = { 'X-Session-API-Key': key };
  const send = async (method: string, path: string, body?: unknown): Promise<string> => {
    const content = body === undefined ? {} : { 'Content-Type': 'application/json' };
    try {
      // The key is for this server only, wherever it may point to.
      const response = await fetch(url + path, { method, redirect: 'manual', headers: { ...headers, ...content }, ...(body !== undefined && { body: JSON.stringify(body) }) });
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
      throw new ClientError(`What answers at ${url} is no Skep, or one of another version.`, { cause: error });
    }
  };
  return {
    url,
    headers,
    get: async (path, schema) => read(await send('GET', path), schema),
    post: async (path, body, schema) => read(await send('POST', path, body), schema),
    delete: async (path) => {
      await send('DELETE', path);
    },
  };
}

/** Why a server can't be used, in words that say what to do. */
export class ClientError extends Error {
  override readonly name = 'ClientError';
}

const place = z.array(z.union([z.string(), z.number()]));
const problem = z.object({ detail: z.union([z.string(), z.array(z.object({ loc: place, msg: z.string() }))]) });

export function unreachable(url: string, error: unknown): ClientError {
  const cause = error instanceof Error && error.cause instanceof Error && 'code' in error.cause ? ` (${String(error.cause.code)})` : '';
  return new ClientError(`No Skep answers at ${url}${cause}. Start one with \`skep serve\`, or say where it is with --url.`, { cause: error });
}

/** What the server said of a refusal. */
export function refused(status: number, text: string): ClientError {
  const told = problem.safeParse(jsonOf(text));
  if (!told.success) return new ClientError(`It answered with status ${status}; is it a Skep?`);
  const { detail } = told.data;
  return new ClientError(harmlessLine(typeof detail === 'string' ? detail : detail.map(({ loc, msg }) => `${loc.join('.')}: ${msg}`).join('; ')));
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

// Line feeds and tabs stay. Marks that turn the direction of what follows around could make it read as something else.
// oxlint-disable-next-line no-control-regex -- they are what has to go
const steering = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g;

/** Text of others as it may be put on a terminal: without what would steer it. */
export function harmless(text: string): string {
  return stripVTControlCharacters(text).replaceAll(steering, '');
}

/** The same on one line, so that it can't pass for lines of its reader's own. */
export function harmlessLine(text: string): string {
  return harmless(text.replaceAll(/\s+/g, ' ')).trim();
}
