import { afterAll, expect, test } from 'vitest';
import { removeFolder, startServer, temporaryFolder } from '../support/server.ts';
import { createClient } from '../support/client.ts';
import { until } from '../support/until.ts';
import { all, load, type Knowledge } from './load.ts';
import { printedSeed, seeded } from '../support/seeded.ts';
import { killSandboxes, sandboxesWithProcesses } from '../support/processes.ts';

const key = 'a-static-key-for-the-crash-test';
const config = {
  specs: [{ id: 'plain', command: ['sh', '-c', 'while :; do sleep 1000; done'], ready: { within: '2m' } }],
  limits: { running: 25, requests_per_minute: 'unlimited' },
};
const cycles = 12;
const resting = new Set(['RUNNING', 'PAUSED']);

const folders: string[] = [];
afterAll(async () => {
  for (const folder of folders) {
    killSandboxes(folder);
    await removeFolder(folder);
  }
});

test('repeated kill -9 under load: acknowledged changes are kept, and no process is left over', { timeout: 900_000 }, async () => {
  const dataDir = await temporaryFolder();
  folders.push(dataDir);
  const seed = printedSeed('the moments of the kills');
  const random = seeded(seed);
  const knowledge: Knowledge = { sandboxes: new Map(), conversations: new Map() };

  // On a slow machine, a cycle may create few sandboxes. Then more cycles follow, up to a limit.
  for (let cycle = 0; cycle < cycles || (knowledge.sandboxes.size <= cycles && cycle < 3 * cycles); cycle += 1) {
    const server = await startServer({ dataDir, config, env: { SKEP_API_KEY: key, SKEP_LOG_LEVEL: 'warn' } });
    const loading = load(server.url, key, knowledge, 6, random);
    const moment = 30 + Math.floor(random() * 700);
    const timer = setTimeout(() => server.process.kill('SIGKILL'), moment);
    try {
      await loading;
    } finally {
      clearTimeout(timer);
      await server.kill();
    }
  }

  const server = await startServer({ dataDir, config, env: { SKEP_API_KEY: key, SKEP_LOG_LEVEL: 'warn' } });
  const call = createClient(server.url, key);
  const about = `SKEP_TEST_SEED=${seed}`;
  try {
    const sandboxes = await until(() => all(server.url, key, '/api/v1/sandboxes/search'), (found) => found.every(({ status }) => resting.has(String(status))), 150_000);
    const ids = new Set(sandboxes.map(({ id }) => String(id)));
    for (const [id, { deleting, deleted }] of knowledge.sandboxes) {
      if (deleted) expect(ids.has(id), `${id} was deleted; ${about}`).toBe(false);
      else if (!deleting) expect(ids.has(id), `${id} was acknowledged; ${about}`).toBe(true);
    }

    const conversations = await until(
      () => all(server.url, key, '/api/v1/app-conversations'),
      (found) => found.every(({ start_status: status }) => status === 'READY' || status === 'ERROR'),
    );
    const conversationIds = new Set(conversations.map(({ id }) => String(id)));
    for (const [id, { deleting, deleted }] of knowledge.conversations) {
      if (deleted) expect(conversationIds.has(id), `${id} was deleted; ${about}`).toBe(false);
      else if (!deleting) expect(conversationIds.has(id), `${id} was acknowledged; ${about}`).toBe(true);
    }

    const owned = new Set(sandboxes.filter(({ status, pause_kind: kind }) => status === 'RUNNING' || kind === 'freeze').map(({ id }) => String(id)));
    const running = await until(
      () => [...sandboxesWithProcesses(dataDir).keys()].toSorted(),
      (found) => found.length === owned.size,
    );
    expect(running, about).toEqual([...owned].toSorted());
    expect(knowledge.sandboxes.size, 'the load has made sandboxes').toBeGreaterThan(cycles);

    for (const id of conversationIds) expect((await call('DELETE', `/api/v1/app-conversations/${id}`)).status).toBe(204);
    for (const id of ids) expect((await call('DELETE', `/api/v1/sandboxes/${id}`)).status).toBe(204);
    await until(() => [...sandboxesWithProcesses(dataDir).keys()], (found) => found.length === 0);
  } finally {
    expect(await server.stop()).toBe(0);
  }
});
