import assert from 'node:assert/strict';
import { readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, test, vi } from 'vitest';
import { isFailureOf } from '../../../../src/domain/failure.ts';
import { neverAborts } from '../../../../src/ports/abort-signals.ts';
import type { SandboxLaunch, SandboxRuntime } from '../../../../src/ports/sandbox-runtime.ts';
import { eventually } from '../../../contracts/sandbox-runtime-harness.ts';
import { finish } from '../../../contracts/sandbox-runtime-streams.ts';
import { createHost, heldState, isAlive, stateOf, type Host } from './host.ts';
import { launchOf, programs } from './programs.ts';
import { shell } from '../../../support/sandbox-programs.ts';
import { startAndLeave } from './start-and-leave.ts';

let host: Host;
let runtime: SandboxRuntime;

beforeEach(async () => {
  host = await createHost();
  runtime = host.open();
});

afterEach(() => host.close());

async function start(script: string): Promise<SandboxLaunch> {
  const launch = launchOf(shell(script));
  assert.notEqual((await runtime.start(launch, () => {}, neverAborts)).state, 'absent');
  return launch;
}

async function pidIn(id: string, file: string): Promise<number> {
  await eventually(`${file} is written`, async () => (await host.readFile(id, file))?.endsWith('\n') === true);
  return Number(await host.readFile(id, file));
}

const daemon = (pidFile: string): string => `sh -c 'echo $$ > ${pidFile}; while :; do sleep 0.01; done'`;

/** Ways to leave the leader's group and session. */
const escapes = {
  'a child in a session of its own': `setsid ${daemon('stray')} & exec sleep 1000`,
  'a daemon whose parent is gone': `(setsid ${daemon('stray')} &) ; exec sleep 1000`,
  'a child without an environment': `env -i "$(command -v setsid)" ${daemon('stray')} & exec sleep 1000`,
};

describe('A process that SIGSTOP does not stop', () => {
  afterEach(() => void vi.restoreAllMocks());

  test('makes the freeze fail, and all other processes continue', async () => {
    const launch = await start('sleep 1000 & echo $! > child; wait');
    await pidIn(launch.id, 'child');
    const leader = await host.leader(launch.id);
    const kill = process.kill.bind(process);
    vi.spyOn(process, 'kill').mockImplementation((pid, signal) => kill(signal === 'SIGSTOP' ? leader : pid, signal));
    const refused = await runtime.freeze(launch.id).catch((error: unknown) => error);
    assert.ok(isFailureOf(refused, 'runtime_unavailable') && refused.context.reason.code === 'freeze_refused');
    await eventually('the leader continues', async () => (await stateOf(leader)) === 'S');
    vi.restoreAllMocks();
    assert.equal((await finish(await runtime.execute(launch.id, { command: ['true'] }, neverAborts))).code, 0);
    assert.equal((await runtime.freeze(launch.id)).state, 'frozen');
  });
});

describe.each(Object.entries(escapes))('%s', (_, script) => {
  test('is frozen, resumed and stopped with its sandbox', async () => {
    const launch = await start(script);
    const stray = await pidIn(launch.id, 'stray');
    await runtime.freeze(launch.id);
    assert.match((await stateOf(stray)) ?? '', heldState);
    await runtime.resume(launch, neverAborts);
    await eventually('the process continues', async () => (await stateOf(stray)) === 'S');
    await runtime.stop(launch.id);
    assert.equal(await isAlive(stray), false);
  });

  test('is killed when a later runtime removes its sandbox', async () => {
    const launch = await start(script);
    const stray = await pidIn(launch.id, 'stray');
    await runtime.freeze(launch.id);
    await runtime.close();
    await host.open().remove(launch.id);
    assert.equal(await isAlive(stray), false);
    assert.deepEqual(await host.leftovers(launch.id), []);
  });
});

describe('A sandbox that forks all the time', () => {
  // Each generation forks the next one and ends; a bounded number of them at a time.
  const restless = `
    echo '[ -e stop ] && exit; sleep 0.001; sh chain.sh & exit' > chain.sh
    for n in 1 2 3 4; do sh chain.sh & done
    for n in 1 2 3 4; do (while [ ! -e stop ]; do sleep 0.001 & wait; done) & done
    : > begun
    while :; do : | cat | cat; done`;

  test('is frozen and removed with all its processes', async () => {
    const launch = await start(restless);
    await eventually('the program forks', async () => (await host.readFile(launch.id, 'begun')) !== null);
    for (let times = 0; times < 15; times += 1) {
      assert.equal((await runtime.freeze(launch.id)).state, 'frozen');
      const held = await host.processes(launch.id);
      assert.ok(held.length > 1);
      const states = await Promise.all(held.map(stateOf));
      for (const state of states) assert.match(state ?? '', heldState);
      assert.deepEqual(await host.processes(launch.id), held);
      assert.equal((await runtime.resume(launch, neverAborts)).state, 'running');
    }
    await runtime.remove(launch.id);
    assert.deepEqual(await host.leftovers(launch.id), []);
  });

  test('is stopped with all its processes, running or frozen', async () => {
    for (const first of ['freeze', 'inspect'] as const) {
      const launch = await start(restless);
      await eventually('the program forks', async () => (await host.readFile(launch.id, 'begun')) !== null);
      await runtime[first](launch.id);
      assert.equal((await runtime.stop(launch.id)).state, 'stopped');
      assert.deepEqual(await host.processes(launch.id), []);
    }
  });
});

describe("A process that outlives its sandbox's command", () => {
  const leaving = `echo run >> runs; setsid ${daemon('left')} & while [ ! -e left -o ! -e go ]; do sleep 0.01; done; exit 5`;

  /** Lets the command of a sandbox end, whose leader is nobody's child. */
  async function leaveBehind(): Promise<SandboxLaunch> {
    const launch = launchOf(shell(leaving));
    await startAndLeave(host, launch);
    await writeFile(join(host.root, launch.id, 'workspace', 'go'), '');
    await eventually('the command ends', async () => !(await isAlive(await host.leader(launch.id))));
    return launch;
  }

  test('ends with the command if it is in the same process group', async () => {
    const launch = await start('sleep 1000 & echo $! > left; exit 5');
    await eventually('the sandbox is stopped', async () => (await runtime.inspect(launch.id)).state === 'stopped');
    assert.deepEqual((await runtime.inspect(launch.id)).reason, { code: 'process_exited', exitCode: 5, signal: null, program: null });
    // The kernel ends a killed group one process after the other.
    const left = await pidIn(launch.id, 'left');
    await eventually('the process that the command left ends', async () => !(await isAlive(left)));
  });

  test('belongs to the sandbox if it is in the same process group, even without an environment', async () => {
    const launch = await start('env -i "$(command -v sleep)" 1000 & echo $! > left; wait');
    const left = await pidIn(launch.id, 'left');
    await eventually('the process has no environment', async () => (await readFile(`/proc/${left}/environ`, 'latin1')) === '');
    // The mark is in the environment of all others.
    await host.killAll(launch.id);
    assert.equal((await runtime.inspect(launch.id)).state, 'running');
    assert.equal((await runtime.stop(launch.id)).state, 'stopped');
    assert.equal(await isAlive(left), false);
  });

  test("in another session ends as soon as the command's parent sees the exit", async () => {
    const launch = await start(leaving);
    await writeFile(join(host.root, launch.id, 'workspace', 'go'), '');
    const left = await pidIn(launch.id, 'left');
    await eventually('the sandbox is stopped', async () => (await runtime.inspect(launch.id)).state === 'stopped');
    assert.equal(await isAlive(left), false);
    assert.deepEqual((await runtime.inspect(launch.id)).reason, { code: 'process_exited', exitCode: 5, signal: null, program: null });
  });

  test('in another session keeps the sandbox running without that parent, and ends on resume', async () => {
    const launch = await leaveBehind();
    const left = await pidIn(launch.id, 'left');
    const fact = await runtime.inspect(launch.id);
    assert.equal(fact.state, 'running');
    assert.deepEqual(fact.reason, { code: 'main_process_ended', cause: { code: 'process_exited', exitCode: 5, signal: null, program: null } });
    await runtime.resume(launch, neverAborts);
    assert.equal(await isAlive(left), false);
    await eventually('the program runs again', async () => (await host.readFile(launch.id, 'runs')) === 'run\nrun\n');
  });

  test('in another session ends if a runtime has a listener', async () => {
    const launch = await leaveBehind();
    const woken = new Set<string>();
    runtime.subscribe((id) => woken.add(id));
    await eventually('the listener is notified of the stopped sandbox', async () => woken.has(launch.id) && (await runtime.inspect(launch.id)).state === 'stopped');
    assert.deepEqual(await host.processes(launch.id), []);
  });
});

describe('An interrupted operation', () => {
  test('freeze: the sandbox counts as running, and the next freeze completes it', async () => {
    const launch = await start(`setsid ${daemon('stray')} & exec sleep 1000`);
    const stray = await pidIn(launch.id, 'stray');
    const leader = await host.leader(launch.id);
    await writeFile(join(host.root, launch.id, 'launches', '1.freezing'), '');
    process.kill(-leader, 'SIGSTOP');
    await eventually('the process group is stopped', async () => (await stateOf(leader)) === 'T');

    const reopened = host.open();
    assert.equal((await reopened.inspect(launch.id)).state, 'running');
    assert.equal((await reopened.freeze(launch.id)).state, 'frozen');
    assert.match((await stateOf(stray)) ?? '', heldState);
    await writeFile(join(host.root, launch.id, 'launches', '1.freezing'), '');
    assert.equal((await reopened.resume(launch, neverAborts)).state, 'running');
    assert.notEqual(await stateOf(leader), 'T');
    await eventually('the process continues', async () => (await stateOf(stray)) === 'S');
  });

  test('remove: the next runtime completes it', async () => {
    const launch = launchOf(programs.counts);
    await runtime.start(launch, () => {}, neverAborts);
    await runtime.close();
    await rename(join(host.root, launch.id), join(host.root, '.trash', `${launch.id}.half`));
    const reopened = host.open();
    assert.deepEqual(await reopened.list(), []);
    assert.deepEqual(await host.processes(launch.id), []);
    await reopened.close();
    assert.deepEqual(await host.leftovers(launch.id), []);
  });
});
