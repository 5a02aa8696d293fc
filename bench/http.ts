import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import autocannon from 'autocannon';
import { boundedFigure, formatFigures, median, type Figure } from './figure.ts';
import type { Listening, SearchServer } from './http-server.ts';

const rounds = 7;
const secondsARound = 2;
const connections = 10;

/**
 * Requests a second of a listing of 20 sandboxes, everything on the way included, against a bare Express route that runs
 * the same query through the same driver. Each server is a process of its own; they are asked in turn, so that what else
 * the machine does falls on both.
 */
export async function benchHttp(): Promise<Figure[]> {
  await using servers = new AsyncDisposableStack();
  const skep = await startServer('skep', servers);
  const bare = await startServer(skep.data, servers);
  const body = await bodyOf(skep);
  if (!isDeepStrictEqual(JSON.parse(body), JSON.parse(await bodyOf(bare)))) throw new Error('the peer sends another page');

  for (const server of [skep, bare]) await requestsPerSecond(server);
  const measured: number[] = [];
  const reference: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    measured.push(await requestsPerSecond(skep));
    reference.push(await requestsPerSecond(bare));
  }
  const ratio = median(measured.map((value, round) => value / (reference[round] ?? Number.NaN)));
  const texts = {
    name: 'HTTP: a page of 20 sandboxes, key check and log included',
    measured: `${Math.round(median(measured))} requests/s`,
    reference: `${Math.round(median(reference))} requests/s, a bare Express 5 route with the same query`,
    note: `${body.length} bytes, ${connections} connections, the middle one of ${rounds} rounds`,
  };
  return [boundedFigure(texts, ratio, { atLeast: 0.8 })];
}

async function startServer(data: SearchServer['data'] | 'skep', servers: AsyncDisposableStack): Promise<SearchServer> {
  const child: ChildProcess = fork(join(import.meta.dirname, 'http-server.ts'), { env: { ...process.env, NODE_ENV: 'production' } });
  servers.defer(async () => {
    child.disconnect();
    await once(child, 'exit');
  });
  child.send(data);
  const [listening]: unknown[] = await Promise.race([once(child, 'message'), once(child, 'exit')]);
  if (!isListening(listening)) throw new Error(`a server of the benchmark ended with ${String(listening)}`);
  return listening;
}

function isListening(message: unknown): message is SearchServer {
  return typeof message === 'object' && message !== null && 'url' in message && 'key' in message && 'data' in message;
}

async function bodyOf(server: Listening): Promise<string> {
  return await (await fetch(server.url, { headers: headersOf(server) })).text();
}

function headersOf({ key }: Listening): Record<string, string> {
  return key === '' ? {} : { 'X-Session-API-Key': key };
}

async function requestsPerSecond(server: Listening): Promise<number> {
  const result = await autocannon({ url: server.url, headers: headersOf(server), connections, duration: secondsARound });
  if (result.non2xx > 0 || result.errors > 0) throw new Error(`${result.non2xx} refusals and ${result.errors} errors from ${server.url}`);
  return result.requests.average;
}

if (import.meta.main) process.stdout.write(formatFigures(await benchHttp()));
