import { localUrl } from '../../adapters/cli/console.ts';
import { loadConfig } from '../config/load.ts';

/** Asks the server of these settings whether it answers. Returns 0 if it does, for the health check of a container. */
export async function health(env: NodeJS.ProcessEnv): Promise<number> {
  const { host, port } = loadConfig(env);
  const url = `${localUrl(host, port)}/health`;
  try {
    const { ok, status } = await fetch(url, { signal: AbortSignal.timeout(5_000) });
    if (ok) return 0;
    process.stderr.write(`skep: ${url} answers ${status}.\n`);
  } catch {
    process.stderr.write(`skep: ${url} does not answer; start the server: skep serve\n`);
  }
  return 1;
}
