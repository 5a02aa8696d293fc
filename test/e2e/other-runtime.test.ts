import { afterAll, beforeAll, expect, test } from 'vitest';
import { createSqliteStore } from '../../src/adapters/store/sqlite/index.ts';
import { noteRuntime, readDeploymentFile } from '../../src/composition/config/deployment-file.ts';
import { unlimited } from '../../src/domain/admission-limits.ts';
import { someSandbox } from '../contracts/records.ts';
import { type Client, createClient, object } from '../support/client.ts';
import { clearEngine, deploymentOf } from '../support/deployment.ts';
import { describeWithDocker, images } from '../support/docker.ts';
import { removeFolder, type Server, startSandbox, startServer, temporaryFolder } from '../support/server.ts';
import { until } from '../support/until.ts';

const key = 'a-static-key-for-tests';
/** Serves a file that only the first start creates. */
const command = ['sh', '-c', '[ -e www ] || { mkdir www && date +%N > www/index.html; }; exec httpd -f -p 8000 -h www'];
const spec = {
  id: 'web', image: images.tiny, command, ports: [{ name: 'WEB', port: 8000 }], ready: { http: '/index.html', port: 8000, within: '60s' },
};

test('each start records its runtime in the data folder, even with sandboxes of another runtime', async () => {
  const dataDir = await temporaryFolder();
  noteRuntime(dataDir, 'docker');
  const store = await createSqliteStore({ dataDir });
  await store.sandboxes.insert(someSandbox('sb-docker'), unlimited);
  await store.close();
  const server = await startServer({ dataDir });
  try {
    expect(server.output().stderr).toContain('can be resumed when Skep runs with docker again');
    expect(readDeploymentFile(dataDir)?.runtime).toBe('process');
  } finally {
    await server.close();
  }
});

describeWithDocker('A start with the process runtime on a Docker deployment', () => {
  let dataDir: string;
  beforeAll(async () => void (dataDir = await temporaryFolder()));
  afterAll(async () => {
    await clearEngine(deploymentOf(dataDir));
    await removeFolder(dataDir);
  });

  async function visit(runtime: string, use: (call: Client, server: Server) => Promise<void>): Promise<void> {
    const env = { SKEP_API_KEY: key, SKEP_SANDBOX_RUNTIME: runtime, SKEP_PROXY_PORT: 'off' };
    const server = await startServer({ dataDir, config: { specs: [spec] }, env });
    try {
      await use(createClient(server.url, key), server);
    } finally {
      await server.stop();
    }
  }

  test('makes the Docker sandboxes MISSING, and they resume with their files after a start with auto', { timeout: 180_000 }, async () => {
    let path = '';
    let content = '';
    const page = async (call: Client): Promise<string> => {
      const [exposed] = object(await call('GET', path))['exposed_urls'] as { url: string }[];
      return await (await fetch(`${exposed?.url}/index.html`)).text();
    };
    const untilStatus = async (call: Client, wanted: string) =>
      await until(async () => object(await call('GET', path))['status'], (status) => status === wanted, 90_000);

    await visit('auto', async (call) => {
      path = `/api/v1/sandboxes/${(await startSandbox(call)).id}`;
      content = await page(call);
    });
    await visit('process', async (call, server) => {
      expect(server.output().stderr).toContain('they become MISSING, and can be resumed when Skep runs with docker again');
      await untilStatus(call, 'MISSING');
    });
    await visit('auto', async (call, server) => {
      expect(server.output().stdout).toMatch(/runtime +docker +ok/);
      expect(object(await call('GET', path))).toMatchObject({ status: 'MISSING' });
      await call('POST', `${path}/resume`);
      await untilStatus(call, 'RUNNING');
      expect(await page(call)).toBe(content);
    });
  });
});
