import { ClientError, refused, type SkepClient, unreachable } from './client.ts';

/**
 * Yields the bytes at the path as they come, which may take any time. Ends when the signal fires. Throws a {@link ClientError} if the
 * server refuses or does not answer, or the connection breaks off.
 */
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
