import { loadConfig } from '../config/load.ts';
import type { Environment } from '../config/environment.ts';

/** Asks the server of these settings whether it answers: 0 or 1. For whoever watches over it, a container's health check for one. */
export async function health(env: Environment): Promise<number> {
  const { host, port } = loadConfig(env);
  const url = `http://${addressOf(host)}:${port}/health`;
  try {
    const { ok, status } = await fetch(url, { signal: AbortSignal.timeout(5_000) });
    if (ok) return 0;
    process.stderr.write(`skep: ${url} answers ${status}.\n`);
  } catch {
    process.stderr.write(`skep: ${url} does not answer; start the server: skep serve\n`);
  }
  return 1;
}

/** Where a server that listens there is reached from its own machine. */
function addressOf(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1';
  if (host === '::') return '[::1]';
  return host.includes(':') ? `[${host}]` : host;
}
