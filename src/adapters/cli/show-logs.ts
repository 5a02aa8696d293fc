import { clientOf, printBody, stopSignal } from './console.ts';

interface LogOptions {
  readonly url?: string;
  readonly follow?: boolean;
  readonly tail?: number;
}

/** Prints the log of a sandbox. On a terminal, removes control characters. Ends at a stop signal. */
export async function showLogs(id: string, { url, follow = false, tail }: LogOptions): Promise<void> {
  const signal = stopSignal();
  const query = { follow: follow ? 'true' : 'false', tail_bytes: tail } as const;
  const client = clientOf({ ...(url !== undefined && { url }) });
  await printBody(await client.stream('GET /api/v1/sandboxes/{id}/logs', { path: { id }, query, signal, silenceMs: Infinity }), signal);
}
