import { acpAgentCommand } from '../../test/doubles/acp-agent/start.ts';
import { acpScript } from '../../test/doubles/acp-agent/steps.ts';
import { createClient, items, type Json, object } from '../../test/support/client.ts';
import { messageOf } from '../../test/support/conversation.ts';
import { killSandboxes } from '../../test/support/processes.ts';
import { removeFolder, startServer } from '../../test/support/server.ts';
import { type Figure, inMs, percentile, spread } from '../figure.ts';

const rounds = 10;
const mostMs = 2000;
const key = 'a-static-key-for-the-benchmark';
const config = { specs: [{ id: 'agent', command: ['sleep', '100000'], agent: { protocol: 'acp', command: acpAgentCommand(), permissions: 'allow' } }] };
const env = { SKEP_API_KEY: key, SKEP_LOG_LEVEL: 'error' };
/** A turn of about a minute with steady output. */
const steps = Array.from({ length: 2000 }, () => [{ run: 'sleep 0.02' }, { say: 'x' }]).flat();

/** Measures how long a restarted server, killed in a turn, needs from being ready to the next event of that turn. */
export async function* benchResume(): AsyncGenerator<Figure> {
  let server = await startServer({ env, config });
  const { dataDir } = server;
  const call = (method: string, path: string, body?: unknown) => createClient(server.url, key)(method, path, body);
  try {
    const path = `/api/v1/app-conversations/${String(object(await call('POST', '/api/v1/app-conversations', {}))['id'])}`;
    await call('POST', `${path}/messages`, messageOf(acpScript(...steps)));
    let last = 0;
    const nextEvent = async (): Promise<void> => {
      for (let page: Json[] = []; page.length === 0; last = Number(page.at(-1)?.['id'] ?? last)) {
        page = items(await call('GET', `${path}/events?after=${last}&limit=100`)).filter(({ kind }) => kind === 'message_chunk');
      }
    };
    const times: number[] = [];
    for (let round = 0; round < rounds; round += 1) {
      for (let event = 0; event < 10; event += 1) await nextEvent();
      await server.kill();
      // Nobody has read the events from before the kill yet.
      server = await startServer({ env, config, dataDir });
      const began = performance.now();
      const known = items(await call('GET', `${path}/events?after=${last}`));
      last = Number(known.at(-1)?.['id'] ?? last);
      await nextEvent();
      times.push(performance.now() - began);
    }
    const worst = percentile(times, 100);
    yield {
      name: 'a turn goes on after kill -9, from the ready server to the next event', measured: `${inMs(worst)} at most: ${spread(times)}`,
      reference: 'the limit', ratio: null, bound: `<= ${mostMs} ms`, ok: worst <= mostMs, note: `${rounds} kills`,
    };
  } finally {
    await server.kill();
    killSandboxes(dataDir);
    await removeFolder(dataDir);
  }
}
