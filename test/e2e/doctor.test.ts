import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createSqliteStore } from '../../src/adapters/store/sqlite/index.ts';
import { migrate } from '../../src/adapters/store/sqlite/migrate.ts';
import { migrations } from '../../src/adapters/store/sqlite/migrations.ts';
import { removeFolder, runSkep, temporaryFolder } from '../support/server.ts';

let folder: string;
beforeAll(async () => void (folder = await temporaryFolder()));
afterAll(async () => await removeFolder(folder));

describe('skep doctor', () => {
  test('prints the configuration and the state of each part, without the key', async () => {
    const { code, stdout } = await runSkep(['doctor'], { SKEP_DATA_DIR: join(folder, 'doctor'), SKEP_PORT: '0', SKEP_API_KEY: 'a-static-key-of-mine' });
    expect(stdout).toMatch(/SKEP_PORT +0 +\(environment\)/);
    expect(stdout).toMatch(/SKEP_SHUTDOWN_TIMEOUT +30s\n/);
    expect(stdout).toMatch(/SKEP_AGENT_MEMORY +256MiB\n/);
    expect(stdout).toMatch(/ok +git local: git \d/);
    expect(stdout).toMatch(/ok +store sqlite/);
    expect(stdout).toContain('(set)');
    expect(stdout).not.toContain('a-static-key-of-mine');
    expect(code).toBe(0);
  });

  test('prints the disk usage, and warns if it is over the limit', async () => {
    const dataDir = join(folder, 'disk');
    mkdirSync(join(dataDir, 'sandboxes'), { recursive: true });
    const env = { SKEP_DATA_DIR: dataDir, SKEP_PORT: '0', SKEP_SANDBOX_RUNTIME: 'process' };
    const free = await runSkep(['doctor'], { ...env, SKEP_DISK_USED_PERCENT: '100' });
    expect([free.code, free.stdout]).toEqual([0, expect.stringMatching(/ok +disk: \d+% used, the limit is 100%/)]);
    const full = await runSkep(['doctor'], { ...env, SKEP_DISK_USED_PERCENT: '1' });
    expect([full.code, full.stdout]).toEqual([0, expect.stringMatching(/warning +disk: \d+% used, more than the 1% of SKEP_DISK_USED_PERCENT/)]);
  });

  test('reports another program on the port', async () => {
    const other = createServer((_request, response) => void response.end('{"status":"ok"}')).listen(0, '127.0.0.1');
    await once(other, 'listening');
    const { port } = other.address() as AddressInfo;
    const { code, stdout } = await runSkep(['doctor'], { SKEP_DATA_DIR: join(folder, 'port'), SKEP_PORT: String(port) });
    other.close();
    expect([code, stdout]).toEqual([1, expect.stringMatching(/NOT OK +address \S+: another program uses it; set SKEP_PORT to another port/)]);
  });

  test('changes nothing: it neither upgrades nor creates a data folder', async () => {
    const dataDir = mkdtempSync(join(folder, 'older-'));
    const database = new DatabaseSync(join(dataDir, 'skep.db'));
    migrate(database, migrations.slice(0, 1));
    database.close();
    const before = readFileSync(join(dataDir, 'skep.db'));
    const env = { SKEP_PORT: '0', SKEP_SANDBOX_RUNTIME: 'process' };
    const { code, stdout } = await runSkep(['doctor'], { ...env, SKEP_DATA_DIR: dataDir });
    expect([code, stdout]).toEqual([0, expect.stringMatching(/warning +store sqlite in .*older version \(schema 1.*serve.*upgrades it/)]);
    expect(readdirSync(dataDir)).toEqual(['skep.db']);
    expect(readFileSync(join(dataDir, 'skep.db')).equals(before)).toBe(true);
    await runSkep(['doctor'], { ...env, SKEP_DATA_DIR: join(folder, 'nowhere') });
    expect(readdirSync(folder)).not.toContain('nowhere');
  });

  test('reports a data folder that a server can not use, a lost store, and an engine and a git host that hang, within seconds', async () => {
    const file = join(folder, 'a-file');
    writeFileSync(file, '');
    const lost = mkdtempSync(join(folder, 'lost-'));
    writeFileSync(join(lost, 'deployment.json'), JSON.stringify({ id: 'shop', runtime: 'docker', secret: 'x' }));
    const hanging = createServer(() => {}).listen(0, '127.0.0.1');
    await once(hanging, 'listening');
    const { port } = hanging.address() as AddressInfo;
    const engine = { SKEP_SANDBOX_RUNTIME: 'docker', SKEP_DOCKER_HOST: `tcp://127.0.0.1:${port}` };
    const gitHost = { SKEP_GIT_PROVIDERS: 'github', SKEP_GITHUB_URL: `http://127.0.0.1:${port}` };
    const unusable = await runSkep(['doctor'], { SKEP_PORT: '0', SKEP_SANDBOX_RUNTIME: 'process', SKEP_DATA_DIR: file });
    expect([unusable.code, unusable.stdout]).toEqual([1, expect.stringContaining(`NOT OK  store: The data folder ${file} can't be used`)]);
    const { code, stdout } = await runSkep(['doctor'], { ...engine, ...gitHost, SKEP_PORT: '0', SKEP_DATA_DIR: lost });
    hanging.close();
    expect(stdout).toMatch(/NOT OK +git github: .* did not answer within 5 s/);
    expect([code, stdout]).toEqual([1, expect.stringMatching(/warning skep\.db .* is gone.*\n.*\n.*NOT OK +runtime docker: .* did not answer within 5 s/)]);
    expect(readdirSync(lost)).toEqual(['deployment.json']);
  });

  test('reports a store that the server refuses, because deployment.json has another id or is damaged', async () => {
    const dataDir = mkdtempSync(join(folder, 'other-'));
    await (await createSqliteStore({ dataDir, deploymentId: () => 'dep-1' })).close();
    const env = { SKEP_PORT: '0', SKEP_SANDBOX_RUNTIME: 'process', SKEP_DATA_DIR: dataDir };
    for (const [content, problem] of [['{"id":"dep-2","runtime":"process","secret":"x"}', 'The store belongs to the deployment dep-1, and'], ['{', 'The file .*deployment.json is damaged']]) {
      writeFileSync(join(dataDir, 'deployment.json'), content ?? '');
      const { code, stdout } = await runSkep(['doctor'], env);
      expect([code, stdout]).toEqual([1, expect.stringMatching(`NOT OK  store: ${problem}`)]);
      expect((await runSkep(['serve'], env)).stderr).toMatch(new RegExp(`^skep: ${problem}`));
    }
  });

  test('prints its findings as JSON, with the same exit code', async () => {
    const env = { SKEP_PORT: '0', SKEP_SANDBOX_RUNTIME: 'process', SKEP_DATA_DIR: join(folder, 'json') };
    const fine = await runSkep(['doctor', '--json'], { ...env, SKEP_PROT: '1' });
    expect(fine).toMatchObject({ code: 0, stderr: '' });
    expect(JSON.parse(fine.stdout)).toEqual({
      version: expect.stringMatching(/^\d/), node: expect.stringMatching(/^\d/), platform: process.platform, ok: true,
      findings: [
        { code: 'configuration_warning', state: 'warning', message: expect.stringContaining('SKEP_PROT'), data: { detail: expect.stringContaining('SKEP_PROT') } },
        { code: 'store_absent', state: 'ok', message: expect.any(String), data: { data_dir: env.SKEP_DATA_DIR } },
        { code: 'git_provider_ok', state: 'ok', message: expect.any(String), data: { provider: 'local', detail: expect.any(String) } },
        { code: 'runtime_warning', state: 'warning', message: expect.any(String), data: { runtime: 'process', detail: expect.any(String) } },
        { code: 'runtime_ok', state: 'ok', message: expect.any(String), data: { runtime: 'process', detail: expect.any(String) } },
        { code: 'address_free', state: 'ok', message: expect.any(String), data: { host: '127.0.0.1', port: 0 } },
      ],
    });
    const [empty, damaged] = [mkdtempSync(join(folder, 'no-programs-')), mkdtempSync(join(folder, 'damaged-'))];
    writeFileSync(join(damaged, 'skep.db'), 'no database');
    const config = join(folder, 'secret.json');
    writeFileSync(config, JSON.stringify({ specs: [{ id: 'coder', command: ['x'], secrets: ['A_SECRET_NOT_SET', 'A_SECRET_SET'] }] }));
    const broken = await runSkep(['doctor', '--json'], { ...env, SKEP_DATA_DIR: damaged, SKEP_CONFIG: config, PATH: empty, A_SECRET_SET: 'hush-hush' });
    expect([broken.code, JSON.parse(broken.stdout)]).toMatchObject([1, { ok: false }]);
    const { findings } = JSON.parse(broken.stdout) as { findings: unknown[] };
    expect(findings).toEqual(expect.arrayContaining([
      expect.objectContaining({ code: 'check_failed', data: { part: 'store', reason: 'damaged', detail: expect.any(String) } }),
      expect.objectContaining({ code: 'git_provider_failed', state: 'failed', message: expect.stringMatching(/install git/i) }),
      expect.objectContaining({ code: 'secret_not_set', state: 'failed', data: { spec_id: 'coder', name: 'A_SECRET_NOT_SET', detail: expect.any(String) } }),
      expect.objectContaining({ code: 'secret_ok', state: 'ok', data: { spec_id: 'coder', name: 'A_SECRET_SET' } }),
    ]));
    expect(broken.stdout).not.toContain('hush-hush');
  });

  test('prints configuration errors as JSON', async () => {
    const { code, stdout } = await runSkep(['doctor', '--json'], { SKEP_PORT: 'http', SKEP_API_KEY: 'hush-hush' });
    expect([code, JSON.parse(stdout)]).toMatchObject([1, {
      ok: false, findings: [{ code: 'configuration_invalid', state: 'failed', data: { problems: [{ name: 'SKEP_PORT' }, { name: 'SKEP_API_KEY' }] } }],
    }]);
    expect(stdout).not.toContain('hush');
  });

  test('finds a port of the proxy that another program uses', async () => {
    const other = createServer().listen(0, '127.0.0.1');
    await once(other, 'listening');
    const { port } = other.address() as AddressInfo;
    const env = { SKEP_DATA_DIR: join(folder, 'proxy-port'), SKEP_PORT: '0', SKEP_PROXY_PORT: String(port) };
    const { code, stdout } = await runSkep(['doctor'], env);
    other.close();
    expect(stdout).toContain(`NOT OK  address 127.0.0.1:${port}: another program uses it; set SKEP_PROXY_PORT to another port`);
    expect(code).toBe(1);
  });
});
