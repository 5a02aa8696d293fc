import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readConfig } from '../../src/composition/config/read-config.ts';
import { ConfigError } from '../../src/composition/config/config-error.ts';
import { ensureDeploymentFile, noteRuntime, readDeploymentFile } from '../../src/composition/config/deployment-file.ts';
import { chooseRuntime } from '../../src/composition/config/runtime-choice.ts';
import { createSqliteStore } from '../../src/adapters/store/sqlite/index.ts';
import { unlimited } from '../../src/domain/sandbox-limits.ts';
import type { Sandbox } from '../../src/domain/sandbox.ts';
import { someSandbox } from '../contracts/records.ts';
import { refusalOf } from './config-files.ts';
import { removeFolder, temporaryFolder } from '../support/server.ts';

let folder: string;
beforeAll(async () => void (folder = await temporaryFolder()));
afterAll(async () => await removeFolder(folder));

const withSpecs = (specs: unknown): string => {
  const path = join(folder, 'skep.json');
  writeFileSync(path, JSON.stringify({ specs }));
  return path;
};

interface Situation {
  readonly env?: Record<string, string>;
  readonly inUse?: string | null;
  readonly answers?: boolean;
  readonly configured?: boolean;
}

const choose = async ({ env = {}, inUse = null, answers = false, configured = false }: Situation) =>
  await chooseRuntime(readConfig(env), {
    inUse: async () => inUse,
    isEngineConfigured: async () => configured,
    askEngine: async () => ({ ok: answers, detail: answers ? 'engine 27' : 'connect ENOENT /var/run/docker.sock' }),
  });

describe('the runtime of a server', () => {
  test.each<[string, Situation, string]>([
    ['auto takes Docker where it answers', { answers: true }, 'docker'],
    ['auto takes processes where it does not', {}, 'process'],
    ['auto takes Docker where an engine is configured, whether it answers or not', { configured: true }, 'docker'],
    ['auto takes Docker where its address is set, whether it answers or not', { env: { SKEP_DOCKER_HOST: 'tcp://127.0.0.1:1', SKEP_HOST: '0.0.0.0' } }, 'docker'],
    ['auto takes Docker on any address', { answers: true, env: { SKEP_HOST: '0.0.0.0' } }, 'docker'],
    ['auto stays with Docker while it has sandboxes there, also when the engine is down', { inUse: 'docker' }, 'docker'],
    ['auto stays with processes while there are some, also when an engine came', { inUse: 'process', answers: true }, 'process'],
    ['docker is docker', { env: { SKEP_SANDBOX_RUNTIME: 'docker' } }, 'docker'],
    ['process is process', { env: { SKEP_SANDBOX_RUNTIME: 'process', SKEP_HOST: '0.0.0.0' }, answers: true }, 'process'],
  ])('%s', async (_, situation, kind) => {
    const { options, warnings } = await choose(situation);
    expect(options.kind).toBe(kind);
    expect(warnings.some((text) => text.includes('without isolation'))).toBe(kind === 'process');
  });

  test.each<[Situation]>([
    [{ env: { SKEP_HOST: '0.0.0.0' } }],
    [{ env: { SKEP_HOST: 'skep.example.com' }, inUse: 'process', answers: true }],
  ])('auto takes no processes where other machines reach the server: %j', async (situation) => {
    await expect(choose(situation)).rejects.toThrow(/SKEP_SANDBOX_RUNTIME: is auto.*not a loopback address/);
  });

  test.each([
    { image: 'debian' }, { image: 'debian', isolation: { user: '1000', network: 'none' } }, { image: 'debian', docker: { oci_runtime: 'runsc' } },
  ])('auto never runs a spec without what it asks for: %j', async (asked) => {
    const { options } = await choose({ env: { SKEP_CONFIG: withSpecs([{ id: 'a', command: ['x'], ...asked }]) } });
    expect(options.kind).toBe('docker');
  });

  test('auto never runs a spec that asks for a container as processes, not even while there are some', async () => {
    const asked = { SKEP_CONFIG: withSpecs([{ id: 'a', image: 'debian' }]) };
    await expect(choose({ inUse: 'process', answers: true, env: asked }))
      .rejects.toThrow(/SKEP_SANDBOX_RUNTIME: is auto.*the data folder has its sandboxes.*spec a asks for an image or isolation.*set it to docker, or to process/);
    const { options } = await choose({ inUse: 'process', env: { ...asked, SKEP_SANDBOX_RUNTIME: 'process' } });
    expect(options.kind).toBe('process');
  });

  test.each([['records', true], ['unnoted', false]])('is what the data folder says, in which MISSING sandboxes do not count: %s', async (name, isNoted) => {
    const dataDir = join(folder, name);
    const insert = async (sandbox: Sandbox): Promise<void> => {
      const store = await createSqliteStore({ dataDir });
      await store.sandboxes.insert(sandbox, unlimited);
      await store.close();
    };
    const chosen = async () => (await chooseRuntime(readConfig({ SKEP_DATA_DIR: dataDir, SKEP_DOCKER_HOST: 'tcp://127.0.0.1:1' }))).options.kind;
    if (isNoted) noteRuntime(dataDir, 'process');
    await insert(someSandbox('sb-lost', { status: 'MISSING' }));
    expect(await chosen()).toBe('docker');
    await insert(someSandbox('sb-there'));
    expect(await chosen()).toBe(isNoted ? 'process' : 'docker');
    mkdirSync(join(dataDir, 'sandboxes'));
    expect(await chosen()).toBe('process');
  });

  test('auto refuses a spec that asks for isolation and names no image', async () => {
    const env = { SKEP_CONFIG: withSpecs([{ id: 'a', command: ['x'], isolation: { network: 'isolated' } }]) };
    await expect(choose({ env })).rejects.toThrow(/spec a, image: is missing/);
  });

  test('auto says why Docker was not chosen', async () => {
    expect((await choose({})).warnings).toEqual([expect.stringMatching(/without isolation.*no Docker engine is configured, and none answers: connect ENOENT/)]);
    expect((await choose({ inUse: 'process' })).warnings).toEqual([expect.stringMatching(/the data folder has its sandboxes/)]);
  });

  test.each(['tcp://', 'ftp://engine', 'ssh://'])('an address of an engine that is none is refused: %s', (address) => {
    expect(refusalOf({ SKEP_DOCKER_HOST: address }).problems).toMatchObject([{ name: 'SKEP_DOCKER_HOST', problem: expect.stringContaining('not the address of an engine') }]);
  });

  test.each(['unix:///var/run/docker.sock', 'tcp://[::1]:2376', 'build:2375', 'ssh://user@build-7'])('an address of an engine is taken: %s', (address) => {
    expect(readConfig({ SKEP_DOCKER_HOST: address }).dockerHost).toBe(address);
  });

  test('says what becomes of sandboxes that the chosen runtime does not see', async () => {
    const { warnings } = await choose({ env: { SKEP_SANDBOX_RUNTIME: 'docker' }, inUse: 'process' });
    expect(warnings).toEqual([expect.stringMatching(/sandboxes of the runtime process.*MISSING.*resumed when Skep runs with process again/)]);
  });

  test('hands Docker what is configured of it', async () => {
    const { options } = await choose({ env: { SKEP_SANDBOX_RUNTIME: 'docker', SKEP_DOCKER_HOST: 'tcp://build:2376', SKEP_DOCKER_PUBLISH_ADDRESS: '10.0.0.7', SKEP_DOCKER_URL_HOST: 'build' } });
    expect(options).toEqual({ kind: 'docker', host: 'tcp://build:2376', publishAddress: '10.0.0.7', urlHost: 'build' });
  });

  test('refuses specs without an image where auto chose Docker, and says how to have processes instead', async () => {
    const env = { SKEP_CONFIG: withSpecs([{ id: 'a', image: 'debian' }, { id: 'b', command: ['x'] }]) };
    const error: unknown = await choose({ env, answers: true }).catch((error: unknown) => error);
    expect(error).toBeInstanceOf(ConfigError);
    expect((error as ConfigError).problems).toEqual([{ name: 'spec b, image', problem: expect.stringMatching(/is missing.*set it to process/), form: 'the name of an image, for example node:26' }]);
  });

  test('refuses specs with less memory than Docker takes where auto chose Docker, and no other', async () => {
    const specs = [{ id: 'a', image: 'debian', resources: { memory: '6MiB' } }, { id: 'b', image: 'debian', resources: { memory: '6MB' } }];
    const error: unknown = await choose({ env: { SKEP_CONFIG: withSpecs(specs) }, answers: true }).catch((error: unknown) => error);
    expect(error).toBeInstanceOf(ConfigError);
    expect((error as ConfigError).problems).toEqual([{
      name: 'spec b, resources.memory', problem: expect.stringMatching(/is less than 6MiB.*set it to process/), form: expect.stringContaining('a size'),
    }]);
    const processes = await choose({ env: { SKEP_CONFIG: withSpecs([{ id: 'b', resources: { memory: '1KiB' } }]), SKEP_SANDBOX_RUNTIME: 'process' } });
    expect(processes.options.kind).toBe('process');
  });
});

describe('the file of the deployment', () => {
  test('is made once, and stays the same when the runtime is noted', () => {
    const dataDir = join(folder, 'deployment');
    expect(readDeploymentFile(dataDir)).toBeNull();
    const { id, runtime, secret } = ensureDeploymentFile(dataDir);
    expect(id).toMatch(/^[a-z0-9][a-z0-9-]{0,62}$/);
    expect(runtime).toBeNull();
    expect(ensureDeploymentFile(dataDir)).toEqual({ id, runtime: null, secret });
    noteRuntime(dataDir, 'docker');
    noteRuntime(dataDir, 'docker');
    expect(readDeploymentFile(dataDir)).toEqual({ id, runtime: 'docker', secret });
    expect(ensureDeploymentFile(join(folder, 'other')).id).not.toBe(id);
  });

  test('is refused where it is damaged, since a new name would make every sandbox a stranger', () => {
    const dataDir = join(folder, 'damaged');
    ensureDeploymentFile(dataDir);
    writeFileSync(join(dataDir, 'deployment.json'), '{"id":');
    expect(() => readDeploymentFile(dataDir)).toThrow(/deployment\.json is damaged/);
    expect(() => ensureDeploymentFile(dataDir)).toThrow('damaged');
  });

  test('says what to do where it can not be read', () => {
    const dataDir = join(folder, 'unreadable');
    mkdirSync(join(dataDir, 'deployment.json'), { recursive: true });
    expect(() => readDeploymentFile(dataDir)).toThrow(/deployment\.json can't be read \(EISDIR\)\. It must be a file/);
  });
});
