import { isDeepStrictEqual } from 'node:util';
import { boundedFigure, type Figure, median } from './figure.ts';
import type { SearchQuery } from './http-server.ts';
import { connections, headersOf, requestsPerSecond } from './request-rate.ts';
import { type Listening, startServerProcess } from './server-process.ts';

const rounds = 7;

/**
 * Measures requests per second for a page of 20 sandboxes against a bare Express handler that runs the same statement on the same
 * file and returns the same page. Each server has its own process. They are measured in turn, so other load affects both.
 */
export async function* benchHttp(): AsyncGenerator<Figure> {
  await using servers = new AsyncDisposableStack();
  const { listening: skep } = servers.use(await startServerProcess('http-server.ts', 'begin'));
  if (!hasQuery(skep)) throw new Error('the server sent no query');
  const { listening: bare } = servers.use(await startServerProcess('http-server.ts', skep.query));
  const [page, barePage] = [await pageOf(skep), await pageOf(bare)];
  if (!isDeepStrictEqual(JSON.parse(page), JSON.parse(barePage))) throw new Error(`the pages differ:\n${page}\n${barePage}`);

  for (const server of [skep, bare]) await requestsPerSecond(server);
  const measured: number[] = [];
  const reference: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    measured.push(await requestsPerSecond(skep));
    reference.push(await requestsPerSecond(bare));
  }
  const ratio = median(measured.map((value, round) => value / (reference[round] ?? Number.NaN)));
  const texts = {
    name: 'HTTP: sandboxes/search, a page of 20, key check and log included',
    measured: `${Math.round(median(measured))} requests/s`,
    reference: `${Math.round(median(reference))} requests/s, a bare Express handler with the same query`,
    note: `${page.length} bytes, ${connections} connections, the middle one of ${rounds} rounds`,
  };
  yield boundedFigure(texts, ratio, { atLeast: 0.8 });
}

function hasQuery(listening: Listening): listening is Listening & { readonly query: SearchQuery } {
  return 'query' in listening;
}

async function pageOf(server: Listening): Promise<string> {
  const response = await fetch(server.url, { headers: headersOf(server) });
  if (!response.ok) throw new Error(`${server.url} returned ${response.status}`);
  return await response.text();
}
