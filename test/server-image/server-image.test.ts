import { statSync } from 'node:fs';
import Docker from 'dockerode';
import { GenericContainer, Wait, type StartedTestContainer } from 'testcontainers';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createClient, object, type Client, type Json } from '../support/client.ts';
import { clearEngine } from '../support/deployment.ts';
import { describeWithDocker, images } from '../support/docker.ts';
import { until } from '../support/until.ts';
import { buildServerImage, names } from './build.ts';

const key = 'a-static-key-for-the-server-image';
const socket = '/var/run/docker.sock';
const patience = 120_000;
const config = {
  specs: [{
    id: 'web', image: images.tiny, command: ['sh', '-c', 'mkdir -p www && echo hello > www/index.html && exec httpd -f -p 8000 -h www'],
    ports: [{ name: 'WEB', port: 8000 }], ready: { http: '/index.html', port: 8000, within: '60s' },
  }],
};

const page = async (found: Json): Promise<string> => {
  const [exposed] = found['exposed_urls'] as { url: string }[];
  return await (await fetch(`${exposed?.url}/index.html`, { signal: AbortSignal.timeout(30_000) })).text();
};

describeWithDocker('The server image', () => {
  const docker = new Docker();
  const volume = `skep-test-server-${process.pid}`;
  let gateway: string;
  let container: StartedTestContainer | null = null;
  let deployment: string | null = null;
  let call: Client;

  /** Starts a server in a container with the engine's socket, on the default bridge, and with its data in the volume. */
  async function start(): Promise<StartedTestContainer> {
    const started = await new GenericContainer(names.server)
      .withEnvironment({ SKEP_API_KEY: key, SKEP_CONFIG: '/etc/skep.json', SKEP_DOCKER_PUBLISH_ADDRESS: gateway, SKEP_PROXY_PORT: 'off' })
      .withCopyContentToContainer([{ content: JSON.stringify(config), target: '/etc/skep.json', mode: 0o644 }])
      .withBindMounts([{ source: socket, target: socket }, { source: volume, target: '/var/lib/skep' }])
      // The image's user, with the group of the socket.
      .withUser(`10001:${statSync(socket).gid}`)
      .withDroppedCapabilities('ALL')
      .withSecurityOpt('no-new-privileges')
      .withExposedPorts(3000)
      .withWaitStrategy(Wait.forHealthCheck())
      .withStartupTimeout(patience)
      .start();
    call = createClient(`http://${started.getHost()}:${started.getMappedPort(3000)}`, key);
    return started;
  }

  const sandbox = async (id: unknown): Promise<Json> => object(await call('GET', `/api/v1/sandboxes/${String(id)}`));
  beforeAll(async () => {
    const { IPAM } = await docker.getNetwork('bridge').inspect();
    // A bridge that was never used reports no gateway. The first container creates it.
    gateway = IPAM?.Config?.[0]?.Gateway ?? '172.17.0.1';
    await buildServerImage();
    container = await start();
  }, 400_000);

  afterAll(async () => {
    await container?.stop({ remove: true, removeVolumes: false });
    const mine = { filters: { volume: [volume] } };
    for (const { Id } of await docker.listContainers({ all: true, ...mine })) await docker.getContainer(Id).remove({ force: true });
    await docker.getVolume(volume).remove();
    await clearEngine(deployment);
  });

  test('runs as a user that is not root, and reaches the Docker engine', async () => {
    const ready = await call('GET', '/ready');
    expect(object(ready)).toMatchObject({ status: 'ready', parts: expect.arrayContaining([expect.objectContaining({ part: 'runtime', adapter: 'docker', ok: true })]) });
    expect((await container?.exec(['id', '-u']))?.output.trim()).toBe('10001');
    const { Config } = await docker.getImage(names.server).inspect();
    expect(Config.User).toBe('skep');
    const dashboard = await fetch(`http://${container?.getHost()}:${container?.getMappedPort(3000)}/`);
    expect([dashboard.status, await dashboard.text()]).toEqual([200, expect.stringContaining('<script type="module"')]);
  });

  test('starts a sandbox that is reachable from outside, and that runs on after a restart of the server', async () => {
    const { id } = object(await call('POST', '/api/v1/sandboxes', { sandbox_spec_id: 'web' }));
    const running = await until(() => sandbox(id), ({ status }) => status === 'RUNNING' || status === 'ERROR', patience);
    expect(running['status_detail']).toBeNull();
    expect(await page(running)).toBe('hello\n');

    const [beside] = await docker.listContainers({ filters: { label: [`skep.sandbox=${String(id)}`] } });
    deployment = beside?.Labels['skep.deployment'] ?? null;
    expect(deployment).not.toBeNull();

    const first = docker.getContainer(container?.getId() ?? '');
    await first.stop({ t: 60 });
    expect((await first.inspect()).State).toMatchObject({ Running: false, ExitCode: 0, OOMKilled: false });
    expect(await page(running)).toBe('hello\n');

    container = await start();
    const again = await until(() => sandbox(id), ({ status }) => status === 'RUNNING', patience);
    expect(again).toMatchObject({ exposed_urls: running['exposed_urls'], session_api_key: running['session_api_key'] });
    expect(await page(again)).toBe('hello\n');
    expect((await call('DELETE', `/api/v1/sandboxes/${String(id)}`)).status).toBe(204);
    await expect(page(again)).rejects.toThrow(TypeError);
  });

  test('contains the skep executable', async () => {
    const made = await container?.exec(['skep', 'keys', 'create', 'ci']);
    expect(made?.exitCode).toBe(0);
    const created = await createClient(`http://${container?.getHost()}:${container?.getMappedPort(3000)}`, made?.stdout.trim() ?? '')('GET', '/api/v1/sandbox-specs/search');
    expect(created.status).toBe(200);
  });
});
