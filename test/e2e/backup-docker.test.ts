import { join } from 'node:path';
import Docker from 'dockerode';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { quarantineOwner } from '../../src/domain/quarantine.ts';
import { createClient, object, type Client, type Json } from '../support/client.ts';
import { clearEngine, deploymentOf } from '../support/deployment.ts';
import { describeWithDocker, images } from '../support/docker.ts';
import { removeFolder, runSkep, startServer, temporaryFolder, type Server } from '../support/server.ts';
import { until } from '../support/until.ts';

const key = 'a-static-key-for-docker-tests';
const sandboxes = '/api/v1/sandboxes';
const counts = { image: images.tiny, command: ['sh', '-c', 'echo started >> starts; exec sleep 100000'] };
const config = { specs: [{ id: 'plain', ...counts }, { id: 'pooled', ...counts, pool: { size: 1 } }] };

describeWithDocker('A restored backup with Docker', () => {
  let dataDir: string;
  let env: Record<string, string>;
  let server: Server;
  let call: Client;

  async function start(): Promise<void> {
    server = await startServer({ dataDir, config, env });
    call = createClient(server.url, key);
  }

  beforeAll(async () => {
    dataDir = await temporaryFolder();
    env = { SKEP_API_KEY: key, SKEP_SANDBOX_RUNTIME: 'docker', SKEP_DATA_DIR: dataDir };
    await start();
  });
  afterAll(async () => {
    await server.stop();
    await clearEngine(deploymentOf(dataDir));
    await removeFolder(dataDir);
  });

  const running = async (id: unknown): Promise<Json> =>
    await until(async () => object(await call('GET', `${sandboxes}/${String(id)}`)), ({ status }) => status === 'RUNNING');
  const started = async (spec: string): Promise<Json> => await running(object(await call('POST', sandboxes, { sandbox_spec_id: spec }))['id']);
  /** Returns the instance ids of all containers. */
  const instances = async (): Promise<string[]> => {
    const found = await new Docker().listContainers({ all: true, filters: { label: [`skep.deployment=${deploymentOf(dataDir)}`] } });
    return found.map(({ Labels }) => Labels['skep.sandbox'] ?? '');
  };
  const starts = async (instanceId: string): Promise<string> => {
    const container = new Docker().getContainer(`skep_${deploymentOf(dataDir)}_${instanceId}`);
    const exec = await container.exec({ Cmd: ['cat', 'starts'], AttachStdout: true, Tty: true });
    const chunks: Buffer[] = [];
    for await (const chunk of await exec.start({ Tty: true })) chunks.push(Buffer.from(chunk));
    return Buffer.concat(chunks).toString().replaceAll('\r', '');
  };

  test('quarantines unknown sandboxes, and does not reuse a pool member that was claimed since', async () => {
    const [member = ''] = await until(instances, ({ length }) => length === 1);
    await until(() => server.output().stderr, (text) => new RegExp(`${member}.*RUNNING`).test(text));
    const backup = join(dataDir, 'backup.db');
    expect(await runSkep(['backup', backup], env)).toMatchObject({ code: 0 });
    const claimed = await started('pooled');
    expect(claimed).toMatchObject({ status_reason: { code: 'claimed_from_pool', instance_id: member } });
    const later = await started('plain');
    const laterId = String(later['id']);
    await server.stop();
    expect(await runSkep(['restore', backup], env)).toMatchObject({ code: 0 });

    await start();
    const fresh = await started('pooled');
    expect(await instances()).toContain(String(fresh['id']));
    for (const id of [laterId, member]) {
      await until(() => server.output().stderr, (text) => new RegExp(`${id}.*without a record in quarantine`).test(text));
    }
    const admin = createClient(server.url, (await runSkep(['keys', 'create', 'admin', '--access', 'admin'], env)).stdout.trim());
    for (const [id, known] of [[laterId, { spec_id: 'plain', owner_id: 'default' }], [member, { spec_id: 'pooled', owner_id: null }]] as const) {
      const found = await until(async () => object(await admin('GET', `${sandboxes}/${id}`)), ({ status }) => status === 'PAUSED');
      expect(found).toMatchObject({ created_by_user_id: quarantineOwner, status_reason: { code: 'quarantined', ...known } });
    }

    expect((await admin('POST', `${sandboxes}/${member}/adopt`, {})).status).toBe(422);
    for (const [id, body] of [[laterId, {}], [member, { user_id: 'default' }]] as const) {
      expect(await admin('POST', `${sandboxes}/${id}/adopt`, body)).toMatchObject({ status: 200, body: { status: 'PAUSED', pause_kind: 'stop' } });
      await call('POST', `${sandboxes}/${id}/resume`);
      const resumed = await running(id);
      expect(resumed['session_api_key']).toBe((id === member ? claimed : later)['session_api_key']);
      expect(await starts(id)).toBe('started\nstarted\n');
    }
  });
});
