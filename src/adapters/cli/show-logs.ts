import { readBytes } from '../../client/client.ts';
import { clientOf, printBytes, stopSignal } from './console.ts';

interface LogOptions {
  readonly url?: string;
  readonly follow?: boolean;
  readonly tail?: string;
}

/** Prints the log of a sandbox as it is, but on a terminal without what controls it. Leaves when the process is asked to end. */
export async function showLogs(id: string, { url, follow = false, tail }: LogOptions): Promise<void> {
  const signal = stopSignal();
  const query = new URLSearchParams({ follow: String(follow), ...(tail !== undefined && { tail_bytes: tail }) });
  const client = clientOf({ ...(url !== undefined && { url }) });
  await printBytes(readBytes(client, `/api/v1/sandboxes/${encodeURIComponent(id)}/logs?${query.toString()}`, signal));
}
