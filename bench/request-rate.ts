import autocannon from 'autocannon';
import type { Listening } from './server-process.ts';

export const connections = 10;
const secondsARound = 2;

export function headersOf({ key }: Listening): Record<string, string> {
  return key === '' ? {} : { 'X-Session-API-Key': key };
}

/** Over {@link connections} connections, for 2 seconds. Throws if a request fails. */
export async function requestsPerSecond(server: Listening): Promise<number> {
  const result = await autocannon({ url: server.url, headers: headersOf(server), connections, duration: secondsARound });
  if (result.non2xx > 0 || result.errors > 0) throw new Error(`${result.non2xx} refusals and ${result.errors} errors from ${server.url}`);
  return result.requests.average;
}
