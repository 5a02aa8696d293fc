import { acpScript } from '../../test/doubles/acp-agent/steps.ts';
import { boundedFigure, type Figure, inMs, percentile } from '../figure.ts';
import { startBenchServer, type BenchServer } from './client.ts';

const crowd = 200;
const chunks = 50;
const atOnce = 8;
const lagBoundMs = 1000;

/** Measures many conversations that stream to as many readers at once. */
export async function* benchCrowd(): AsyncGenerator<Figure> {
  await using server = await startBenchServer();
  const before = await server.memory();
  const ids = await manyConversations(server);
  const idle = await server.memory();
  const lags: number[] = [];
  const startedAt = Date.now();
  let events = 0;
  const readers = ids.map(async (id) => {
    for await (const { kind, data } of server.events(id, '0')) {
      const at = atOf(data);
      // Events before the first message do not count.
      if (at < startedAt) continue;
      events += 1;
      lags.push(Date.now() - at);
      if (kind === 'turn_ended') return;
    }
  });
  const begun = performance.now();
  const script = acpScript(...Array.from({ length: chunks }, (_, n) => ({ say: `part ${n} of the answer ` })));
  await Promise.all(ids.map((id) => server.send(id, script)));
  await Promise.all(readers);
  const seconds = (performance.now() - begun) / 1000;
  const busy = await server.memory();
  const worst = Math.max(...lags);
  const texts = {
    name: `${crowd} conversations to ${crowd} readers, the furthest behind`,
    measured: `${inMs(worst)}, p50 ${inMs(percentile(lags, 50))}, p99 ${inMs(percentile(lags, 99))}`,
    reference: inMs(lagBoundMs),
    note: 'from the time of an event to its arrival; agents and readers on the same machine',
  };
  yield boundedFigure(texts, worst / lagBoundMs, { atMost: 1 });
  yield reported(`${crowd} conversations to ${crowd} readers, events`, `${Math.round(events / seconds)} a second`, `${events} events in ${seconds.toFixed(1)} s`);
  yield reported('memory of the server for each conversation', `${mib((idle - before) / crowd)} idle, ${mib((busy - before) / crowd)} streaming`, `${mib(before)} before the first`);
}

async function manyConversations(server: BenchServer): Promise<string[]> {
  const ids: string[] = [];
  let left = crowd;
  const worker = async (): Promise<void> => {
    while (left > 0) {
      left -= 1;
      ids.push(await server.conversation());
    }
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
  return ids;
}

function atOf(data: string): number {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- every event has its time
  return Date.parse((JSON.parse(data) as { readonly at: string }).at);
}

function mib(bytes: number): string {
  return `${(bytes / 2 ** 20).toFixed(2)} MiB`;
}

function reported(name: string, measured: string, note: string): Figure {
  return { name, measured, reference: '', ratio: null, bound: null, ok: true, note };
}
