import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { loadConfig } from '../../src/composition/config/load.ts';
import { ConfigError } from '../../src/composition/config/problem.ts';
import { parseDuration, parseSize } from '../../src/composition/config/quantities.ts';
import { removeFolder, temporaryFolder } from '../support/server.ts';

let folder: string;
beforeAll(async () => void (folder = await temporaryFolder()));
afterAll(async () => await removeFolder(folder));

function file(text: string): string {
  const path = join(folder, `skep-${text.length}.yaml`);
  writeFileSync(path, text);
  return path;
}

function problemsOf(env: Record<string, string>): readonly { readonly name: string; readonly problem: string; readonly form: string }[] {
  try {
    loadConfig(env);
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
  throw new Error('the configuration was taken');
}

describe('the configuration', () => {
  test('has the defaults of the design', () => {
    expect(loadConfig({})).toMatchObject({
      host: '127.0.0.1', port: 3000, product: 'skep', gitProviders: ['local'], sandboxRuntime: 'auto', logLevel: 'info',
      specs: null, limits: { runningPerOwner: null, running: null, requestsPerMinute: null }, warnings: [],
    });
    expect(loadConfig({}).dataDir).toMatch(/skep$/);
  });

  test('takes the environment before the file, and the file before the defaults', () => {
    const path = file('port: 4000\nhost: "::1"\nproduct: bees\n');
    expect(loadConfig({ SKEP_CONFIG: path, SKEP_PORT: '5000' })).toMatchObject({ port: 5000, host: '::1', product: 'bees' });
  });

  test('takes the example of the documentation', () => {
    const path = file(`
specs:
  - id: node
    description: Node 26 with git
    image: node:26
    command: [sh, -c, "exec sleep infinity"]
    working_dir: /workspace
    initial_env: { CI: "1" }
    session_key_env: SESSION_API_KEY
    ports: [{ name: AGENT_SERVER, port: 8000 }]
    ready: { http: /health, port: 8000, within: 60s }
    resources: { cpus: 2, memory: 2GiB, pids: 512 }
    rest: { freeze_after: 15m, stop_after: 2h, delete_after: 10d }
    pool: { size: 2 }
limits: { running_per_owner: 5, running: 50 }
`);
    const { specs, limits, warnings } = loadConfig({ SKEP_CONFIG: path });
    expect(specs).toEqual([
      {
        id: 'node', description: 'Node 26 with git', image: 'node:26', command: ['sh', '-c', 'exec sleep infinity'], workingDir: '/workspace',
        initialEnv: { CI: '1' }, sessionKeyEnv: 'SESSION_API_KEY', ports: [{ name: 'AGENT_SERVER', port: 8000 }],
        ready: { probe: { kind: 'http', port: 8000, path: '/health' }, withinMs: 60_000 },
        resources: { cpus: 2, memoryBytes: 2 ** 31, pids: 512 },
        rest: { freezeAfterMs: 900_000, stopAfterMs: 7_200_000, deleteAfterMs: 864_000_000 },
      },
    ]);
    expect(limits).toEqual({ runningPerOwner: 5, running: 50, requestsPerMinute: null });
    expect(warnings).toEqual([expect.stringContaining('pool')]);
  });

  test('lists every mistake at once, each with its name, the form and an example', () => {
    const path = file('limits: { running: -1 }\nspecs: [{ id: "Not Good" }, { id: b, colour: red }]\napi_key: in-the-file-0123456789\nprot: 1\n');
    const problems = problemsOf({ SKEP_CONFIG: path, SKEP_PORT: 'eighty', SKEP_API_KEY: 'short', SKEP_GIT_PROVIDERS: 'local,svn', SKEP_LOCAL_GIT_ROOT: '/no/such/folder', SKEP_LOG_LEVEL: 'loud' });
    expect(problems.map(({ name }) => name).toSorted()).toEqual([
      'SKEP_API_KEY', 'SKEP_GIT_PROVIDERS', 'SKEP_LOCAL_GIT_ROOT', 'SKEP_LOG_LEVEL', 'SKEP_PORT',
      'api_key in the file', 'limits.running in the file', 'prot in the file', 'specs[0].id in the file', 'specs[1] in the file',
    ]);
    for (const { problem, form } of problems) {
      expect(problem).not.toBe('');
      expect(form).toMatch(/for example|one of|, or |debug/);
    }
  });

  test('never shows the value of a secret', () => {
    const text = JSON.stringify(problemsOf({ SKEP_API_KEY: 'too-short-hush' }));
    expect(text).not.toContain('hush');
  });

  test.each([
    ['- a list\n', 'has no mapping'],
    ['a: [1\n', 'is not valid YAML'],
  ])('refuses the file %j', (text, problem) => {
    expect(problemsOf({ SKEP_CONFIG: file(text) })).toMatchObject([{ name: 'SKEP_CONFIG', problem: expect.stringContaining(problem) }]);
  });

  test.each(['http://u:p@skep.example.com', 'https://skep.example.com/?a', 'https://skep.example.com/#a', 'ftp://skep.example.com', 'skep'])('refuses %j as the public URL', (url) => {
    expect(problemsOf({ SKEP_PUBLIC_URL: url })).toMatchObject([{ name: 'SKEP_PUBLIC_URL' }]);
  });

  test('refuses a file that is not there', () => {
    expect(problemsOf({ SKEP_CONFIG: join(folder, 'none.yaml') })).toMatchObject([{ name: 'SKEP_CONFIG', problem: expect.stringContaining('ENOENT') }]);
  });

  test('warns of a variable that it does not know, and not of those of a sandbox', () => {
    expect(loadConfig({ SKEP_PROT: '1', SKEP_PORT_8000: '1', SKEP_SANDBOX_ID: 'x' }).warnings).toEqual([expect.stringContaining('SKEP_PROT')]);
  });
});

describe('quantities', () => {
  test.each([['250ms', 250], ['60s', 60_000], ['1.5m', 90_000], ['2h', 7_200_000], ['10d', 864_000_000], ['', null], ['5', null], ['-5s', null], ['5 weeks', null], ['0s', null]])('duration %j', (text, ms) => {
    expect(parseDuration(text)).toBe(ms);
  });

  test.each([['512MiB', 2 ** 29], ['2GiB', 2 ** 31], ['1GB', 1e9], ['1', null], ['GiB', null], ['1e3B', null], ['constructor', null], ['1constructor', null]])('size %j', (text, bytes) => {
    expect(parseSize(text)).toBe(bytes);
  });
});
