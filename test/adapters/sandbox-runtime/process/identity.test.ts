import assert from 'node:assert/strict';
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, test } from 'vitest';
import { neverAborts } from '../../../../src/ports/abort-signals.ts';
import type { SandboxRuntime } from '../../../../src/ports/sandbox-runtime.ts';
import { eventually } from '../../../contracts/sandbox-runtime-harness.ts';
import { createHost, heldState, isAlive, kill, stateOf, type Host } from './host.ts';
import { launchOf, programs } from './programs.ts';
import { shell } from '../../../support/sandbox-programs.ts';

let host: Host;
let runtime: SandboxRuntime;
const strangers: ChildProcess[] = [];

beforeEach(async () => {
  host = await createHost();
  runtime = host.open();
});

afterEach(async () => {
  for (const { pid } of strangers.splice(0)) if (pid !== undefined) kill(-pid);
  await host.close();
});

/** A process that leads a group of its own, as a sandbox's leader does, and is none. */
async function startStranger(command: readonly string[]): Promise<number> {
  const [program = '', ...rest] = command;
  const stranger = spawn(program, rest, { detached: true, stdio: 'ignore' });
  strangers.push(stranger);
  await once(stranger, 'spawn');
  assert.ok(stranger.pid);
  return stranger.pid;
}

async function startOf(pid: number): Promise<string> {
  const stat = await readFile(`/proc/${pid}/stat`, 'latin1');
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? '';
}

const bootId = async (): Promise<string> => (await readFile('/proc/sys/kernel/random/boot_id', 'utf8')).trim();

/** Writes down that the sandbox's leader is this process. */
async function writeClaim(id: string, pid: number, start: string, boot: string): Promise<void> {
  await mkdir(join(host.root, id, 'launches'), { recursive: true });
  await mkdir(join(host.root, id, 'workspace'));
  const plan = JSON.stringify({ mark: 'a-mark-that-nobody-has', ports: [] });
  await writeFile(join(host.root, id, 'launches', '1.claim'), `${pid}\n${start}\n${boot}\n${plan}\n`);
}

async function assertUntouched(id: string, pid: number): Promise<void> {
  const launch = { ...launchOf(programs.exits), id };
  await eventually('the process sleeps', async () => (await stateOf(pid)) === 'S');
  assert.equal((await runtime.inspect(id)).state, 'stopped');
  assert.equal((await runtime.freeze(id)).state, 'stopped');
  assert.equal(await stateOf(pid), 'S');
  assert.equal((await runtime.stop(id)).state, 'stopped');
  assert.equal((await runtime.start(launch, () => {}, neverAborts)).state, 'stopped');
  assert.deepEqual((await runtime.list()).map(({ state }) => state), ['stopped']);
  await runtime.remove(id);
  assert.equal(await stateOf(pid), 'S');
}

describe("A process with the same pid as a sandbox's leader", () => {
  test('is not touched if it started at another time', async () => {
    const pid = await startStranger(['sleep', '1000']);
    await writeClaim('sb-1', pid, String(Number(await startOf(pid)) - 1), await bootId());
    await assertUntouched('sb-1', pid);
  });

  test('is not touched if the leader ran before a reboot', async () => {
    const pid = await startStranger(['sleep', '1000']);
    await writeClaim('sb-1', pid, await startOf(pid), 'another-boot');
    assert.deepEqual((await runtime.inspect('sb-1')).reason, { code: 'host_restarted' });
    await assertUntouched('sb-1', pid);
  });

  test('is not touched if only its process group matches', async () => {
    const pid = await startStranger(shell('sleep 1000 & echo $! > /dev/null; exit 0'));
    await eventually('the leader ends', async () => !(await isAlive(pid)));
    const member = await memberOf(pid);
    await writeClaim('sb-1', pid, String(Number(await startOf(member)) - 100), await bootId());
    await assertUntouched('sb-1', member);
  });

  test.each(['', 'nonsense', '0\n0\n0\n{}', '1\n0\n0\n{"mark":"m","ports":[]}'])(
    'is not guessed from a broken claim file: %j',
    async (text) => {
      await mkdir(join(host.root, 'sb-1', 'launches'), { recursive: true });
      await writeFile(join(host.root, 'sb-1', 'launches', '1.claim'), text);
      assert.equal((await runtime.inspect('sb-1')).state, 'stopped');
      assert.equal((await runtime.stop('sb-1')).state, 'stopped');
      await runtime.remove('sb-1');
      assert.deepEqual(await host.leftovers('sb-1'), []);
    },
  );
});

/** A living member of the group. */
async function memberOf(group: number): Promise<number> {
  const { stdout } = await promisify(execFile)('ps', ['-A', '-o', 'pid=,pgid=,stat=']);
  const lines = stdout.trim().split('\n');
  const fields = lines.map((line) => line.trim().split(/\s+/));
  const member = fields.find(([, pgid, state]) => pgid === String(group) && !state?.startsWith('Z'));
  assert.ok(member?.[0]);
  return Number(member[0]);
}

describe('A process of a sandbox', () => {
  test('still belongs to the sandbox after its leader was killed', async () => {
    const launch = launchOf(programs.counts);
    await runtime.start(launch, () => {}, neverAborts);
    await eventually('the program counts', async () => (await host.readFile(launch.id, 'count')) !== null);
    process.kill(await host.leader(launch.id), 'SIGKILL');
    await eventually('the leader ends', async () => !(await isAlive(await host.leader(launch.id))));

    const fact = await runtime.inspect(launch.id);
    assert.equal(fact.state, 'running');
    assert.deepEqual(fact.reason, { code: 'main_process_ended', cause: null });
    assert.equal((await runtime.freeze(launch.id)).state, 'frozen');
    const held = await host.processes(launch.id);
    assert.ok(held.length > 0);
    for (const pid of held) assert.match((await stateOf(pid)) ?? '', heldState);
    assert.equal((await runtime.resume(launch, neverAborts)).state, 'running');
    assert.equal((await runtime.stop(launch.id)).state, 'stopped');
    assert.deepEqual(await host.processes(launch.id), []);
  });

  test('keeps the sandbox running until it ends, and listeners are notified', async () => {
    const launch = launchOf(programs.counts);
    await runtime.start(launch, () => {}, neverAborts);
    await eventually('the program counts', async () => (await host.readFile(launch.id, 'count')) !== null);
    const woken: string[] = [];
    runtime.subscribe((id) => woken.push(id));
    const leader = await host.leader(launch.id);
    process.kill(leader, 'SIGKILL');
    await eventually('the listener is notified of the end of the leader', async () => woken.length > 0);
    woken.splice(0);
    await host.killAll(launch.id);
    await eventually('the listener is notified of the end of the other processes', async () => woken.length > 0);
    assert.equal((await runtime.inspect(launch.id)).state, 'stopped');
  });
});
