import { once } from 'node:events';
import { readBytes, safeText } from '../../client/client.ts';
import { clientOf, stopSignal } from './console.ts';

interface LogOptions {
  readonly url?: string;
  readonly follow?: boolean;
  readonly tail?: string;
}

/** Prints the log of a sandbox as it is, but on a terminal without what controls it. Leaves when the process is asked to end. */
export async function showLogs(id: string, { url, follow = false, tail }: LogOptions): Promise<void> {
  const { stdout } = process;
  const signal = stopSignal();
  const query = new URLSearchParams({ follow: String(follow), ...(tail !== undefined && { tail_bytes: tail }) });
  const client = clientOf({ ...(url !== undefined && { url }) });
  const decoder = new TextDecoder();
  for await (const bytes of readBytes(client, `/api/v1/sandboxes/${encodeURIComponent(id)}/logs?${query.toString()}`, signal)) {
    const shown = stdout.isTTY ? safeText(decoder.decode(bytes, { stream: true })) : bytes;
    if (!stdout.write(shown)) await once(stdout, 'drain');
  }
}
