import { SkepError } from '../../client/index.ts';
import { clientOf, printBody, stopSignal } from './console.ts';
import { transfer } from './transfer.ts';

interface LogOptions {
  readonly url?: string;
  readonly follow?: boolean;
  readonly tail?: number;
}

/** Prints the log of a sandbox. On a terminal, removes control characters. Ends at a stop signal. */
export async function showLogs(id: string, { url, follow = false, tail }: LogOptions): Promise<void> {
  const signal = stopSignal();
  const query = new URLSearchParams({ follow: String(follow), ...(tail !== undefined && { tail_bytes: String(tail) }) });
  const path = `/api/v1/sandboxes/${encodeURIComponent(id)}/logs?${query.toString()}`;
  const log = await transfer(clientOf({ ...(url !== undefined && { url }) }), { method: 'GET', path, signal });
  await printBody(log, signal).catch((cause: unknown) => {
    throw new SkepError('connection_lost', 'The connection was lost before the end of the log.', { context: {}, cause });
  });
}
