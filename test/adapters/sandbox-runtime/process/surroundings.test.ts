import assert from 'node:assert/strict';
import { readFile, readdir, rename, rm, stat, writeFile } from 'node:fs/promises';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, test, vi } from 'vitest';
import { PortReservations } from '../../../../src/adapters/sandbox-runtime/process/port-reservations.ts';
import type { SandboxSpec } from '../../../../src/domain/sandbox-spec.ts';
import { neverAborts } from '../../../../src/ports/abort-signals.ts';
import type { SandboxLaunch, SandboxRuntime } from '../../../../src/ports/sandbox-runtime.ts';
import { eventually } from '../../../contracts/sandbox-runtime-harness.ts';
import { finish } from '../../../contracts/sandbox-runtime-streams.ts';
import { createHost, type Host } from './host.ts';
import { launchOf, programs } from './programs.ts';
import { shell } from '../../../support/sandbox-programs.ts';

let host: Host;
let runtime: SandboxRuntime;

beforeEach(async () => {
  host = await createHost();
  runtime = host.open();
});

afterEach(() => host.close());

async function start(
  command: readonly string[] | null, changes: Partial<SandboxSpec> = {}, secrets: Readonly<Record<string, string>> = {},
): Promise<SandboxLaunch> {
  const launch = { ...launchOf(command, changes), secrets };
  await runtime.start(launch, () => {}, neverAborts);
  return launch;
}

async function text(id: string, file: string): Promise<string> {
  await eventually(`${file} is written`, async () => (await host.readFile(id, file)) !== null);
  return (await host.readFile(id, file)) ?? '';
}

const hostPorts = async (id: string): Promise<string[]> =>
  (await runtime.inspect(id)).exposedUrls.map(({ url }) => new URL(url).port);

describe("The environment of a sandbox's command", () => {
  test('contains the variables of the spec and of Skep, and none of the server', async () => {
    process.env['SKEP_TEST_SECRET'] = 'the-secret-of-the-server';
    try {
      const launch = await start(shell('env -0 > env.new; mv env.new env; exec sleep 1000'), {
        ports: [{ name: 'agent-server', port: 8000 }],
      });
      const lines = (await text(launch.id, 'env')).split('\0');
      const env = Object.fromEntries(lines.filter((line) => line !== '').map((line) => line.split(/=(.*)/s)));
      const [port] = await hostPorts(launch.id);
      const workspace = join(host.root, launch.id, 'workspace');
      assert.equal(env['PATH'], process.env['PATH']);
      assert.match(env['SKEP_SANDBOX_MARK'] ?? '', /./);
      // What shells add, and what is passed on.
      const usual = /^(?:SKEP_SANDBOX_MARK|PATH|LANG|LC_[A-Z]+|TZ|TMPDIR|PWD|OLDPWD|SHLVL|_)$/;
      const rest = Object.entries(env).filter(([name]) => !usual.test(name));
      assert.deepEqual(Object.fromEntries(rest), {
        HOME: join(host.root, launch.id, 'home'),
        GREETING: 'hello there',
        SESSION_KEY: launch.sessionApiKey,
        SKEP_WORKSPACE: workspace,
        SKEP_SANDBOX_ID: launch.id,
        SKEP_PORT_8000: port,
        SKEP_PORT_AGENT_SERVER: port,
        PORT: port,
      });
    } finally {
      delete process.env['SKEP_TEST_SECRET'];
    }
  });

  test("can have its PATH and HOME set by the spec, and can't change the launcher", async () => {
    const launch = await start(['node', '-e', 'require("fs").writeFileSync("env", JSON.stringify(process.env))'], {
      initialEnv: { PATH: `/nowhere:${join(process.execPath, '..')}`, HOME: '/elsewhere', status: 's', claim: 'c', plan: 'p' },
      ports: [],
    });
    const env: unknown = JSON.parse(await text(launch.id, 'env').then(async () => {
      await eventually('the sandbox is stopped', async () => (await runtime.inspect(launch.id)).state === 'stopped');
      return (await host.readFile(launch.id, 'env')) ?? '';
    }));
    assert.ok(typeof env === 'object' && env !== null);
    const expected = { PATH: `/nowhere:${join(process.execPath, '..')}`, HOME: '/elsewhere', status: 's', claim: 'c', plan: 'p' };
    assert.deepEqual({ ...env, ...expected }, env);
    assert.equal('PORT' in env, false);
    assert.deepEqual((await runtime.inspect(launch.id)).reason, { code: 'process_exited', exitCode: 0, signal: null, program: null });
  });

  test('is the only place of the session key and the secrets', async () => {
    const launch = await start(programs.counts, { secrets: ['TOKEN'] }, { TOKEN: 'a-secret-of-the-spec' });
    await text(launch.id, 'count');
    for (const pid of await host.processes(launch.id)) {
      const line = await readFile(`/proc/${pid}/cmdline`, 'latin1').catch(() => '');
      for (const secret of [launch.sessionApiKey, 'a-secret-of-the-spec']) assert.equal(line.includes(secret), false);
    }
    for (const file of await readdir(host.root, { recursive: true, withFileTypes: true })) {
      if (!file.isFile()) continue;
      const content = await readFile(join(file.parentPath, file.name), 'latin1').catch(() => '');
      for (const secret of [launch.sessionApiKey, 'a-secret-of-the-spec']) assert.equal(content.includes(secret), false, file.name);
    }
    assert.equal((await stat(host.root)).mode & 0o777, 0o700);
  });
});

async function run(id: string, script: string): Promise<string> {
  const { out, code } = await finish(await runtime.execute(id, { command: shell(script) }, neverAborts));
  assert.equal(code, 0);
  return out;
}

describe('The home folder of a sandbox', () => {
  test('is shared by all its commands and kept after a stop, with mode 0700', async () => {
    const launch = await start(shell('echo run >> ~/runs; exec sleep 1000'));
    const home = join(host.root, launch.id, 'home');
    await eventually('the program runs', async () => (await readdir(home)).includes('runs'));
    assert.equal((await stat(home)).mode & 0o777, 0o700);
    assert.equal(await run(launch.id, 'cat ~/runs; echo kept > ~/session; pwd'), `run\n${join(host.root, launch.id, 'workspace')}\n`);
    await runtime.stop(launch.id);
    await runtime.resume(launch, neverAborts);
    assert.equal(await run(launch.id, 'cat ~/session'), 'kept\n');
    assert.deepEqual(await readdir(join(host.root, launch.id, 'workspace')), []);
  });

  test('counts towards the disk usage, and is removed with the sandbox', async () => {
    const { id } = await start(shell('exec sleep 1000'));
    const before = (await runtime.usage(id)).diskBytes ?? 0;
    await run(id, 'mkdir ~/.cache; dd if=/dev/urandom of="$HOME/.cache/much" bs=1024 count=1024 2>/dev/null; sync ~/.cache/much; chmod 500 ~/.cache');
    assert.ok(((await runtime.usage(id)).diskBytes ?? 0) - before >= 1024 * 1024);
    await runtime.remove(id);
    assert.deepEqual(await host.leftovers(id), []);
  });

  test('is created if it is missing', async () => {
    const launch = launchOf(shell('exec sleep 1000'));
    const [workspace, home] = ['workspace', 'home'].map((name) => join(host.root, launch.id, name));
    assert.ok(workspace !== undefined && home !== undefined);
    await runtime.start({ ...launch, spec: { ...launch.spec, initialEnv: { HOME: workspace } } }, () => {}, neverAborts);
    await rm(home, { recursive: true });
    assert.equal((await runtime.usage(launch.id)).diskBytes, 0);
    assert.equal(await run(launch.id, 'echo x > ~/x; echo ~'), `${home}\n`);
    await runtime.stop(launch.id);
    await rm(home, { recursive: true });
    await runtime.resume(launch, neverAborts);
    assert.deepEqual(await readdir(home), []);
    assert.deepEqual(await readdir(workspace), []);
  });
});

describe('The ports of sandboxes', () => {
  const three = { ports: [1, 2, 3].map((port) => ({ name: `P${port}`, port })) };

  test('are free and unique for 20 sandboxes that start at once', async () => {
    const other = host.open();
    const launches = Array.from({ length: 20 }, () => launchOf(shell('exec sleep 1000'), three));
    const facts = await Promise.all(launches.map((launch, n) => (n % 2 ? other : runtime).start(launch, () => {}, neverAborts)));
    const ports = facts.flatMap(({ exposedUrls }) => exposedUrls.map(({ url }) => Number(new URL(url).port)));
    assert.equal(new Set(ports).size, 60);
    for (const port of ports) {
      const server = createServer().listen(port, '127.0.0.1');
      await once(server, 'listening');
      server.close();
    }
    await Promise.all(launches.map(({ id }) => runtime.remove(id)));
    assert.deepEqual(await readdir(join(host.root, '.ports')), []);
  });

  test('stay the same after a stop, except for ports that are in use by then', async () => {
    const launch = await start(programs.counts, three);
    const before = await hostPorts(launch.id);
    await runtime.stop(launch.id);
    await runtime.resume(launch, neverAborts);
    assert.deepEqual(await hostPorts(launch.id), before);

    await runtime.stop(launch.id);
    const server = createServer().listen(Number(before[1]), '127.0.0.1');
    await once(server, 'listening');
    await runtime.resume(launch, neverAborts);
    const after = await hostPorts(launch.id);
    assert.deepEqual([after[0], after[2]], [before[0], before[2]]);
    assert.notEqual(after[1], before[1]);
    assert.equal((await readdir(join(host.root, '.ports'))).length, 3);
    server.close();
  });

  test('are not all looked through by a start that gives none back', async () => {
    const release = vi.spyOn(PortReservations.prototype, 'release');
    await runtime.list();
    release.mockClear();
    await start(shell('exec sleep 1000'), three);
    assert.equal(release.mock.calls.length, 0);
    release.mockRestore();
  });
});

async function goAway(): Promise<void> {
  await rename(host.root, `${host.root}.away`);
  await writeFile(host.root, 'no folder');
}

async function comeBack(): Promise<void> {
  await rm(host.root);
  await rename(`${host.root}.away`, host.root);
}

describe('The folder of all sandboxes', () => {
  test('makes calls fail with runtime_unavailable while it is missing, and no sandbox seems stopped', async () => {
    const { id } = await start(shell('exec sleep 1000'));
    const seen = new Set<string>();
    const state = async (): Promise<string> => (await runtime.inspect(id)).state;
    const look = async (): Promise<void> => void seen.add(await state().catch(({ code }: { code: string }) => code));
    for (let rounds = 0; rounds < 300; rounds += 1) {
      await Promise.all([look(), goAway()]);
      await Promise.all([look(), comeBack()]);
    }
    seen.delete('running');
    assert.deepEqual([...seen], ['runtime_unavailable']);
    assert.equal(await state(), 'running');
  });
});
