import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, readdirSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { migrate, migrations } from '../../src/adapters/store/sqlite/migrations.ts';
import { removeFolder, runSkep, temporaryFolder } from '../support/server.ts';

let folder: string;
beforeAll(async () => void (folder = await temporaryFolder()));
afterAll(async () => await removeFolder(folder));

describe('doctor', () => {
  test('says what is configured and what answers', async () => {
    const { code, stdout } = await runSkep(['doctor'], { SKEP_DATA_DIR: join(folder, 'doctor'), SKEP_PORT: '0', SKEP_API_KEY: 'a-static-key-of-mine' });
    expect(stdout).toMatch(/SKEP_PORT +0 +\(environment\)/);
    expect(stdout).toMatch(/SKEP_SHUTDOWN_TIMEOUT +30 s\n/);
    expect(stdout).toMatch(/ok +git local: git \d/);
    expect(stdout).toMatch(/ok +store sqlite/);
    expect(stdout).toContain('(set)');
    expect(stdout).not.toContain('a-static-key-of-mine');
    expect(code).toBe(0);
  });

  test('says how full the disk of the sandboxes is, and warns beyond the limit', async () => {
    const dataDir = join(folder, 'disk');
    mkdirSync(join(dataDir, 'sandboxes'), { recursive: true });
    const env = { SKEP_DATA_DIR: dataDir, SKEP_PORT: '0', SKEP_SANDBOX_RUNTIME: 'process' };
    const free = await runSkep(['doctor'], { ...env, SKEP_DISK_USED_PERCENT: '100' });
    expect([free.code, free.stdout]).toEqual([0, expect.stringMatching(/ok +disk: \d+% used, at most 100% may be/)]);
    const full = await runSkep(['doctor'], { ...env, SKEP_DISK_USED_PERCENT: '1' });
    expect([full.code, full.stdout]).toEqual([0, expect.stringMatching(/note +warning: disk: \d+% used, more than the 1% of SKEP_DISK_USED_PERCENT/)]);
  });

  test('reports another program on the port', async () => {
    const other = createServer((_request, response) => void response.end('{"status":"ok"}')).listen(0, '127.0.0.1');
    await once(other, 'listening');
    const { port } = other.address() as AddressInfo;
    const { code, stdout } = await runSkep(['doctor'], { SKEP_DATA_DIR: join(folder, 'doctor3'), SKEP_PORT: String(port) });
    other.close();
    expect([code, stdout]).toEqual([1, expect.stringMatching(/NOT OK +address \S+: another program uses it; set SKEP_PORT to another port/)]);
  });

  test('only looks: a data folder of an older version stays one, and one that is not there is not made', async () => {
    const dataDir = mkdtempSync(join(folder, 'older-'));
    const database = new DatabaseSync(join(dataDir, 'skep.db'));
    migrate(database, migrations.slice(0, 1));
    database.close();
    const before = readFileSync(join(dataDir, 'skep.db'));
    const env = { SKEP_PORT: '0', SKEP_SANDBOX_RUNTIME: 'process' };
    const { code, stdout } = await runSkep(['doctor'], { ...env, SKEP_DATA_DIR: dataDir });
    expect([code, stdout]).toEqual([0, expect.stringMatching(/note +store sqlite in .*older version \(schema 1.*serve.*brings it up to date/)]);
    expect(readdirSync(dataDir)).toEqual(['skep.db']);
    expect(readFileSync(join(dataDir, 'skep.db')).equals(before)).toBe(true);
    await runSkep(['doctor'], { ...env, SKEP_DATA_DIR: join(folder, 'nowhere') });
    expect(readdirSync(folder)).not.toContain('nowhere');
  });

  test('says how to fix what does not work', async () => {
    const empty = mkdtempSync(join(folder, 'no-programs-'));
    const { code, stdout } = await runSkep(['doctor'], { SKEP_DATA_DIR: join(folder, 'doctor2'), SKEP_PORT: '0', PATH: empty });
    expect(stdout).toMatch(/NOT OK +git local: .*install git/i);
    expect(code).toBe(1);
  });
});
