import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { specSchema } from '../../src/composition/config/config-schema.ts';
import { unlimited } from '../../src/domain/admission-limits.ts';
import { poolFingerprint } from '../../src/domain/pool-plan.ts';
import { createOwnEngine, describeWithOwnEngine, type OwnEngine } from '../adapters/sandbox-runtime/docker/own-engine.ts';
import { checkEnd, checkRecords } from '../application/model-invariants.ts';
import { createClient } from '../support/client.ts';
import { images } from '../support/docker.ts';
import { removeFolder, runSkep, startServer, temporaryFolder, type Server } from '../support/server.ts';
import { until } from '../support/until.ts';
import { callAtRandom, type Life } from './docker/clients.ts';
import { readFacts, readRecords } from './docker/end.ts';
import { judgeListing } from './docker/judge.ts';
import { newLedger } from './docker/ledger.ts';
import { planKills, type Kill } from './docker/plan.ts';
import { printedSeed, seeded } from '../support/seeded.ts';

const numbers = { server: 42, engine: 4, both: 4 };
const callersOfEach = 2;
const pool = { size: 2 };
const tiny = { image: images.tiny, command: ['sleep', '100000'], ready: { within: '90s' } };
const warm = { ...tiny, id: 'warm', pool };
const config = {
  specs: [{ ...tiny, id: 'plain' }, warm],
  limits: { running_per_owner: 4, running: 6, existing_per_owner: 7, existing: 12, requests_per_minute: 'unlimited' },
};
const limits = { ...unlimited, runningPerOwner: 4, running: 6, existingPerOwner: 7, existing: 12 };
const ofOwner = { running: limits.runningPerOwner, existing: limits.existingPerOwner };
const owners = ['ann', 'bob'];
const longestWaitMs = 5_000;
const settleMs = 120_000;

describeWithOwnEngine('Kills of a server and its engine under load', () => {
  let engine: OwnEngine | undefined;
  let server: Server | undefined;
  let life: Life = { url: '', over: true, engineAway: false, answers: 0 };
  let dataDir: string;
  let env: Readonly<Record<string, string>>;
  const keys = new Map<string, string>();

  beforeAll(async () => {
    dataDir = await temporaryFolder();
    engine = await createOwnEngine();
    const file = join(dataDir, 'config.json');
    await writeFile(file, JSON.stringify(config));
    env = { SKEP_CONFIG: file, SKEP_SANDBOX_RUNTIME: 'docker', SKEP_DOCKER_HOST: engine.host, SKEP_LOG_LEVEL: 'warn' };
    for (const owner of owners) keys.set(owner, (await runSkep(['keys', 'create', owner, '--user', owner], { SKEP_DATA_DIR: dataDir })).stdout.trim());
  });
  afterAll(async () => {
    life.over = true;
    try {
      await server?.kill();
      // The end of the engine also ends the calls that a killed server has left.
      await engine?.stop('SIGTERM');
      await engine?.close();
    } finally {
      await removeFolder(dataDir);
    }
  });

  const name = `kill -9 of the server (${numbers.server}), the engine (${numbers.engine}) or both (${numbers.both}) breaks no acknowledged change and no limit`;
  test(name, { timeout: 900_000 }, async () => {
    const own = engine!;
    const seed = printedSeed('the moments of the kills');
    const about = `SKEP_TEST_SEED=${seed}`;
    console.info(`${about} makes the same choices again`);
    const random = seeded(seed);
    const kills = planKills(numbers, random);
    const ledger = newLedger();
    let calling: Promise<unknown> = Promise.resolve();
    let engineAway = false;
    let lives = 0;

    const expectNothingWrong = (): void => expect(ledger.wrong, `${about}\n${server?.output().stderr.slice(-6000)}`).toEqual([]);

    async function begin(): Promise<void> {
      server = await startServer({ dataDir, env });
      const begun: Life = { url: server.url, over: false, engineAway, answers: 0 };
      life = begun;
      lives += 1;
      const callers = owners.flatMap((owner) => Array.from({ length: callersOfEach }, () => ({ owner, key: keys.get(owner) ?? '', random: seeded(Math.floor(random() * 2 ** 32)) })));
      calling = Promise.all(callers.map((caller) => callAtRandom(caller, begun, ledger, ofOwner, config.specs.map(({ id }) => id))));
    }

    /** Waits for this many more responses, or until a time limit. */
    async function answered(count: number): Promise<void> {
      const [enough, latest] = [life.answers + count, performance.now() + longestWaitMs];
      await until(() => life.answers >= enough || ledger.wrong.length > 0 || performance.now() > latest, Boolean);
    }

    async function killServer(): Promise<void> {
      life.over = true;
      await server?.kill();
      await calling;
      for (const known of ledger.sandboxes.values()) known.serverDied();
    }

    async function killEngine(): Promise<void> {
      ledger.engineDeaths += 1;
      engineAway = true;
      life.engineAway = true;
      await own.stop('SIGKILL');
    }

    async function startEngine(): Promise<void> {
      await own.start();
      engineAway = false;
    }

    async function strike({ target, answersWhileAway, serverFirst }: Kill): Promise<void> {
      if (target === 'engine') {
        await killEngine();
        await answered(answersWhileAway);
        return await startEngine();
      }
      if (target === 'both') await Promise.all([killServer(), killEngine()]);
      else await killServer();
      // The records are read only sometimes, so that most servers start exactly from what the kill left.
      if (random() < 0.4) checkRecords(await readRecords(dataDir), limits, pool.size);
      if (target === 'server') return await begin();
      if (!serverFirst) await startEngine();
      await begin();
      if (serverFirst) await startEngine();
    }

    await begin();
    for (const kill of kills) {
      await answered(kill.answers);
      await pause(kill.laterMs);
      await strike(kill);
      expectNothingWrong();
    }
    // Checks that the load has created, changed and deleted sandboxes.
    const outcomes = ['RUNNING', 'PAUSED', 'DELETE 204', 'looked at again'];
    const missing = (): readonly string[] => [...outcomes.filter((outcome) => !ledger.told.has(outcome)), ...(ledger.sandboxes.size > 20 ? [] : ['sandboxes'])];
    // The callers stop at the first mistake.
    await until(missing, ({ length }) => length === 0 || ledger.wrong.length > 0, settleMs);
    life.over = true;
    await calling;
    expectNothingWrong();

    const fingerprint = poolFingerprint(specSchema.parse(warm));
    const check = async (): Promise<string | null> => {
      try {
        const [facts, records] = [await readFacts(own.docker), await readRecords(dataDir)];
        checkRecords(records, limits, pool.size);
        checkEnd({ records, facts, now: Date.now(), pool: { fingerprint, size: pool.size } });
        return null;
      } catch (error) {
        return `${about}: ${(error as Error).message}\n${server?.output().stderr.slice(-6000)}`;
      }
    };
    await until(check, (problem) => problem === null, settleMs);

    for (const owner of owners) {
      const call = createClient(life.url, keys.get(owner) ?? '');
      await judgeListing(ledger, owner, ofOwner, () => call('GET', '/api/v1/sandboxes/search?limit=100'));
      for (const [id, { deletion }] of [...ledger.sandboxes].filter(([, known]) => known.owner === owner)) {
        const { status } = await call('GET', `/api/v1/sandboxes/${id}`);
        if (deletion !== 'asked') expect(status, `${id}; ${about}`).toBe(deletion === 'none' ? 200 : 404);
      }
    }
    expectNothingWrong();
    expect(await server?.stop()).toBe(0);
    expect(await check()).toBeNull();

    console.info(`${lives} lives, ${ledger.sandboxes.size} sandboxes; answers: ${JSON.stringify(Object.fromEntries(ledger.told))}`);
  });
});
