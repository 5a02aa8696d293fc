import { once } from 'node:events';
import { Agent, get } from 'node:http';
import { connect, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { boundedFigure, type Figure, inMs, median, percentile, timed } from '../figure.ts';
import { connections, headersOf, requestsPerSecond } from '../request-rate.ts';
import { type Listening, type ServerProcess, startServerProcess } from '../server-process.ts';

const rounds = 7;
const singleRequests = 500;
const webSockets = 1_000;

/** Measures requests and WebSockets through Skep's proxy against its proxy library alone, with the same sandbox. */
export async function* benchProxy(): AsyncGenerator<Figure> {
  await using servers = new AsyncDisposableStack();
  const skepProcess = servers.use(await startServerProcess('ports/proxy-server.ts', 'begin'));
  const skep = skepProcess.listening;
  if (!('upstream' in skep)) throw new Error('the server sent no address of its sandbox');
  const { listening: library } = servers.use(await startServerProcess('ports/proxy-server.ts', String(skep.upstream)));
  for (const server of [skep, library]) await requestsPerSecond(server);

  const rates: [number, number][] = [];
  for (let round = 0; round < rounds; round += 1) rates.push([await requestsPerSecond(skep), await requestsPerSecond(library)]);
  const [ours, theirs] = [median(rates.map(([one]) => one)), median(rates.map(([, other]) => other))];
  yield boundedFigure(
    {
      name: 'proxy: requests a second', measured: `${Math.round(ours)} requests/s`, reference: `${Math.round(theirs)} requests/s, the library alone`,
      note: `${connections} connections, key check included, the middle one of ${rounds} rounds`,
    },
    median(rates.map(([one, other]) => one / other)), { atLeast: 0.6 },
  );

  const times = { skep: [] as number[], library: [] as number[] };
  const agent = new Agent({ keepAlive: true });
  for (let turn = 0; turn < singleRequests; turn += 1) {
    times.skep.push(await timed(() => request(skep, agent)));
    times.library.push(await timed(() => request(library, agent)));
  }
  agent.destroy();
  const added = percentile(times.skep, 50) - percentile(times.library, 50);
  yield {
    name: 'proxy: added to one request at p50', measured: inMs(added), reference: `${inMs(percentile(times.library, 50))}: the library alone`,
    ratio: null, bound: '<= 1 ms', ok: added <= 1, note: `${singleRequests} requests, in turn`,
  };

  yield await memoryOfWebSockets();
}

/** Runs in a new process. Otherwise WebSockets would reuse memory of earlier requests, and would seem to need less. */
async function memoryOfWebSockets(): Promise<Figure> {
  await using server = await startServerProcess('ports/proxy-server.ts', 'begin');
  await using sockets = new DisposableSockets();
  // The first ones allocate what the process needs only once.
  await sockets.open(server.listening, webSockets);
  const before = await memoryOf(server);
  await sockets.open(server.listening, webSockets);
  const perSocket = ((await memoryOf(server)) - before) / webSockets / 1024;
  return {
    name: 'proxy: memory of an idle WebSocket', measured: `${perSocket.toFixed(1)} KiB`, reference: '', ratio: null, bound: '<= 30 KiB',
    ok: perSocket <= 30, note: `${webSockets} beside ${webSockets}, both ends in the process of the proxy`,
  };
}

async function request(server: Listening, agent: Agent): Promise<void> {
  const sent = get(server.url, { agent, headers: headersOf(server) });
  const [response] = await once(sent, 'response');
  await text(response);
}

async function memoryOf({ child }: ServerProcess): Promise<number> {
  child.send('memory');
  const [{ rss }] = (await once(child, 'message')) as [{ rss: number }];
  return rss;
}

/** Opens WebSockets. Disposing of the result closes them. */
class DisposableSockets {
  readonly #sockets: Socket[] = [];

  async open({ url, key }: Listening, count: number): Promise<void> {
    const { hostname, port, pathname, host } = new URL(url);
    for (let at = 0; at < count; at += 1) {
      const socket = connect(Number(port), hostname);
      this.#sockets.push(socket);
      socket.write(`GET ${pathname} HTTP/1.1\r\nHost: ${host}\r\nX-Session-API-Key: ${key}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`);
      const [head] = (await once(socket, 'data')) as [Buffer];
      if (!head.toString().startsWith('HTTP/1.1 101')) throw new Error(`no WebSocket: ${head.toString()}`);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
  }
}
