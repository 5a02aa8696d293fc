import { execFileSync } from 'node:child_process';
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { createClient, items, object } from '../support/client.ts';
import { folderForServers, runSkep, startServer } from '../support/server.ts';
import { until } from '../support/until.ts';

const folder = folderForServers();

const newFolder = (name: string): string => {
  const path = join(folder, name);
  mkdirSync(path, { recursive: true });
  return path;
};

describe('skep serve', () => {
  test('prints its address, its parts, a new key, and curl commands that work', async () => {
    const root = newFolder('repository with space');
    execFileSync('git', ['init', '-q', root]);
    mkdirSync(join(root, '.skep/microagents'), { recursive: true });
    writeFileSync(join(root, '.skep/microagents/hello.md'), '# Hello\n');
    const git = (...args: string[]) => execFileSync('git', ['-C', root, '-c', 'user.name=a', '-c', 'user.email=a@example.com', ...args]);
    git('add', '.');
    git('commit', '-qm', 'Say hello');

    const server = await startServer({ dataDir: join(folder, 'first'), cwd: root });
    try {
      const { stdout } = server.output();
      expect(stdout).toMatch(/store +sqlite +ok/);
      expect(stdout).toMatch(/runtime +process +ok/);
      expect(stdout).toMatch(/git +local +ok/);
      expect(stdout).toMatch(/auth +api-keys +ok/);
      const exported = /^ +(export SKEP_API_KEY=\S+)$/m.exec(stdout)?.[1] ?? 'false';
      const commands = stdout.split('\n').map((line) => line.trim()).filter((line) => line.startsWith('curl '));
      expect(commands.length).toBeGreaterThan(3);
      const answers = commands.map((command) => {
        const [, status, body] = /^HTTP\/1\.1 (\d+)[\s\S]*?\r\n\r\n([\s\S]*)$/.exec(execFileSync('sh', ['-c', `${exported}; ${command} -si`], { encoding: 'utf8' })) ?? [];
        return { status, body: JSON.parse(body ?? '') as unknown };
      });
      expect(answers.map(({ status }) => status)).toEqual(['200', '201', '200', '201']);
      expect(answers[0]?.body).toMatchObject([{ name: 'hello' }]);
    } finally {
      expect(await server.stop()).toBe(0);
    }

    const again = await startServer({ dataDir: join(folder, 'first') });
    expect(again.output().stdout).not.toMatch(/export SKEP_API_KEY=skep_/);
    expect(await again.stop()).toBe(0);
  });

  test('stores no key in plain text, and writes no secret into its log', async () => {
    const dataDir = join(folder, 'plain');
    const key = 'a-static-key-that-nobody-sees';
    const server = await startServer({ dataDir, env: { SKEP_API_KEY: key, SKEP_LOG_LEVEL: 'debug' } });
    const call = createClient(server.url, key);
    await call('POST', '/api/v1/sandboxes');
    const sandbox = await until(async () => items(await call('GET', '/api/v1/sandboxes/search'))[0], (found) => found?.['status'] === 'RUNNING');
    await call('GET', '/api/v1/sandboxes/search?x=1', undefined, { 'X-Session-API-Key': 'another-secret-key-of-somebody' });
    const made = (await runSkep(['keys', 'create', 'ci'], { SKEP_DATA_DIR: dataDir })).stdout.trim();
    await createClient(server.url, made)('GET', '/api/v1/sandboxes/search');
    await call('DELETE', `/api/v1/sandboxes/${String(sandbox?.['id'])}`);
    await server.stop();
    const { stdout, stderr } = server.output();
    for (const secret of [key, made, String(sandbox?.['session_api_key']), 'another-secret-key-of-somebody']) {
      expect(secret.length).toBeGreaterThan(20);
      expect(stdout + stderr).not.toContain(secret);
    }
    const kept = readdirSync(dataDir, { withFileTypes: true }).filter((entry) => entry.isFile()).map(({ name }) => readFileSync(join(dataDir, name), 'latin1')).join('');
    expect(kept).not.toContain(key);
    expect(kept).not.toContain(made);
  });

  test.skipIf(!existsSync('/dev/full'))("serves and ends although its log can't be written", async () => {
    const stderr = openSync('/dev/full', 'w');
    const server = await startServer({ dataDir: join(folder, 'mute'), stderr });
    closeSync(stderr);
    for (let i = 0; i < 2; i++) expect((await fetch(`${server.url}/health`)).status).toBe(200);
    expect(await server.stop()).toBe(0);
  });

  test('lists every configuration error, and starts nothing', async () => {
    const dataDir = join(folder, 'wrong');
    const { code, stderr } = await runSkep(['serve'], { SKEP_PORT: 'http', SKEP_API_KEY: 'hush-hush', SKEP_DATA_DIR: dataDir });
    expect(code).toBe(1);
    expect(stderr).toMatch(/2 mistakes[^]*SKEP_PORT: is "http"[^]*SKEP_API_KEY: is shorter than 16 characters/);
    expect(stderr).not.toContain('hush');
    expect(() => readdirSync(dataDir)).toThrow('ENOENT');
  });

  test('warns about each secret of an agent that is not set, and starts', async () => {
    const agent = { protocol: 'acp', command: ['no-such-agent'], secrets: ['SKEP_TEST_UNSET_ONE', 'SKEP_TEST_UNSET_TWO', 'SKEP_TEST_SET'] };
    const server = await startServer({ dataDir: join(folder, 'unset'), config: { specs: [{ id: 'coder', agent }] }, env: { SKEP_TEST_SET: 'hush-hush' } });
    await until(async () => server.output().stderr, (text) => text.includes('SKEP_TEST_UNSET_TWO'));
    expect(await server.stop()).toBe(0);
    const { stdout, stderr } = server.output();
    const warnings = stderr.split('\n').filter((line) => line.includes('SKEP_TEST_'));
    expect(warnings).toEqual(['ONE', 'TWO'].map((name) => expect.stringMatching(new RegExp(`"warn".*SKEP_TEST_UNSET_${name} is not set: .*spec coder will fail to start`))));
    expect(stdout + stderr).not.toContain('hush-hush');
  });

  test('refuses a data folder that another server uses, and an address in use', async () => {
    const server = await startServer({ dataDir: join(folder, 'taken') });
    try {
      const second = await runSkep(['serve'], { SKEP_PORT: '0', SKEP_DATA_DIR: server.dataDir });
      expect([second.code, second.stderr]).toEqual([1, expect.stringMatching(/^skep: The data folder \S+ is open in another process/)]);
      expect(second.stderr).not.toContain('    at ');
      const third = await runSkep(['serve'], { SKEP_PORT: new URL(server.url).port, SKEP_DATA_DIR: join(folder, 'free') });
      expect([third.code, third.stderr]).toEqual([1, expect.stringContaining('SKEP_PORT')]);
      const { stdout } = await runSkep(['doctor'], { SKEP_PORT: new URL(server.url).port, SKEP_DATA_DIR: join(folder, 'free') });
      expect(stdout).toMatch(/ok +address 127\.0\.0\.1:\d+ in use by a Skep server/);
    } finally {
      await server.stop();
    }
  });

  test('keeps its sandboxes running after SIGTERM and SIGKILL, and finds them again', async () => {
    const dataDir = join(folder, 'outlive');
    // Without the proxy, a sandbox has its own address, which does not need the server.
    const env = { SKEP_API_KEY: 'a-static-key-of-16-or-more', SKEP_PROXY_PORT: 'off' };
    const ask = (url: string) => createClient(url, env.SKEP_API_KEY);
    let server = await startServer({ dataDir, env });
    const { id } = object(await ask(server.url)('POST', '/api/v1/sandboxes'));
    const path = `/api/v1/sandboxes/${String(id)}`;
    const running = await until(async () => object(await ask(server.url)('GET', path)), ({ status }) => status === 'RUNNING');
    const served = (running['exposed_urls'] as { url: string }[])[0]?.url ?? '';
    const headers = { 'X-Session-API-Key': String(running['session_api_key']) };
    for (const end of ['stop', 'kill'] as const) {
      await server[end]();
      expect((await fetch(served, { headers })).status).toBe(200);
      expect((await fetch(served)).status).toBe(401);
      server = await startServer({ dataDir, env });
      expect(object(await ask(server.url)('GET', path))).toMatchObject({ status: 'RUNNING', exposed_urls: running['exposed_urls'] });
    }
    expect((await ask(server.url)('DELETE', path)).status).toBe(204);
    await expect(fetch(served)).rejects.toThrow('fetch failed');
    await server.stop();
  });
});

test("serve refuses a data folder that can't be created", async () => {
  const { code, stderr } = await runSkep(['serve'], { SKEP_DATA_DIR: '/proc/skep/data' });
  expect([code, stderr]).toEqual([1, expect.stringContaining('SKEP_DATA_DIR')]);
});

test('health --json reports that no server answers', async () => {
  const { code, stdout } = await runSkep(['health', '--json'], { SKEP_PORT: '1' });
  expect([code, JSON.parse(stdout)]).toEqual([1, { url: 'http://127.0.0.1:1/health', ok: false, status: null }]);
});

test.each([[['keys', 'create']], [['frobnicate']], [['keys', 'create', 'a', '--expires', 'soon']], [['sandboxes', 'list', '--jsn']]])('%j is refused with an error', async (args) => {
  const { code, stderr } = await runSkep(args);
  expect(code).not.toBe(0);
  expect(stderr).toMatch(/error: /);
});

test('chat --once needs --message', async () => {
  const refused = await runSkep(['chat', '--once'], { SKEP_API_KEY: 'a-key-of-no-server' });
  expect(refused).toEqual({ code: 1, stdout: '', stderr: 'skep: --once needs --message.\n' });
  const empty = await runSkep(['chat', '--once', '--message', ''], { SKEP_API_KEY: 'a-key-of-no-server' });
  expect(empty).toEqual({ code: 1, stdout: '', stderr: 'skep: The message must not be empty.\n' });
});

test('printed commands can be run as they are in a checkout', async () => {
  const help = await runSkep(['restore', '--help']);
  expect(help.stdout).toContain('`npm run -s skep -- backup`');
  const keyless = await runSkep(['sandboxes', 'list'], { SKEP_API_KEY: '' });
  expect([keyless.code, keyless.stderr]).toEqual([1, expect.stringContaining('`npm run -s skep -- keys create <name>`')]);
});
