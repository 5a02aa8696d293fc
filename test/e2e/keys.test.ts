import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { createClient, items, type Json, object } from '../support/client.ts';
import { folderForServers, runSkep, startServer } from '../support/server.ts';
import { until } from '../support/until.ts';

const folder = folderForServers();

describe('API keys', () => {
  test('are created, listed and revoked while the server runs, with read access and separate users', async () => {
    const server = await startServer({ dataDir: join(folder, 'keys') });
    const env = { SKEP_DATA_DIR: server.dataDir };
    const create = async (...args: string[]) => {
      const { code, stdout, stderr } = await runSkep(['keys', 'create', ...args], env);
      expect([code, stderr]).toEqual([0, expect.any(String)]);
      return createClient(server.url, stdout.trim());
    };
    try {
      const [full, read, other] = [await create('full'), await create('look', '--access', 'read'), await create('other', '--user', 'else', '--expires', '1d')];
      const { id } = object(await full('POST', '/api/v1/sandboxes'));
      expect((await read('GET', `/api/v1/sandboxes/${String(id)}`)).status).toBe(200);
      expect((await read('DELETE', `/api/v1/sandboxes/${String(id)}`)).status).toBe(403);
      const path = `/api/v1/sandboxes/${String(id)}`;
      const running = await until(async () => object(await full('GET', path)), ({ status }) => status === 'RUNNING');
      expect(running['session_api_key']).toEqual(expect.any(String));
      expect(object(await read('GET', path))['session_api_key']).toBeNull();
      expect(items(await read('GET', '/api/v1/sandboxes/search'))[0]?.['session_api_key']).toBeNull();
      expect((await other('GET', `/api/v1/sandboxes/${String(id)}`)).status).toBe(404);
      expect((await other('DELETE', `/api/v1/sandboxes/${String(id)}`)).status).toBe(404);
      const [admin, narrow] = [await create('root', '--user', 'root', '--access', 'admin'), await create('narrow', '--user', 'narrow', '--repositories', 'acme/*, group/**')];
      expect(object(await admin('GET', path))).toMatchObject({ created_by_user_id: 'default' });
      expect(object(await narrow('GET', '/api/v1/me'))['repositories']).toEqual(['acme/*', 'group/**']);
      expect((await runSkep(['keys', 'create', 'odd', '--user', 'odd', '--repositories', '/acme'], env)).code).toBe(1);

      const { stdout } = await runSkep(['keys', 'list'], env);
      expect(stdout).toMatch(/narrow .*acme\/\*,group\/\*\*.*valid/);
      expect(stdout).toMatch(/full .*default.*valid[\s\S]*look .*read.*valid[\s\S]*other .*else.*valid/);
      const listed = JSON.parse((await runSkep(['keys', 'list', '--json'], env)).stdout) as { items: Json[] };
      expect(listed.items).toContainEqual(expect.objectContaining({ name: 'look', access: 'read', state: 'valid' }));
      // The same keys as in the API, except for `is_own`.
      expect(listed.items).toEqual(items(await admin('GET', '/api/v1/keys')).map((one) => ({ ...one, is_own: false })));
      const revoke = async (key: string): Promise<unknown> => {
        const { code, stdout: printed } = await runSkep(['keys', 'revoke', key, '--json'], env);
        return { code, ...(JSON.parse(printed) as object) };
      };
      const made = JSON.parse((await runSkep(['keys', 'create', 'script', '--json'], env)).stdout) as Record<string, string>;
      expect(made).toMatchObject({ id: expect.any(String), name: 'script', user_id: 'default', repositories: null, expires_at: null, key: expect.stringMatching(/^skep_/) });
      expect((await createClient(server.url, made['key'] ?? '')('GET', '/api/v1/me')).status).toBe(200);
      expect(await revoke(made['id'] ?? '')).toEqual({ code: 0, name_or_id: made['id'], revoked: true });
      expect(await revoke('script')).toEqual({ code: 1, name_or_id: 'script', revoked: false });
      const health = await runSkep(['health', '--json'], { ...env, SKEP_PORT: new URL(server.url).port });
      expect([health.code, JSON.parse(health.stdout)]).toEqual([0, { url: `${server.url}/health`, ok: true, status: 200 }]);

      expect((await runSkep(['keys', 'revoke', 'full'], env)).code).toBe(0);
      expect((await full('GET', '/api/v1/sandboxes/search')).status).toBe(401);
      expect((await runSkep(['keys', 'create', 'look'], env)).code).toBe(1);
      expect((await read('GET', '/api/v1/sandboxes/search')).status).toBe(200);
    } finally {
      await server.stop();
    }
  });
});

test('SKEP_API_KEY with a key of the store is refused once that key is revoked', async () => {
  const dataDir = join(folder, 'static');
  const made = (await runSkep(['keys', 'create', 'old'], { SKEP_DATA_DIR: dataDir })).stdout.trim();
  const server = await startServer({ dataDir, env: { SKEP_API_KEY: made } });
  const call = createClient(server.url, made);
  expect((await call('GET', '/api/v1/sandboxes/search')).status).toBe(200);
  await runSkep(['keys', 'revoke', 'old'], { SKEP_DATA_DIR: dataDir });
  expect((await call('GET', '/api/v1/sandboxes/search')).status).toBe(401);
  await server.stop();
  expect(server.output().stdout).toContain('is the key old of the store.');

  const again = await startServer({ dataDir, env: { SKEP_API_KEY: made } });
  await again.stop();
  expect(again.output().stdout).toMatch(/WARNING: The key in SKEP_API_KEY was revoked or has expired.*\n.*keys create/);
  const { code, stdout } = await runSkep(['doctor'], { SKEP_DATA_DIR: dataDir, SKEP_PORT: '0', SKEP_API_KEY: made });
  expect([code, stdout]).toEqual([1, expect.stringMatching(/NOT OK +the key in SKEP_API_KEY was revoked or has expired/)]);
});

test('keys create says that it created a store, whose keys another server does not know', async () => {
  const dataDir = join(folder, 'fresh');
  const create = async (name: string) => (await runSkep(['keys', 'create', name], { SKEP_DATA_DIR: dataDir })).stderr;
  expect(await create('one')).toMatch(new RegExp(`^There was no store in the data folder ${dataDir}, so a new one was created\\..*SKEP_DATA_DIR`));
  expect(await create('two')).not.toContain('created');
});

test.each([
  ['--repositories', 'acme/*', '--user: Must be another one than default'], ['--expires', '99999d', '--expires: Must be more than 0 and at most 100 years'],
])('keys create %s %s is refused: %s', async (option, value, problem) => {
  const refused = await runSkep(['keys', 'create', 'ci', option, value], { SKEP_DATA_DIR: join(folder, 'limited') });
  expect(refused).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining(`skep: ${problem}`) });
});
