import assert from 'node:assert/strict';
import { chmod, mkdir, readFile, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { text as textOf } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, test } from 'vitest';
import { explained } from '../../../../src/domain/reason.ts';
import type { SandboxSpec } from '../../../../src/domain/sandbox-spec.ts';
import { neverAborts } from '../../../../src/ports/abort-signals.ts';
import type { SandboxLaunch, SandboxRuntime } from '../../../../src/ports/sandbox-runtime.ts';
import { eventually } from '../../../contracts/sandbox-runtime-harness.ts';
import { createHost, isAlive, type Host } from './host.ts';
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

async function start(command: readonly string[] | null, changes: Partial<SandboxSpec> = {}): Promise<SandboxLaunch> {
  const launch = launchOf(command, changes);
  await runtime.start(launch, () => {}, neverAborts);
  return launch;
}

async function text(id: string, file: string): Promise<string> {
  await eventually(`${file} is written`, async () => (await host.readFile(id, file)) !== null);
  return (await host.readFile(id, file)) ?? '';
}

describe('The command of a sandbox', () => {
  test.each([
    [null, { code: 'command_not_named' }],
    [[], { code: 'command_not_named' }],
    [['no-such-program'], { code: 'command_not_found', command: 'no-such-program' }],
    [['./missing.sh'], { code: 'command_not_found', command: './missing.sh' }],
    [['exit', '3'], { code: 'command_not_found', command: 'exit' }],
    [['/etc/passwd'], { code: 'command_not_executable', command: '/etc/passwd' }],
    [['/etc'], { code: 'command_not_found', command: '/etc' }],
    [['echo', 'x'.repeat(4 << 20)], explained('its command and its environment are too long')],
    [['echo', 'a\0b'], explained('its command or its environment holds a NUL character')],
  ])("reports why it can't be run: %j", async (command, reason) => {
    const launch = await start(command);
    const fact = await runtime.inspect(launch.id);
    assert.equal(fact.state, 'stopped');
    assert.deepEqual(fact.reason, reason);
    assert.deepEqual(await host.open().inspect(launch.id), fact);
    assert.deepEqual(await readdir(join(host.root, '.ports')), []);
  });

  test('runs on resume if its program exists by then', async () => {
    const launch = await start(['./run.sh']);
    const script = join(host.root, launch.id, 'workspace', 'run.sh');
    await writeFile(script, '#!/bin/sh\necho here > new\nmv new ran\nexec sleep 1000\n');
    assert.equal((await runtime.resume(launch, neverAborts)).reason?.code, 'command_not_executable');
    await chmod(script, 0o755);
    assert.equal((await runtime.resume(launch, neverAborts)).state, 'running');
    assert.equal(await text(launch.id, 'ran'), 'here\n');
  });

  test('gets its arguments unchanged, an empty stdin, and SIGTERM on stop', async () => {
    const args = ['', ' a  b ', '$HOME', '*', '"', "'", '\\n', '-n', '\u00e9'];
    const code =
      'const fs=require("fs");fs.writeFileSync("new",JSON.stringify([process.argv.slice(1),fs.readFileSync(0,"utf8")]));fs.renameSync("new","args");setInterval(()=>{},1000)';
    const launch = await start([process.execPath, '-e', code, '--', ...args]);
    assert.deepEqual(JSON.parse(await text(launch.id, 'args')), [args, '']);
    assert.deepEqual((await runtime.stop(launch.id)).reason, { code: 'process_exited', exitCode: null, signal: 'SIGTERM', program: null });
  });

  test.each([
    ['exit 0', { code: 'process_exited', exitCode: 0, signal: null, program: null }],
    ['exit 3', { code: 'process_exited', exitCode: 3, signal: null, program: null }],
    ['exit 255', { code: 'process_exited', exitCode: 255, signal: null, program: null }],
    ['kill -KILL $$', { code: 'process_exited', exitCode: null, signal: 'SIGKILL', program: null }],
    ['kill -SEGV $$', { code: 'process_exited', exitCode: null, signal: 'SIGSEGV', program: null }],
  ])('has a known exit even if no Skep was running when it ended: %s', async (script, reason) => {
    const launch = launchOf(shell(`while [ ! -e go ]; do sleep 0.01; done; ${script}`));
    await startAndLeave(host, launch);
    const leader = await host.leader(launch.id);
    assert.equal((await runtime.inspect(launch.id)).state, 'running');
    await runtime.close();
    await writeFile(join(host.root, launch.id, 'workspace', 'go'), '');
    await eventually('the leader ends', async () => !(await isAlive(leader)));
    assert.deepEqual((await host.open().inspect(launch.id)).reason, reason);
  });
});

describe('The folder of a sandbox', () => {
  test('holds the output, which is rotated at the size limit', async () => {
    runtime = host.open({ logLimitBytes: 1000 });
    const launch = await start(shell('echo out; echo err >&2; yes | head -c 5000; exit 1'));
    const log = join(host.root, launch.id, 'output.log');
    await eventually('the sandbox is stopped', async () => (await runtime.inspect(launch.id)).state === 'stopped');
    assert.match(await readFile(log, 'utf8'), /^out\nerr\ny\n/);
    await runtime.resume({ ...launch, spec: { ...launch.spec, command: ['echo', 'again'] } }, neverAborts);
    await eventually('the sandbox is stopped', async () => (await runtime.inspect(launch.id)).state === 'stopped');
    assert.equal(await readFile(log, 'utf8'), 'again\n');
    assert.match(await readFile(`${log}.old`, 'utf8'), /^out\nerr\ny\n/);
  });

  test('returns the whole log to a reader during and after a rotation', async () => {
    runtime = host.open({ logLimitBytes: 1000 });
    const launch = await start(shell('seq 1 40000; exit 1'));
    const ends = () => eventually('the sandbox is stopped', async () => (await runtime.inspect(launch.id)).state === 'stopped');
    const written = Array.from({ length: 40_000 }, (_, index) => `${index + 1}\n`).join('');
    await ends();
    const reader = (await runtime.logs(launch.id, {}, neverAborts)).getReader();
    let read = '';
    for (let isCut = false; ; isCut = true) {
      const { value } = await reader.read();
      if (value === undefined) break;
      read += Buffer.from(value).toString();
      if (isCut) continue;
      await runtime.resume({ ...launch, spec: { ...launch.spec, command: ['echo', 'again'] } }, neverAborts);
      await ends();
    }
    assert.equal(read, written);
    assert.equal(await textOf(await runtime.logs(launch.id, {}, neverAborts)), `${written}again\n`);
    assert.equal(await textOf(await runtime.logs(launch.id, { tailBytes: 12 }, neverAborts)), '40000\nagain\n');
  });

  test.each([
    ['read-only directories', 'b=$(printf "a/b\\377"); mkdir -p "$b"; echo x > "$b/c"; chmod 500 "$b" a'],
    ['longer paths than the system allows', `(n=${'d'.repeat(200)}; for _ in $(seq 30); do mkdir $n; cd $n; done)`],
  ])('is removed with the sandbox, including %s', async (_name, script) => {
    const launch = await start(shell(`${script}; : > made; exec sleep 1000`));
    await text(launch.id, 'made');
    await runtime.remove(launch.id);
    assert.deepEqual(await host.leftovers(launch.id), []);
  });

  test("can't be reached with an invalid sandbox id", async () => {
    await mkdir(join(host.root, 'UPPER', 'workspace'), { recursive: true });
    await writeFile(join(host.root, 'file'), '');
    assert.deepEqual(await runtime.list(), []);
    for (const id of ['..', '.', '', '.trash', 'UPPER', 'a/b', 'a_b', '-a', 'a-', 'a'.repeat(64), 'a\0b']) {
      const launch = { ...launchOf(programs.exits), id };
      assert.equal((await runtime.start(launch, () => {}, neverAborts)).state, 'absent');
      assert.equal((await runtime.resume(launch, neverAborts)).state, 'absent');
      assert.equal((await runtime.inspect(id)).state, 'absent');
      assert.equal((await runtime.stop(id)).state, 'absent');
      await runtime.remove(id);
    }
    assert.deepEqual((await readdir(host.root)).toSorted(), ['.ports', '.trash', 'UPPER', 'file']);
  });
});

test('an invalid root folder makes calls fail with runtime_unavailable', async () => {
  const root = join(host.root, 'file', 'root');
  await writeFile(join(host.root, 'file'), '');
  const broken = host.open({ root });
  await assert.rejects(broken.list(), { code: 'runtime_unavailable' });
  await assert.rejects(broken.start(launchOf(programs.counts), () => {}, neverAborts), { code: 'runtime_unavailable' });
  const check = await broken.check();
  assert.equal(check.ok, false);
  assert.equal(check.detail.includes(host.root), false);
});

test('a removal does not wait for the grace period of a stop', async () => {
  runtime = host.open({ stopGraceMs: 3_600_000 });
  const launch = await start(programs.stubborn);
  await text(launch.id, 'count');
  const stopped = runtime.stop(launch.id);
  await runtime.remove(launch.id);
  assert.equal((await stopped).state, 'stopped');
  assert.deepEqual(await host.leftovers(launch.id), []);
});

test('a start continues after its signal has fired', async () => {
  const launch = launchOf(programs.counts);
  const controller = new AbortController();
  const started = runtime.start(launch, () => controller.abort(new Error('enough')), controller.signal);
  await assert.rejects(started, /enough/);
  await eventually('the sandbox runs', async () => (await runtime.inspect(launch.id)).state === 'running');
});
