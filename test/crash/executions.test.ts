import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, expect, test } from 'vitest';
import { createClient, object } from '../support/client.ts';
import { printedSeed, seeded } from '../support/seeded.ts';
import { startSandbox, startServer, type Server } from '../support/server.ts';
import { until } from '../support/until.ts';

const kills = 50;
const longestLifeMs = 300;
const writers = 3;
const key = 'a-static-key-for-executions';
const env = { SKEP_API_KEY: key, SKEP_LOG_LEVEL: 'error' };
/** Writes numbered lines until the file `over` exists, and then the number of lines. */
const counting =
  'n=0; while [ ! -e over ]; do printf "%07d\\n" $n; n=$((n+1)); [ $((n % 40)) -ne 0 ] || sleep 0.01; done; echo $n > "lines-$NUMBER"; exit 9';
const lineBytes = 8;

let server: Server | undefined;
afterAll(async () => {
  if (server === undefined) return;
  await server.close();
});

/** Reads an output across restarts of the server. Continues at the byte at which the connection broke. */
async function readThrough(path: string, ended: () => boolean): Promise<string> {
  let got = '';
  for (;;) {
    try {
      const response = await fetch(`${server!.url}${path}/output?follow=true&after=${got.length}`, { headers: { 'X-Session-API-Key': key } });
      expect(response.status).toBe(200);
      const decoder = new TextDecoder('latin1');
      for await (const chunk of response.body!) got += decoder.decode(chunk);
      if (ended()) return got;
    } catch (error) {
      if (!(error instanceof TypeError)) throw error;
      // Waits until the next server has started.
      await pause(5);
    }
  }
}

test(`kill -9 ${kills} times while commands write: every byte of output is read once`, { timeout: 900_000 }, async () => {
  const random = seeded(printedSeed('the moments of the kills'));
  server = await startServer({ env });
  const { dataDir } = server;
  const call = (method: string, path: string, body?: unknown) => createClient(server!.url, key)(method, path, body);
  const sandbox = `/api/v1/sandboxes/${(await startSandbox(call)).id}`;
  const run = async (shell: string, number: number): Promise<string> =>
    `${sandbox}/executions/${String(object(await call('POST', `${sandbox}/executions`, { shell, env: { NUMBER: String(number) } }))['id'])}`;
  const paths = await Promise.all(Array.from({ length: writers }, (_, number) => run(counting, number)));
  let isOver = false;
  const reading = Promise.all(paths.map((path) => readThrough(path, () => isOver)));
  // Prevents an unhandled rejection. The result is awaited at the end.
  reading.catch(() => {});
  for (let kill = 0; kill < kills; kill += 1) {
    await pause(random() * longestLifeMs);
    await server.kill();
    server = await startServer({ env, dataDir });
  }
  isOver = true;
  await run('touch over', writers);
  for (const [number, got] of (await reading).entries()) {
    const lines = got.length / lineBytes;
    expect(Number.isInteger(lines)).toBe(true);
    expect(got === Array.from({ length: lines }, (_, line) => `${String(line).padStart(lineBytes - 1, '0')}\n`).join('')).toBe(true);
    const ended = await until(async () => object(await call('GET', paths[number]!)), ({ status }) => status !== 'running');
    expect(ended).toMatchObject({ status: 'exited', exit_code: 9, durable: true, stdout_bytes: got.length });
    const told = await run(`cat lines-${number}`, writers);
    expect(Number(await (await fetch(`${server.url}${told}/output?follow=true`, { headers: { 'X-Session-API-Key': key } })).text())).toBe(lines);
  }
});
