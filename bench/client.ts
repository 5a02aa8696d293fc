import { createClient } from '../src/client/index.ts';
import { type Figure, inMs, median } from './figure.ts';
import { type Listening, startServerProcess } from './server-process.ts';

const rounds = 3000;
const boundMs = 0.5;

/** Measures a page of 20 sandboxes by the client against a bare `fetch` of the same page with `JSON.parse`, in turn, on one connection. */
export async function* benchClient(): AsyncGenerator<Figure> {
  await using servers = new AsyncDisposableStack();
  const { listening }: { readonly listening: Listening } = servers.use(await startServerProcess('http-server.ts', 'begin'));
  const { url, key } = listening;
  const skep = createClient({ url: new URL(url).origin, key });
  const own = (): Promise<unknown> => skep.request('GET /api/v1/sandboxes/search');
  const bare = async (): Promise<unknown> => await (await fetch(url, { headers: { 'X-Session-API-Key': key } })).json();
  const times = { own: [] as number[], bare: [] as number[] };
  for (let round = -rounds / 10; round < rounds; round += 1) {
    for (const [name, send] of [['own', own], ['bare', bare]] as const) {
      const start = performance.now();
      await send();
      // The first requests are a warm-up.
      if (round >= 0) times[name].push(performance.now() - start);
    }
  }
  const added = median(times.own) - median(times.bare);
  yield {
    name: 'client: what it adds to a bare fetch, at p50', measured: inMs(added), ratio: null, bound: `<= ${boundMs} ms`, ok: added <= boundMs,
    reference: `${inMs(median(times.own))} with the client, ${inMs(median(times.bare))} without, in turn`, note: `${rounds} requests each`,
  };
}
