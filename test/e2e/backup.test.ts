import { existsSync, mkdirSync, readdirSync, readFileSync, copyFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { readDeploymentFile } from '../../src/composition/config/deployment-file.ts';
import { quarantineOwner } from '../../src/domain/quarantine.ts';
import { createClient, items, object } from '../support/client.ts';
import { folderForServers, runSkep, startSandbox, startServer } from '../support/server.ts';
import { until } from '../support/until.ts';

const folder = folderForServers();

const key = 'a-static-key-of-an-administrator';
const sandboxes = '/api/v1/sandboxes';

describe('A restored backup', () => {
  test('puts sandboxes that it does not know into quarantine, and an administrator can adopt them', async () => {
    const dataDir = join(folder, 'data');
    const env = { SKEP_API_KEY: key, SKEP_DATA_DIR: dataDir, SKEP_SANDBOX_RUNTIME: 'process' };
    const backup = join(folder, 'skep-backup.db');
    let server = await startServer({ dataDir, env });
    let call = createClient(server.url, key);
    const { id: known } = await startSandbox(call);
    const copied = await runSkep(['backup', backup, '--json'], env);
    expect([copied.code, JSON.parse(copied.stdout)]).toEqual([0, { data_dir: dataDir, file: backup, bytes: statSync(backup).size }]);
    expect(await runSkep(['backup', backup], env)).toMatchObject({ code: 1, stderr: expect.stringContaining('Nothing is overwritten') });
    expect(await runSkep(['backup', '-'], env)).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining('Give the name of a new file') });
    const { id: later } = await startSandbox(call);
    const { id: removed } = await startSandbox(call);
    const file = join(dataDir, 'sandboxes', later, 'workspace', 'work-of-a-day.txt');
    writeFileSync(file, 'a day of work');

    expect(await runSkep(['restore', backup], env)).toMatchObject({ code: 1, stderr: expect.stringContaining('is open in another process') });
    await server.stop();
    const restored = await runSkep(['restore', backup], env);
    expect(restored).toMatchObject({ code: 0, stdout: expect.stringMatching(/is restored[\s\S]*skep\.db\.replaced-[\s\S]*Start the server\.\n[\s\S]*kept for 1 d\.[\s\S]*about 10 seconds after the start[\s\S]*sandboxes adopt/) });

    server = await startServer({ dataDir, env });
    call = createClient(server.url, key);
    await until(() => server.output().stderr.match(/a sandbox without a record in quarantine/g) ?? [], ({ length }) => length === 2);
    const admin = (await runSkep(['keys', 'create', 'admin', '--access', 'admin'], env)).stdout.trim();
    const seen = createClient(server.url, admin);
    const found = await until(async () => items(await seen('GET', `${sandboxes}/search`)), (all) => all.filter(({ status }) => status === 'PAUSED').length === 2);
    const quarantined = found.filter(({ created_by_user_id }) => created_by_user_id === quarantineOwner);
    expect(quarantined.map(({ id }) => String(id)).toSorted()).toEqual([later, removed].toSorted());
    expect(quarantined[0]).toMatchObject({ pause_kind: 'stop', status_reason: { code: 'quarantined', spec_id: 'workspace', owner_id: 'default' } });
    expect(items(await call('GET', `${sandboxes}/search`)).map(({ id, status }) => [id, status])).toEqual([[known, 'RUNNING']]);
    expect(readFileSync(file, 'utf8')).toBe('a day of work');
    expect(await runSkep(['doctor'], env)).toMatchObject({ stdout: expect.stringMatching(new RegExp(`warning +the sandbox ${later} is in quarantine`)) });

    const asAdmin = { ...env, SKEP_PUBLIC_URL: server.url, SKEP_API_KEY: admin };
    expect(await runSkep(['sandboxes', 'adopt', later], { ...asAdmin, SKEP_API_KEY: key })).toMatchObject({ code: 1 });
    expect(await runSkep(['sandboxes', 'adopt', later], asAdmin)).toMatchObject({ code: 0, stdout: expect.stringMatching(new RegExp(`${later} +PAUSED`)) });
    expect(await runSkep(['sandboxes', 'delete', removed], asAdmin)).toMatchObject({ code: 0 });
    expect(existsSync(join(dataDir, 'sandboxes', removed))).toBe(false);
    await call('POST', `${sandboxes}/${later}/resume`);
    const running = await until(async () => object(await call('GET', `${sandboxes}/${later}`)), ({ status }) => status === 'RUNNING');
    const [{ url = '' } = {}] = running['exposed_urls'] as { url?: string }[];
    const headers = { 'X-Session-API-Key': String(running['session_api_key']) };
    expect(await (await fetch(`${url}/work-of-a-day.txt`, { headers })).text()).toBe('a day of work');
    for (const id of [known, later]) await call('DELETE', `${sandboxes}/${id}`);
    expect(await server.stop()).toBe(0);
  });

  test("keeps the id of its deployment in a new folder, and is refused in another deployment's folder", async () => {
    const [dataDir, newDir, otherDir] = ['old', 'new', 'other'].map((name) => join(folder, name)) as [string, string, string];
    const backup = join(folder, 'moved.db');
    await (await startServer({ dataDir })).stop();
    await runSkep(['backup', backup], { SKEP_DATA_DIR: dataDir });
    const restored = await runSkep(['restore', backup, '--json'], { SKEP_DATA_DIR: newDir });
    expect([restored.code, JSON.parse(restored.stdout)]).toEqual([0, {
      data_dir: newDir, replaced: null, deployment_id: readDeploymentFile(dataDir)?.id, keeps_revocations: expect.any(Boolean), quarantine_for_ms: 86_400_000,
    }]);
    expect(readDeploymentFile(newDir)).toMatchObject({ id: readDeploymentFile(dataDir)?.id, runtime: 'process' });
    const restore = async (name: string) => (await runSkep(['restore', backup], { SKEP_DATA_DIR: join(folder, name) })).stdout;
    expect([await restore('newer'), await restore('newer')].map((text) => text.includes('First stop the server that the backup is from'))).toEqual([true, false]);
    const config = join(folder, 'skep.yaml');
    writeFileSync(config, 'quarantine: { keep_for: 20m }\n');
    const { stdout } = await runSkep(['restore', backup], { SKEP_DATA_DIR: join(folder, 'shorter'), SKEP_CONFIG: config });
    expect(stdout).toContain('are stopped and kept for 20 min.');

    await (await startServer({ dataDir: otherDir })).stop();
    const before = readdirSync(otherDir);
    const refused = await runSkep(['restore', backup], { SKEP_DATA_DIR: otherDir });
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining('belongs to the deployment') });
    expect(readdirSync(otherDir)).toEqual(before);
    copyFileSync(join(newDir, 'skep.db'), join(otherDir, 'skep.db'));
    expect(await runSkep(['serve'], { SKEP_DATA_DIR: otherDir, SKEP_SANDBOX_RUNTIME: 'process' }))
      .toMatchObject({ code: 1, stderr: expect.stringContaining('deployment.json') });
  });
});

test("serve refuses a copy of a running server's skep.db without its write-ahead log", async () => {
  const server = await startServer({ dataDir: join(folder, 'running') });
  const copyDir = join(folder, 'copied');
  mkdirSync(copyDir);
  for (const name of ['skep.db', 'deployment.json']) copyFileSync(join(server.dataDir, name), join(copyDir, name));
  await server.stop();
  const refused = await runSkep(['serve'], { SKEP_DATA_DIR: copyDir, SKEP_SANDBOX_RUNTIME: 'process' });
  expect(refused).toMatchObject({ code: 1, stderr: expect.stringMatching(/without its write-ahead log[\s\S]*npm run -s skep -- restore \S+skep\.db\n.*npm run -s skep -- backup/) });
  expect((await runSkep(['restore', join(copyDir, 'skep.db')], { SKEP_DATA_DIR: copyDir })).code).toBe(0);
  await (await startServer({ dataDir: copyDir })).stop();
});
