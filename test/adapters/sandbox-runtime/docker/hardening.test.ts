import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { networkInterfaces } from 'node:os';
import { afterAll, afterEach, expect, test } from 'vitest';
import type { Reason } from '../../../../src/domain/reason.ts';
import { defaultIsolation, type SandboxIsolation } from '../../../../src/domain/sandbox-spec.ts';
import { neverAborts } from '../../../../src/ports/abort-signals.ts';
import { type SandboxLaunch, type SandboxRuntime, unknownUsage } from '../../../../src/ports/sandbox-runtime.ts';
import { tarOf } from '../../../contracts/sandbox-runtime-streams.ts';
import { describeWithDocker, images } from '../../../support/docker.ts';
import { shell } from '../../../support/sandbox-programs.ts';
import { until } from '../../../support/until.ts';
import { createEngine } from './engine.ts';
import { launchOf } from './programs.ts';

const idle = shell('touch begun; exec sleep 100000');
const isolated = (changes: Partial<SandboxIsolation>): { isolation: SandboxIsolation } => ({
  isolation: { ...defaultIsolation, ...changes },
});

const machineAddresses = (): string[] => Object.values(networkInterfaces()).flatMap((found) => found ?? [])
  .filter(({ family, internal }) => family === 'IPv4' && !internal).map(({ address }) => address);

describeWithDocker('A Docker sandbox', () => {
  const engine = createEngine();
  const { ask, container } = engine;
  afterEach(() => engine.clear());
  afterAll(() => engine.close());

  async function started(launch: SandboxLaunch, runtime: SandboxRuntime = engine.open()): Promise<string> {
    const observed = await runtime.start(launch, () => {}, neverAborts);
    expect(observed).toMatchObject({ state: 'running', reason: null });
    return launch.id;
  }

  test('has no capabilities and limited resources by default', async () => {
    const id = await started(launchOf(idle));
    const status = await ask(id, 'cat /proc/1/status');
    expect(status).toMatch(/^CapEff:\s+0+$/m);
    expect(status).toMatch(/^CapBnd:\s+0+$/m);
    expect(status).toMatch(/^NoNewPrivs:\s+1$/m);
    expect(status).toMatch(/^Seccomp:\s+2$/m);
    expect(await ask(id, 'cat /proc/1/oom_score_adj; ulimit -n')).toBe('500\n1024');
    const v1 = 'cat /sys/fs/cgroup/memory/memory.limit_in_bytes /sys/fs/cgroup/pids/pids.max /sys/fs/cgroup/cpu/cpu.cfs_quota_us';
    const v2 = 'cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/pids.max; cut -d" " -f1 /sys/fs/cgroup/cpu.max';
    expect(await ask(id, `if [ -e /sys/fs/cgroup/memory.max ]; then ${v2}; else ${v1}; fi`)).toBe(`${128 * 2 ** 20}\n64\n200000`);
    const { HostConfig } = await container(id).inspect();
    expect(HostConfig).toMatchObject({
      MemorySwap: 128 * 2 ** 20,
      IpcMode: 'private',
      Privileged: false,
      RestartPolicy: { Name: 'no' },
      LogConfig: { Type: 'json-file', Config: { 'max-size': String(2 ** 19), 'max-file': '2' } },
    });
  });

  test('gets more rights only by the options of its spec', async () => {
    const docker = { capabilities: ['NET_RAW'], new_privileges: true, seccomp: 'unconfined' };
    const id = await started(launchOf(idle, { runtimeOptions: { docker } }));
    const status = await ask(id, 'cat /proc/1/status');
    expect(status).toMatch(/^CapEff:\s+0+2000$/m);
    expect(status).toMatch(/^NoNewPrivs:\s+0$/m);
    expect(status).toMatch(/^Seccomp:\s+0$/m);
  });

  test('has a working directory that its user can write to', async () => {
    const runtime = engine.open();
    const owned = [['agent', '1000 1000'], ['1000', '1000 1000'], ['1000:1000', '1000 1000'], [null, '0 0']] as const;
    // Folders of the image: one that the user may write to as a member of a group, and one for all users, which stays as it is.
    const ofImage = [['/var/mail', '1000:8', '1000 8 2775'], ['/tmp', '1000', '0 0 1777']] as const;
    await Promise.all([
      ...owned.map(async ([user, owner]) => {
        const id = await started(launchOf(idle, { workingDir: '/deep/down/work', ...isolated({ user }) }), runtime);
        await until(() => ask(id, 'ls', user ?? 'root'), (names) => names === 'begun');
        expect(await ask(id, 'pwd; stat -c "%u %g" . begun | sort -u')).toBe(`/deep/down/work\n${owner}`);
      }),
      ...ofImage.map(async ([workingDir, user, owner]) => {
        const id = await started(launchOf(idle, { image: images.debian, workingDir, ...isolated({ user }) }), runtime);
        expect(await ask(id, 'stat -c "%u %g %a" .')).toBe(owner);
      }),
    ]);
  });

  test('that the engine refuses to resume stays stopped for that reason, not for the end of its last run', async () => {
    const runtime = engine.open();
    const launch = launchOf(idle, isolated({ user: 'agent' }));
    const id = await started(launch, runtime);
    await runtime.stop(id);
    await runtime.putFiles(id, '/etc', tarOf([[{ name: 'passwd' }, 'root:x:0:0::/:/bin/sh\n']]), neverAborts);
    const reason = { code: 'user_not_found', kind: 'user', name: 'agent' };
    expect(await runtime.resume(launch, neverAborts)).toMatchObject({ state: 'stopped', endedFromOutside: false, reason });
  });

  test('with a read-only root can write only to its working directory and /tmp, and keeps those files', async () => {
    const runtime = engine.open();
    const launch = launchOf(shell('echo life >> lives; echo life >> /tmp/lives; exec sleep 100000'), {
      workingDir: '/deep/work',
      ...isolated({ readOnlyRoot: true, user: 'agent' }),
    });
    const id = await started(launch, runtime);
    const said = await ask(id, 'touch /no /etc/no /deep/no 2>&1; ls -d /no /etc/no /deep/no 2>/dev/null');
    expect(said).toMatch(/^(?:touch: .*Read-only file system\n?){3}$/);
    await until(() => ask(id, 'cat lives /tmp/lives'), (lives) => lives === 'life\nlife');
    await runtime.stop(id);
    await runtime.resume(launch, neverAborts);
    await until(() => ask(id, 'cat lives /tmp/lives'), (lives) => lives === 'life\nlife\nlife\nlife');
    expect(await ask(id, 'stat -c %a /tmp', 'agent')).toBe('1777');
    await runtime.remove(id);
    expect(await engine.leftovers(id)).toEqual([]);
  });

  test('reaches no other sandbox unless its network is shared, and never a metadata address', async () => {
    const runtime = engine.open();
    const serves = shell('mkdir -p www; echo here > www/index.html; exec httpd -f -p 8080 -h www');
    const reach = (id: string, address: string): Promise<string> =>
      ask(
        id,
        `for i in $(seq 100); do printf 'GET / HTTP/1.0\\r\\n\\r\\n' | nc -w 2 ${address} 8080 | tail -n 1 | grep . && exit; done; echo nothing`,
      );
    for (const network of ['isolated', 'shared'] as const) {
      const [one, other] = [launchOf(serves, isolated({ network })), launchOf(serves, isolated({ network }))];
      await Promise.all([started(one, runtime), started(other, runtime)]);
      const { NetworkSettings } = await container(other.id).inspect();
      const [endpoint] = Object.values(NetworkSettings.Networks);
      expect(endpoint?.IPAddress).toMatch(/^\d/);
      // It reaches itself, so the programs are there; and what it asks the metadata address comes to itself.
      expect(await reach(one.id, '127.0.0.1')).toBe('here');
      expect(await reach(one.id, '169.254.169.254')).toBe('here');
      expect(await ask(one.id, 'ip route get 169.254.169.254 | head -n 1')).toMatch(/^local /);
      expect(await ask(one.id, 'ip route get 169.254.1.1 | head -n 1')).not.toMatch(/ via /);
      const asked = `printf 'GET / HTTP/1.0\\r\\n\\r\\n' | nc -w 2 ${endpoint?.IPAddress} 8080 | tail -n 1`;
      expect(await ask(one.id, asked)).toEqual(network === 'shared' ? 'here' : expect.not.stringContaining('here'));
    }
    const alone = await started(launchOf(idle, isolated({ network: 'none' })), runtime);
    expect(await ask(alone, 'ls /sys/class/net')).toBe('lo');
    expect((await runtime.inspect(alone)).exposedUrls).toEqual([]);
  });

  test('reaches no host service, no published port and no metadata address, unless its network is shared', async () => {
    const served = createServer((socket) => socket.end('here\n')).listen(0, '0.0.0.0');
    await once(served, 'listening');
    const { port } = served.address() as AddressInfo;
    const runtime = engine.open({ publishAddress: '0.0.0.0', firewall: true });
    try {
      const serves = shell('mkdir -p www; echo here > www/index.html; exec httpd -f -p 8080 -h www');
      const [one, other, shares] = [launchOf(idle), launchOf(serves), launchOf(idle, isolated({ network: 'shared' }))];
      await Promise.all([one, other, shares].map((launch) => started(launch, runtime)));
      const published = new URL((await runtime.inspect(other.id)).exposedUrls[0]?.url ?? '').port;
      const gateway = await ask(one.id, "ip route | sed -n 's/^default via \\([0-9.]*\\).*/\\1/p'");
      /** Asks at each address and port. Returns one answer for each of them. */
      const asked = async (id: string, addresses: readonly string[], ports: readonly (string | number)[]): Promise<readonly string[]> => {
        const request = "printf 'GET / HTTP/1.0\\r\\n\\r\\n' | nc -w 3 $address $port 2>&1 | tail -n 1";
        const each = `for address in ${addresses.join(' ')}; do for port in ${ports.join(' ')}; do echo "$(${request})"; done; done`;
        return (await ask(id, each)).split('\n');
      };
      const refused = expect.stringMatching(/Connection refused/);
      for (const address of machineAddresses()) {
        const answers = await asked(one.id, [address], [port, published]);
        // The bridges of other tests come and go.
        if (machineAddresses().includes(address)) expect(answers).toEqual([refused, refused]);
      }
      expect(machineAddresses()).toContain(gateway);
      const metadata = ['168.63.129.16', '100.100.100.200', '192.0.0.192'];
      for (const { id } of [one, shares]) expect(await asked(id, metadata, [80])).toEqual([refused, refused, refused]);
      // The machine's own services are open to those that share a network, by their spec.
      expect(await asked(shares.id, [gateway], [port])).toEqual(['here']);
      expect(await ask(one.id, 'ip -6 address; nc -w 3 fd00:ec2::254 80 2>&1')).toMatch(/^nc: .*(?:unreachable|assign)/);
    } finally {
      served.close();
    }
  });

  test("has no secret in its labels, and its spec can't set labels of Skep", async () => {
    const launch = launchOf(idle, { labels: { team: 'blue', 'skep.deployment': 'other', 'skep.sandbox': 'other', 'skep.more': 'x' } });
    const id = await started(launch);
    const { Config } = await container(id).inspect();
    expect(Config.Labels).toEqual({
      team: 'blue',
      'skep.deployment': engine.deployment,
      'skep.sandbox': id,
      'skep.spec': 'spec',
      'skep.owner': '',
      'skep.ports': '[{"name":"WEB","port":8080}]',
    });
    expect(JSON.stringify(Config.Labels)).not.toContain(launch.sessionApiKey);
    expect(await ask(id, 'echo $SESSION_KEY $SKEP_SANDBOX_ID $PORT')).toBe(`${launch.sessionApiKey} ${id} 8080`);
  });

  test.each([false, true])('shows no secret of its spec in docker inspect, with a read-only root: %s', async (readOnlyRoot) => {
    const launch = {
      ...launchOf(['sh', '-c', 'echo "$TOKEN" > told; exec sleep 1000'], { secrets: ['TOKEN'], isolation: { readOnlyRoot, network: 'isolated', user: '1000:1000' } }),
      secrets: { TOKEN: "a 'secret' of the spec" },
    };
    const id = await started(launch);
    expect(JSON.stringify(await container(id).inspect())).not.toContain('of the spec');
    expect(await ask(id, 'until [ -s told ]; do sleep 0.1; done; cat told; ls -A /tmp')).toBe("a 'secret' of the spec");
  });

  test('gets the secrets that its spec named when it was created', async () => {
    const runtime = engine.open();
    const shows = shell('echo "token: ${TOKEN-none}" >> told; exec sleep 1000');
    const [without, made] = [launchOf(shows), { ...launchOf(shows, { secrets: ['TOKEN'] }), secrets: { TOKEN: 'a secret' } }];
    for (const launch of [without, made]) {
      await started(launch);
      await ask(launch.id, 'until [ -s told ]; do sleep 0.1; done');
      await runtime.stop(launch.id);
    }
    expect(await runtime.resume({ ...made, id: without.id }, neverAborts)).toMatchObject({ state: 'running' });
    expect(await runtime.resume({ ...without, id: made.id }, neverAborts)).toMatchObject({ state: 'running' });
    const look = 'until [ $(wc -l < told) = 2 ]; do sleep 0.1; done; cat told; ls -A /tmp';
    expect(await ask(without.id, look)).toBe('token: none\ntoken: none');
    expect(await ask(made.id, look)).toBe('token: a secret\ntoken: none');
  });

  test.each([false, true])('has a disk limit, or is refused if the engine supports none, with a read-only root: %s', async (readOnlyRoot) => {
    const { resources } = launchOf(idle).spec;
    const launch = launchOf(idle, { resources: { ...resources, diskBytes: 2 ** 30 }, ...isolated({ readOnlyRoot }) });
    const { state, reason } = await engine.open().start(launch, () => {}, neverAborts);
    if (state === 'running') expect((await container(launch.id).inspect()).HostConfig.StorageOpt).toEqual({ size: String(2 ** 30) });
    else expect({ state, reason }).toEqual({ state: 'absent', reason: { code: 'disk_limit_unavailable' } });
  });

  test.each([false, true])('reports its CPU, memory and disk usage, with a read-only root: %s', async (readOnlyRoot) => {
    const runtime = engine.open();
    const megabytes = 8 * 2 ** 20;
    const launch = launchOf(shell(`dd if=/dev/zero of=file bs=1M count=8; touch begun; exec sleep 100000`), isolated({ readOnlyRoot }));
    const id = await started(launch, runtime);
    await until(() => ask(id, 'ls'), (names) => names.includes('begun'));
    const running = await runtime.usage(id);
    expect(running.cpuMs).toBeGreaterThan(0);
    expect(running.memoryBytes).toBeLessThan(100 * 2 ** 20);
    expect(running).toMatchObject({ cpuPercent: expect.any(Number), pids: expect.any(Number), memoryLimitBytes: launch.spec.resources.memoryBytes });
    expect(running.diskBytes).toBeGreaterThanOrEqual(megabytes);
    expect(running.diskBytes).toBeLessThan(2 * megabytes);
    await runtime.stop(id);
    expect(await runtime.usage(id)).toEqual({ ...unknownUsage, memoryLimitBytes: running.memoryLimitBytes, diskBytes: running.diskBytes });
  });

  test("is refused with a reason if the engine can't run its spec", async () => {
    const runtime = engine.open();
    const reasonOf = async (launch: SandboxLaunch): Promise<Reason | null> => {
      const observed = await runtime.start(launch, () => {}, neverAborts);
      expect(['absent', 'stopped']).toContain(observed.state);
      expect(observed.endedFromOutside).toBe(false);
      if (observed.state === 'stopped') expect(await runtime.inspect(launch.id)).toEqual(observed);
      return observed.reason;
    };
    const exotic = launchOf(idle, { runtimeOptions: { docker: { oci_runtime: 'no-such-runtime' } } });
    expect(await runtime.provide(exotic.spec, () => {}, neverAborts)).toMatchObject({
      kind: 'refused',
      reason: { code: 'isolation_unavailable', name: 'no-such-runtime', available: expect.arrayContaining(['runc']) },
    });
    expect(await reasonOf(exotic)).toMatchObject({ code: 'isolation_unavailable', name: 'no-such-runtime' });
    const wrong = launchOf(idle, { runtimeOptions: { docker: { seccomp: 'off' } } });
    expect(await runtime.provide(wrong.spec, () => {}, neverAborts)).toMatchObject({
      kind: 'refused',
      reason: { code: 'explained', message: expect.stringMatching(/docker part of its spec/) },
    });
    expect(await reasonOf(wrong)).toMatchObject({ message: expect.stringMatching(/docker part of its spec/) });
    expect(await reasonOf(launchOf(idle, isolated({ user: 'nobody-here' })))).toEqual({ code: 'user_not_found', kind: 'user', name: 'nobody-here' });
    expect(await reasonOf(launchOf(idle, { image: 'no-such-image' }))).toMatchObject({ message: expect.stringMatching(/no-such-image is not on the engine/) });
    expect(await reasonOf(launchOf(idle, { image: null }))).toEqual({ code: 'image_not_named' });
    expect(
      await reasonOf(launchOf(idle, { resources: { cpus: null, memoryBytes: 4_096, pids: null, openFiles: null, logBytes: null, diskBytes: null } })),
    ).toMatchObject({ code: 'launch_refused', message: expect.stringMatching(/memory/i) });
    expect(await reasonOf(launchOf(idle, { workingDir: '/etc/passwd' }))).not.toBeNull();
    expect(JSON.stringify(await reasonOf(launchOf(['/etc/passwd'])))).toMatch(/126|command_not_executable/);
  });
});
