import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, test } from 'vitest';
import { neverAborts } from '../../../../src/ports/abort-signals.ts';
import { eventually } from '../../../contracts/sandbox-runtime-harness.ts';
import { printedSeed, seeded } from '../../../support/seeded.ts';
import { createHost, isAlive, type Host } from './host.ts';
import { launchOf, programs } from './programs.ts';

const rounds = 10;
const longestLifeMs = 400;

const random = seeded(printedSeed('the moments of the kills'));

let host: Host;

beforeEach(async () => {
  host = await createHost();
});

afterEach(() => host.close());

/** What a Skep said before it was killed: ids by the last word about them. */
async function killOneAtRandom(round: number): Promise<ReadonlyMap<string, string>> {
  const script = fileURLToPath(new URL('killed-skep.ts', import.meta.url));
  const skep = spawn(process.execPath, [script, host.root, String(round)], { stdio: ['ignore', 'pipe', 'inherit'] });
  let output = '';
  skep.stdout.setEncoding('utf8').on('data', (text: string) => (output += text));
  await once(skep.stdout, 'data');
  const timer = setTimeout(() => skep.kill('SIGKILL'), random() * longestLifeMs);
  await once(skep, 'close');
  clearTimeout(timer);
  assert.equal(skep.signalCode, 'SIGKILL');
  return new Map(output.split('\n').flatMap((line) => {
    const [word, id] = line.split(' ');
    return word !== undefined && id !== undefined ? [[id, word] as const] : [];
  }));
}

/** Does the killed Skep ask this sandbox to stop in the end? */
function stops(id: string): boolean {
  return Number(id.split('-').at(-1)) % 4 >= 2;
}

async function sandboxOf(pid: number): Promise<string | null> {
  const environ = await readFile(`/proc/${pid}/environ`, 'latin1').catch(() => '');
  return /\0SKEP_SANDBOX_ID=([^\0]*)/.exec(`\0${environ}`)?.[1] ?? null;
}

test('kill -9 of Skep at random moments loses no sandbox, and starts no process twice', async () => {
  for (let round = 0; round < rounds; round += 1) {
    const last = await killOneAtRandom(round);
    const runtime = host.open();

    // Launchers that were under way decide by themselves.
    await eventually('every process belongs to a known sandbox', async () => {
      const known = new Map((await runtime.list()).map(({ id, state }) => [id, state]));
      for (const pid of await host.processes()) {
        const id = await sandboxOf(pid);
        const isKnown = id === null || known.get(id) === 'running' || known.get(id) === 'frozen';
        if (!isKnown && (await isAlive(pid))) return false;
      }
      return true;
    });
    const found = new Map((await runtime.list()).map(({ id, state }) => [id, state]));
    for (const [id, word] of last) {
      if (word === 'started') assert.ok(found.has(id), `${id} was started and is lost`);
      if (word === 'removed') assert.equal(found.has(id), false, `${id} was removed and is there`);
    }

    // Whoever repairs makes every call again.
    for (const [id, word] of last) {
      const launch = { ...launchOf(programs.counts), id };
      if (word === 'removed' || word === 'removing') {
        await runtime.remove(id);
        assert.deepEqual(await host.leftovers(id), []);
        continue;
      }
      const before = found.get(id) ?? 'absent';
      const { state } = await runtime.start(launch, () => {}, neverAborts);
      // What was asked to stop may do so meanwhile.
      const isStopping = before === 'running' && state === 'stopped' && stops(id);
      if (!isStopping) assert.equal(state, before === 'absent' || before === 'created' ? 'running' : before);
      const runs = await host.readFile(id, 'runs');
      // The file is there before the line in it is.
      assert.ok(runs === null || 'run\n'.startsWith(runs), `${id} ran too often`);
      if (before === 'frozen') assert.equal((await runtime.resume(launch, neverAborts)).state, 'running');
      await runtime.freeze(id);
      await runtime.remove(id);
      assert.deepEqual(await host.leftovers(id), []);
    }
    assert.deepEqual(await runtime.list(), []);
    assert.deepEqual(await host.processes(), []);
    await runtime.close();
  }
});

test('a start that is repeated after kill -9 of Skep runs the command once', async () => {
  for (let round = 0; round < rounds; round += 1) {
    const last = await killOneAtRandom(round);
    const runtime = host.open();
    const unanswered = [...last].flatMap(([id, word]) => (word === 'starting' ? [id] : []));
    await Promise.all(
      unanswered.map(async (id) => {
        const launch = { ...launchOf(programs.counts), id };
        assert.equal((await runtime.start(launch, () => {}, neverAborts)).state, 'running');
        await eventually('the program counts', async () => (await host.readFile(id, 'count')) !== null);
        assert.equal(await host.readFile(id, 'runs'), 'run\n');
      }),
    );
    for (const id of last.keys()) await runtime.remove(id);
    // A launcher that was under way finds its sandbox removed, and ends by itself.
    await eventually('no process is left', async () => (await host.processes()).length === 0);
    await runtime.close();
  }
});
