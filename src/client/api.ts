import type { z } from 'zod';
import { ClientError, refused, unreachable } from './client-error.ts';

export interface ApiOptions {
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
