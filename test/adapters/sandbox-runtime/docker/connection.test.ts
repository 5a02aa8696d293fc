import { execFile } from 'node:child_process';
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createHash } from 'node:crypto';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import { neverAborts } from '../../../../src/ports/abort-signals.ts';
import { describeWithDocker, images } from '../../../support/docker.ts';
import { until } from '../../../support/until.ts';
import { createEngine } from './engine.ts';
import { launchOf } from './programs.ts';
import { shell } from '../../../support/sandbox-programs.ts';
import { startProxy, type Proxy } from './proxy.ts';

const run = promisify(execFile);
const idle = shell('touch begun; exec sleep 100000');

describeWithDocker('The connection to the Docker engine', () => {
  const engine = createEngine();
  let folder: string;
  const proxies: Proxy[] = [];
  const proxy = async (...options: Parameters<typeof startProxy>): Promise<Proxy> => {
    const started = await startProxy(...options);
    proxies.push(started);
    return started;
  };
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'skep-docker-'));
    await makeKeys(folder);
  });
  afterEach(async () => {
    vi.unstubAllEnvs();
    await engine.clear();
    await Promise.all(proxies.splice(0).map((one) => one.close()));
  });
  afterAll(async () => {
    await engine.close();
    await rm(folder, { recursive: true });
  });

  test('notifies listeners about changes during and after an interruption', async () => {
    const way = await proxy();
    const runtime = engine.open({ host: `tcp://127.0.0.1:${way.port}`, env: {} });
    const woken = new Set<string>();
    runtime.subscribe((id) => woken.add(id));
    const [killed, removed, untouched, later] = [launchOf(idle), launchOf(idle), launchOf(idle), launchOf(idle)];
    await Promise.all([killed, removed, untouched, later].map((launch) => runtime.start(launch, () => {}, neverAborts)));
    expect(woken.size).toBe(0);
    way.cut();
    await expect(runtime.inspect(killed.id)).rejects.toMatchObject({ code: 'runtime_unavailable' });
    const start = { executionId: 'exec-1', command: ['true'], stdin: false, tty: null };
    await expect(runtime.executions.start(killed.id, start, neverAborts)).rejects.toMatchObject({
      code: 'runtime_unavailable', context: { reason: { code: 'command_not_begun', cause: { code: 'explained' } } },
    });
    await engine.container(killed.id).kill();
    await engine.container(removed.id).remove({ force: true });
    way.mend();
    await until(() => [...woken], (ids) => ids.includes(killed.id) && ids.includes(removed.id));
    expect(await until(() => runtime.inspect(killed.id), ({ state }) => state === 'stopped')).toMatchObject({ endedFromOutside: true });
    await engine.crash(later.id);
    await until(() => [...woken], (ids) => ids.includes(later.id));
    // It was followed again too short a time to be sure that nobody had asked for it before.
    expect((await runtime.inspect(later.id)).state).toBe('stopped');
    expect(woken.has(untouched.id)).toBe(false);
  });

  test('notifies listeners about an end that the engine does not list yet when they subscribe', async () => {
    const runtime = engine.open();
    const ended = Array.from({ length: 5 }, () => launchOf(idle));
    await Promise.all(ended.map((launch) => runtime.start(launch, () => {}, neverAborts)));
    const woken = new Set<string>();
    await Promise.all(ended.map(async ({ id }, place) => {
      const container = engine.container(id);
      const isKilled = container.kill();
      // An end is in the engine's events, and later in its lists, at some time after this.
      await container.wait();
      if (place === 0) runtime.subscribe((changed) => woken.add(changed));
      await isKilled;
    }));
    await until(() => [...woken], (ids) => ended.every(({ id }) => ids.includes(id)), 30_000);
  });

  test('is shared by all listeners', async () => {
    const way = await proxy();
    const runtime = engine.open({ host: `127.0.0.1:${way.port}`, env: {} });
    const sandbox = launchOf(idle);
    await runtime.start(sandbox, () => {}, neverAborts);
    const woken = [new Set<string>(), new Set<string>()];
    const before = way.connections();
    for (let times = 0; times < 20; times += 1) runtime.subscribe(() => {});
    for (const ids of woken) runtime.subscribe((id) => ids.add(id));
    await engine.container(sandbox.id).kill();
    for (const ids of woken) await until(() => [...ids], (found) => found.includes(sandbox.id));
    // The stream, and the list that it begins with.
    expect(way.connections() - before).toBeLessThanOrEqual(2);
  });

  test('can break while a durable command runs, whose output and exit code are then read from the sandbox', { timeout: 60_000 }, async () => {
    const way = await proxy();
    const runtime = engine.open({ host: `tcp://127.0.0.1:${way.port}`, env: {} });
    const { id } = await runtime.start(launchOf(idle, { image: images.debian }), () => {}, neverAborts);
    const command = shell('n=0; while [ ! -e over ]; do n=$((n+1)); echo $n; sleep 0.05; done; exit 7');
    await runtime.executions.start(id, { executionId: 'exec-1', command, stdin: false, tty: null }, neverAborts);
    const output = await runtime.executions.output(id, 'exec-1', { stream: 'stdout', after: 0, follow: true }, neverAborts);
    const ended = runtime.executions.ended(id, 'exec-1', neverAborts);
    let lines: string[] = [];
    const reading = (async () => {
      let read = '';
      for await (const bytes of output) lines = (read += Buffer.from(bytes).toString()).trim().split('\n');
    })();
    await until(() => lines.length, (count) => count > 1);
    way.cut();
    way.mend();
    const before = lines.length;
    await until(() => lines.length, (count) => count > before + 1);
    await engine.ask(id, 'touch /workspace/over');
    expect(await ended).toMatchObject({ status: 'exited', exitCode: 7 });
    await reading;
    expect(lines).toEqual(lines.map((_, index) => String(index + 1)));
  });

  test('uses TLS with the keys in DOCKER_CERT_PATH, and refuses an unknown server', async () => {
    const [ca, cert, key] = await Promise.all(['ca.pem', 'server-cert.pem', 'server-key.pem'].map((name) => readFile(join(folder, name))));
    const way = await proxy({ ca, cert, key, requestCert: true, rejectUnauthorized: true });
    const env = { DOCKER_HOST: `tcp://127.0.0.1:${way.port}`, DOCKER_TLS_VERIFY: '1', DOCKER_CERT_PATH: folder };
    const runtime = engine.open({ env });
    expect(await runtime.check()).toMatchObject({ ok: true });
    const sandbox = launchOf(idle);
    expect(await runtime.start(sandbox, () => {}, neverAborts)).toMatchObject({ state: 'running' });
    const execution = await runtime.execute(sandbox.id, { command: ['echo', 'hello'] }, neverAborts);
    expect(await new Response(execution.stdout).text()).toBe('hello\n');

    const stranger = join(folder, 'stranger');
    await mkdir(stranger);
    await makeKeys(stranger);
    const refused = await engine.open({ env: { ...env, DOCKER_CERT_PATH: stranger } }).check();
    expect(refused).toMatchObject({ ok: false, detail: expect.stringMatching(/TLS.*DOCKER_CERT_PATH/) });
    expect(refused.detail).not.toContain(folder);

    // The same by a context of Docker's client.
    const digest = createHash('sha256').update('remote').digest('hex');
    const [meta, tls] = [join(folder, 'contexts/meta', digest), join(folder, 'contexts/tls', digest, 'docker')];
    for (const made of [meta, tls]) await mkdir(made, { recursive: true });
    await writeFile(join(meta, 'meta.json'), JSON.stringify({ Name: 'remote', Endpoints: { docker: { Host: env.DOCKER_HOST } } }));
    for (const name of ['ca.pem', 'cert.pem', 'key.pem']) await writeFile(join(tls, name), await readFile(join(folder, name)));
    const inContext = engine.open({ env: { DOCKER_CONTEXT: 'remote' }, configDir: folder });
    expect((await inContext.inspect(sandbox.id)).state).toBe('running');
  });

  test("uses the machine's ssh command", async () => {
    // What ssh does in the end: it runs a command on the other machine, and carries its streams.
    const log = join(folder, 'ssh.log');
    const script = `#!${process.execPath}
require('node:fs').appendFileSync(${JSON.stringify(log)}, process.argv.slice(2).join(' ') + '\\n');
const engine = require('node:net').connect({ path: '/var/run/docker.sock', allowHalfOpen: true });
process.stdin.pipe(engine).pipe(process.stdout);
engine.on('end', () => process.exit());
`;
    const bin = join(folder, 'bin');
    await mkdir(bin);
    await writeFile(join(bin, 'ssh'), script);
    await chmod(join(bin, 'ssh'), 0o755);
    vi.stubEnv('PATH', `${bin}${delimiter}${process.env['PATH']}`);
    const runtime = engine.open({ env: { DOCKER_HOST: 'ssh://ann@build-7:2222' } });
    expect(await runtime.check()).toMatchObject({ ok: true });
    const sandbox = launchOf(idle);
    expect(await runtime.start(sandbox, () => {}, neverAborts)).toMatchObject({
      state: 'running',
      exposedUrls: [{ url: expect.stringMatching(/^http:\/\/build-7:\d+$/) }],
    });
    const execution = await runtime.execute(sandbox.id, { command: ['cat'] }, neverAborts);
    const writer = execution.stdin.getWriter();
    await writer.write(Buffer.from('there and back'));
    await writer.close();
    expect(await new Response(execution.stdout).text()).toBe('there and back');
    expect(await execution.exited).toBe(0);
    await runtime.close();
    const [line] = (await readFile(log, 'utf8')).split('\n');
    expect(line).toMatch(/-p 2222 -- ann@build-7 docker system dial-stdio$/);
  });
});

/** An authority, and keys of a server at 127.0.0.1 and of a client that it vouches for. */
async function makeKeys(folder: string): Promise<void> {
  const openssl = (...given: string[]): Promise<unknown> => run('openssl', given, { cwd: folder });
  const newKey = ['-newkey', 'rsa:2048', '-nodes'];
  await openssl('req', '-x509', ...newKey, '-keyout', 'ca-key.pem', '-out', 'ca.pem', '-days', '2', '-subj', '/CN=test authority');
  await writeFile(join(folder, 'server.ext'), 'subjectAltName=IP:127.0.0.1\n');
  await writeFile(join(folder, 'client.ext'), 'extendedKeyUsage=clientAuth\n');
  for (const [name, key, cert] of [
    ['server', 'server-key.pem', 'server-cert.pem'],
    ['client', 'key.pem', 'cert.pem'],
  ] as const) {
    await openssl('req', ...newKey, '-keyout', key, '-out', `${name}.csr`, '-subj', `/CN=${name}`);
    await openssl(
      'x509',
      '-req',
      '-in',
      `${name}.csr`,
      '-CA',
      'ca.pem',
      '-CAkey',
      'ca-key.pem',
      '-CAcreateserial',
      '-out',
      cert,
      '-days',
      '2',
      '-extfile',
      `${name}.ext`,
    );
  }
}
