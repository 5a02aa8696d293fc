import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import Docker from 'dockerode';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createSkep } from '../../src/composition/index.ts';
import { createClient, items, object, type Client, type Json } from '../support/client.ts';
import { clearEngine, deploymentOf, onEngine } from '../support/deployment.ts';
import { describeWithDocker, images } from '../support/docker.ts';
import { removeFolder, runSkep, startServer, temporaryFolder, type Server } from '../support/server.ts';
import { until } from '../support/until.ts';

const run = promisify(execFile);
const key = 'a-static-key-for-docker-tests';
const patience = 90_000;
const nowhere = 'unix:///nonexistent/docker.sock';
/** Serves a file with one line for each start. */
const counter = 'mkdir -p www && echo started >> starts && cp starts www/index.html && exec httpd -f -p 8000 -h www';
const web = {
  id: 'web', image: images.tiny, command: ['sh', '-c', counter], ports: [{ name: 'WEB', port: 8000 }],
  ready: { http: '/index.html', port: 8000, within: '60s' }, labels: { team: 'shop' }, isolation: { network: 'isolated' }, allowed_secrets: ['SHOP_TOKEN'],
};
const config = { specs: [web, { id: 'pooled', image: images.tiny, command: ['sleep', '100000'], pool: { size: 1 } }], limits: { existing: 5 } };

const urlOf = (found: Json): string => (found['exposed_urls'] as { url: string }[])[0]?.url ?? '';

const page = async (found: Json): Promise<string> => await (await fetch(`${urlOf(found)}/index.html`, { signal: AbortSignal.timeout(30_000) })).text();

describeWithDocker('A server with Docker', () => {
  const docker = new Docker();
  let dataDir: string;
  let server: Server;
  let call: Client;

  async function start(env: Readonly<Record<string, string>> = {}): Promise<void> {
    const settings = { SKEP_API_KEY: key, SKEP_SANDBOX_RUNTIME: 'auto', SKEP_PROXY_PORT: 'off', SHOP_TOKEN: 'hush-hush' };
    server = await startServer({ dataDir, config, env: { ...settings, ...env } });
    call = createClient(server.url, key);
  }

  const sandbox = async (id: string): Promise<Json> => object(await call('GET', `/api/v1/sandboxes/${id}`));
  const untilStatus = async (id: string, status: string): Promise<Json> => await until(() => sandbox(id), (found) => found['status'] === status, patience);

  beforeAll(async () => {
    dataDir = await temporaryFolder();
    await start();
  });
  afterAll(async () => {
    await server.stop();
    await clearEngine(deploymentOf(dataDir));
    await removeFolder(dataDir);
  });

  test('chooses Docker, freezes, stops and resumes a sandbox, and finds it again after kill -9', async () => {
    expect(server.output().stdout).toMatch(/runtime +docker +ok/);
    const { id } = object(await call('POST', '/api/v1/sandboxes', { sandbox_spec_id: 'web' }));
    const path = `/api/v1/sandboxes/${String(id)}`;
    const running = await untilStatus(String(id), 'RUNNING');
    expect(await page(running)).toBe('started\n');

    const frozen = await call('POST', `${path}/pause`, { pause_kind: 'freeze' });
    expect(object(frozen)).toMatchObject({ status: 'PAUSED', pause_kind: 'freeze' });
    await call('POST', `${path}/resume`);
    expect(await page(await untilStatus(String(id), 'RUNNING'))).toBe('started\n');

    const stopped = await call('POST', `${path}/pause`, { pause_kind: 'stop' });
    expect(object(stopped)).toMatchObject({ status: 'PAUSED', pause_kind: 'stop' });
    await call('POST', `${path}/resume`);
    expect(await page(await untilStatus(String(id), 'RUNNING'))).toBe('started\nstarted\n');

    await server.kill();
    await start();
    expect(await page(await untilStatus(String(id), 'RUNNING'))).toBe('started\nstarted\n');

    const container = docker.getContainer(`skep_${deploymentOf(dataDir)}_${String(id)}`);
    const { Config, HostConfig } = await container.inspect();
    expect(Config.Labels).toMatchObject({ team: 'shop', 'skep.deployment': deploymentOf(dataDir), 'skep.sandbox': id });
    expect(HostConfig).toMatchObject({ Memory: 2 ** 31, MemorySwap: 2 ** 31, PidsLimit: 512, CapDrop: ['ALL'] });
    expect((await call('DELETE', path)).status).toBe(204);
    await until(() => container.inspect().then(() => 'there', ({ statusCode }: { statusCode: number }) => statusCode), (state) => state === 404, patience);
  });

  test('runs the commands of README.md as they are written', async () => {
    const block = /```sh\n(auth=[\s\S]*?)```/.exec(await readFile(join(import.meta.dirname, '../../README.md'), 'utf8'))?.[1] ?? '';
    const [variables = '', start = '', ...others] = block.replace('http://127.0.0.1:3000', server.url).replaceAll(' -s ', ' -sf ').trim().split('\n');
    const sh = async (script: string): Promise<string> => (await run('sh', ['-ec', `${variables}\n${script}`], { env: { ...process.env, SKEP_API_KEY: key } })).stdout;
    const id = (await sh(`${start}\necho "$id"`)).trim();
    expect(id).toMatch(/^sb-[a-z0-9]+$/);
    await untilStatus(id, 'RUNNING');
    expect(others).toHaveLength(5);
    for (const line of others) {
      await sh(`id=${id}\n${line}`);
      if (line.includes('/resume')) await untilStatus(id, 'RUNNING');
    }
    expect((await call('GET', `/api/v1/sandboxes/${id}`)).status).toBe(404);
  });

  test("applies a start request's variables, limits and secrets, also after a stop", async () => {
    const given = { env: { LEVEL: 'two' }, metadata: { task: '7' }, resources: { cpus: 0.5, memory_bytes: 2 ** 28, pids: 64 }, secrets: ['SHOP_TOKEN'] };
    const { id } = object(await call('POST', '/api/v1/sandboxes', { sandbox_spec_id: 'web', ...given }));
    const path = `/api/v1/sandboxes/${String(id)}`;
    await untilStatus(String(id), 'RUNNING');
    const container = docker.getContainer(`skep_${deploymentOf(dataDir)}_${String(id)}`);
    const told = async (): Promise<string> => (await run('docker', ['exec', container.id, 'sh', '-c', 'tr "\\0" "\\n" < /proc/1/environ; tr "\\0" "\\n" < /proc/$(pidof httpd)/environ'])).stdout;
    for (const kind of ['start', 'resumption']) {
      if (kind === 'resumption') {
        await call('POST', `${path}/pause`, { pause_kind: 'stop' });
        await call('POST', `${path}/resume`);
        await untilStatus(String(id), 'RUNNING');
      }
      expect((await told()).split('\n')).toEqual(expect.arrayContaining(['LEVEL=two', 'SHOP_TOKEN=hush-hush']));
    }
    const found = await container.inspect();
    expect(found.HostConfig).toMatchObject({ CpuPeriod: 100_000, CpuQuota: 50_000, Memory: 2 ** 28, PidsLimit: 64 });
    expect(JSON.stringify(found)).not.toContain('hush-hush');
    const refused = await call('POST', '/api/v1/sandboxes', { sandbox_spec_id: 'web', resources: { memory_bytes: 2 ** 31 + 1 } });
    expect(refused).toMatchObject({ status: 422, body: { detail: [{ type: 'resource_above_spec' }] } });
    const tooLittle = await call('POST', '/api/v1/sandboxes', { sandbox_spec_id: 'web', resources: { memory_bytes: 6 * 2 ** 20 - 1 } });
    expect(tooLittle).toMatchObject({ status: 422, body: { detail: [{ type: 'memory_below_minimum', loc: ['body', 'resources'] }] } });
    expect((await call('DELETE', path)).status).toBe(204);
  });

  test('starts a sandbox from the pool, and names the reached limit', async () => {
    const started = await until(
      async () => {
        const found = object(await call('POST', '/api/v1/sandboxes', { sandbox_spec_id: 'pooled' }));
        if (found['status'] !== 'RUNNING') await call('DELETE', `/api/v1/sandboxes/${String(found['id'])}`);
        return found;
      },
      ({ status }) => status === 'RUNNING',
      patience,
    );
    expect(started['status_reason']).toMatchObject({ code: 'claimed_from_pool' });
    await Promise.all(Array.from({ length: 6 }, () => call('POST', '/api/v1/sandboxes', { sandbox_spec_id: 'web' })));
    const full = await call('POST', '/api/v1/sandboxes', { sandbox_spec_id: 'web' });
    expect([full.status, object(full)['detail'], full.headers.has('retry-after')]).toEqual([429, expect.stringContaining('existing'), true]);
    const made = items(await call('GET', '/api/v1/sandboxes/search'));
    expect(made).toHaveLength(5);
    for (const { id } of made) expect((await call('DELETE', `/api/v1/sandboxes/${String(id)}`)).status).toBe(204);
  });

  test('stays with Docker and keeps its sandboxes while the engine does not answer', async () => {
    const { id } = object(await call('POST', '/api/v1/sandboxes', { sandbox_spec_id: 'web' }));
    const running = await untilStatus(String(id), 'RUNNING');
    await server.stop();
    await start({ SKEP_DOCKER_HOST: nowhere });
    try {
      expect(server.output().stdout).toMatch(/runtime +docker +NOT OK/);
      expect(await createClient(server.url, null)('GET', '/ready')).toMatchObject({ status: 200, body: { status: 'degraded' } });
      expect(await sandbox(String(id))).toMatchObject({ status: 'RUNNING', exposed_urls: running['exposed_urls'] });
    } finally {
      await server.stop();
      await start();
    }
    expect(await page(await untilStatus(String(id), 'RUNNING'))).toBe('started\n');
    expect((await call('DELETE', `/api/v1/sandboxes/${String(id)}`)).status).toBe(204);
  });
});

describeWithDocker('doctor and pull with Docker', () => {
  let dataDir: string;
  beforeAll(async () => void (dataDir = await temporaryFolder()));
  afterAll(async () => await removeFolder(dataDir));

  const specs = [{ id: 'here', image: images.tiny }, { id: 'absent', image: 'skep.invalid/nobody/has-this:1' }, { id: 'odd', image: images.tiny, docker: { oci_runtime: 'no-such-runtime' } }];

  async function skep(args: readonly string[], some: readonly unknown[]): Promise<{ code: number | null; stdout: string; stderr: string }> {
    const path = `${dataDir}/${some.length}.json`;
    await writeFile(path, JSON.stringify({ specs: some }));
    return await runSkep(args, { SKEP_CONFIG: path, SKEP_DATA_DIR: `${dataDir}/none`, SKEP_PORT: '0', SKEP_SANDBOX_RUNTIME: 'docker' });
  }

  test('doctor reports the engine, the images and the OCI runtimes, and changes nothing', async () => {
    const { code, stdout } = await skep(['doctor'], specs);
    expect(stdout).toMatch(/ok +engine \d+\.\S+, API 1\.\d+, cgroup [12]/);
    expect(stdout).toMatch(/ok +spec here: image skep-test\/tiny is there/);
    expect(stdout).toMatch(/warning +spec absent: image \S+ is not there.* pull absent/);
    expect(stdout).toMatch(/NOT OK +spec odd: the engine has no OCI runtime no-such-runtime/);
    expect(code).toBe(1);
    const json = await skep(['doctor', '--json'], specs.slice(0, 2));
    const { findings } = JSON.parse(json.stdout) as { findings: { code: string; data: unknown }[] };
    expect([json.code, findings.map(({ code: each }) => each)]).toEqual([0, expect.arrayContaining(['runtime_ok', 'engine_ok', 'image_ok', 'image_absent'])]);
    expect(findings.find(({ code: each }) => each === 'image_absent')?.data).toEqual({ spec_id: 'absent', image: 'skep.invalid/nobody/has-this:1' });
    expect(existsSync(`${dataDir}/none`)).toBe(false);
  });

  test("pull reports existing images and images that can't be pulled", async () => {
    expect(await skep(['pull', 'here'], specs)).toMatchObject({ code: 0, stdout: expect.stringMatching(/^here: skep-test\/tiny is there$/m) });
    expect(await skep(['pull'], specs.slice(0, 2))).toMatchObject({ code: 1, stdout: expect.stringMatching(/^absent: .*could not be pulled/m) });
    const pulled = await skep(['pull', '--json'], specs.slice(0, 2));
    expect([pulled.code, JSON.parse(pulled.stdout)]).toEqual([1, [
      { spec_id: 'here', image: images.tiny, reason: null },
      { spec_id: 'absent', image: 'skep.invalid/nobody/has-this:1', reason: expect.objectContaining({ code: expect.stringMatching(/^image_/) }) },
    ]]);
    expect(pulled.stderr).toMatch(/^absent: .*could not be pulled/m);
    expect(await skep(['pull', 'nobody'], specs)).toMatchObject({ code: 1, stderr: expect.stringContaining('The specs are here, absent, odd') });
  });
});

describeWithDocker('An embedded Skep with Docker', () => {
  test('removes its containers and networks on close if it has no data folder', async () => {
    const skep = await createSkep({ runtime: { kind: 'docker' }, specs: [{ id: 'tiny', image: images.tiny, command: ['sleep', '100000'] }] });
    const docker = new Docker();
    let deployment = '';
    try {
      const { id } = await skep.sandboxes.start('me', { specId: null });
      await until(() => skep.sandboxes.get('me', id), ({ status }) => status === 'RUNNING', patience);
      const [container] = await docker.listContainers({ filters: { label: [`skep.sandbox=${id}`] } });
      deployment = container?.Labels['skep.deployment'] ?? '';
      expect(await onEngine(deployment)).toMatchObject({ containers: [expect.any(String)] });
    } finally {
      await skep.close();
    }
    expect(await onEngine(deployment)).toEqual({ containers: [], networks: [], volumes: [] });
  });
});

describe('Without a Docker engine', () => {
  test('a configured engine that does not answer is reported by the server and by doctor', async () => {
    const dataDir = await temporaryFolder();
    try {
      const server = await startServer({ dataDir, env: { SKEP_SANDBOX_RUNTIME: 'auto', SKEP_DOCKER_HOST: nowhere } });
      expect(server.output().stdout).toMatch(/runtime +docker +NOT OK .*SKEP_DOCKER_HOST/);
      expect(await server.stop()).toBe(0);
      const { code, stdout } = await runSkep(['doctor'], { SKEP_DATA_DIR: dataDir, SKEP_PORT: '0', SKEP_DOCKER_HOST: nowhere });
      expect([code, stdout]).toEqual([1, expect.stringMatching(/NOT OK +runtime docker: .*start Docker.*address: (?:unix|tcp):/)]);
    } finally {
      await removeFolder(dataDir);
    }
  });

  test('serve refuses specs without an image', async () => {
    const dataDir = await temporaryFolder();
    try {
        await writeFile(`${dataDir}/skep.yaml`, 'specs: [{ id: a, command: [x] }]');
      const { code, stderr } = await runSkep(['serve'], { SKEP_CONFIG: `${dataDir}/skep.yaml`, SKEP_DATA_DIR: `${dataDir}/none`, SKEP_SANDBOX_RUNTIME: 'docker' });
      expect([code, stderr]).toEqual([1, expect.stringMatching(/spec a, image \(.*skep\.yaml:1\): is missing, and Docker needs it/)]);
    } finally {
      await removeFolder(dataDir);
    }
  });
});
