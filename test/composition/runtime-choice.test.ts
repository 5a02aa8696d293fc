import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readConfig } from '../../src/composition/config/read-config.ts';
import { ConfigError } from '../../src/composition/config/config-error.ts';
import { ensureDeploymentFile, noteRuntime, readDeploymentFile } from '../../src/composition/config/deployment-file.ts';
import { chooseRuntime } from '../../src/composition/config/runtime-choice.ts';
import { createSqliteStore } from '../../src/adapters/store/sqlite/index.ts';
import { unlimited } from '../../src/domain/admission-limits.ts';
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
    ['auto chooses Docker if it answers', { answers: true }, 'docker'],
    ['auto chooses processes if Docker does not answer', {}, 'process'],
    ['auto chooses Docker if an engine is configured, even if it does not answer', { configured: true }, 'docker'],
    ['auto chooses Docker if its address is set, even if it does not answer', { env: { SKEP_DOCKER_HOST: 'tcp://127.0.0.1:1', SKEP_HOST: '0.0.0.0' } }, 'docker'],
    ['auto chooses Docker on any address of the server', { answers: true, env: { SKEP_HOST: '0.0.0.0' } }, 'docker'],
    ['auto keeps Docker while it has sandboxes, even if the engine does not answer', { inUse: 'docker' }, 'docker'],
    ['auto keeps processes while it has sandboxes, even if an engine answers', { inUse: 'process', answers: true }, 'process'],
    ['docker chooses Docker', { env: { SKEP_SANDBOX_RUNTIME: 'docker' } }, 'docker'],
    ['process chooses processes, even if Docker answers and on any address', { env: { SKEP_SANDBOX_RUNTIME: 'process', SKEP_HOST: '0.0.0.0' }, answers: true }, 'process'],
  ])('%s', async (_, situation, kind) => {
    const { options, warnings } = await choose(situation);
    expect(options.kind).toBe(kind);
    expect(warnings.some((text) => text.includes('without isolation'))).toBe(kind === 'process');
  });

  test.each<[Situation]>([
    [{ env: { SKEP_HOST: '0.0.0.0' } }],
    [{ env: { SKEP_HOST: 'skep.example.com' }, inUse: 'process', answers: true }],
  ])('auto refuses processes if other machines can reach the server: %j', async (situation) => {
    await expect(choose(situation)).rejects.toThrow(/SKEP_SANDBOX_RUNTIME: is auto.*not a loopback address/);
  });

  test.each([
    { image: 'debian' }, { image: 'debian', isolation: { user: '1000', network: 'none' } }, { image: 'debian', docker: { oci_runtime: 'runsc' } },
  ])('auto chooses Docker for a spec that needs a container, even if Docker does not answer: %j', async (asked) => {
    const { options } = await choose({ env: { SKEP_CONFIG: withSpecs([{ id: 'a', command: ['x'], ...asked }]) } });
    expect(options.kind).toBe('docker');
  });

  test('auto refuses a spec that needs a container while there are sandboxes of processes, but process accepts it', async () => {
    const asked = { SKEP_CONFIG: withSpecs([{ id: 'a', image: 'debian' }]) };
    await expect(choose({ inUse: 'process', answers: true, env: asked }))
      .rejects.toThrow(/SKEP_SANDBOX_RUNTIME: is auto.*the data folder has its sandboxes.*spec a asks for an image or isolation.*set it to docker, or to process/);
    const { options } = await choose({ inUse: 'process', env: { ...asked, SKEP_SANDBOX_RUNTIME: 'process' } });
    expect(options.kind).toBe('process');
  });

  test.each([['recorded', true], ['not-recorded', false]])('is the one of the data folder, if that has sandboxes that are not MISSING: %s', async (name, isNoted) => {
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

  test('auto refuses a spec with isolation and without an image', async () => {
    const env = { SKEP_CONFIG: withSpecs([{ id: 'a', command: ['x'], isolation: { network: 'isolated' } }]) };
    await expect(choose({ env })).rejects.toThrow(/spec a, image: is missing/);
  });

  test('auto warns with the reason why Docker was not chosen', async () => {
    expect((await choose({})).warnings).toEqual([expect.stringMatching(/without isolation.*no Docker engine is configured, and none answers: connect ENOENT/)]);
    expect((await choose({ inUse: 'process' })).warnings).toEqual([expect.stringMatching(/the data folder has its sandboxes/)]);
  });

  test.each(['tcp://', 'ftp://engine', 'ssh://'])('is refused with an invalid address of the engine: %s', (address) => {
    expect(refusalOf({ SKEP_DOCKER_HOST: address }).problems).toMatchObject([{ name: 'SKEP_DOCKER_HOST', problem: expect.stringContaining('not the address of an engine') }]);
  });

  test.each(['unix:///var/run/docker.sock', 'tcp://[::1]:2376', 'build:2375', 'ssh://user@build-7'])('is accepted with a valid address of the engine: %s', (address) => {
    expect(readConfig({ SKEP_DOCKER_HOST: address }).dockerHost).toBe(address);
  });

  test('has a warning about sandboxes of another runtime', async () => {
    const { warnings } = await choose({ env: { SKEP_SANDBOX_RUNTIME: 'docker' }, inUse: 'process' });
    expect(warnings).toEqual([expect.stringMatching(/sandboxes of the runtime process.*MISSING.*resumed when Skep runs with process again/)]);
  });

  test('gets the configured options of Docker', async () => {
    const { options } = await choose({ env: { SKEP_SANDBOX_RUNTIME: 'docker', SKEP_DOCKER_HOST: 'tcp://build:2376', SKEP_DOCKER_PUBLISH_ADDRESS: '10.0.0.7', SKEP_DOCKER_URL_HOST: 'build' } });
    expect(options).toEqual({ kind: 'docker', host: 'tcp://build:2376', publishAddress: '10.0.0.7', urlHost: 'build' });
  });

  test('refuses specs without an image if auto chose Docker, with advice for processes', async () => {
    const env = { SKEP_CONFIG: withSpecs([{ id: 'a', image: 'debian' }, { id: 'b', command: ['x'] }]) };
    const error: unknown = await choose({ env, answers: true }).catch((error: unknown) => error);
    expect(error).toBeInstanceOf(ConfigError);
    expect((error as ConfigError).problems).toEqual([{ name: 'spec b, image', problem: expect.stringMatching(/is missing.*set it to process/), form: 'the name of an image, for example node:26' }]);
  });

  test('refuses specs below the minimum memory of Docker if auto chose Docker, but not for processes', async () => {
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

describe('deployment.json', () => {
  test('is created once, and keeps its id and secret when the runtime is recorded', () => {
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

  test('is refused if it is damaged, since with a new id no sandbox would belong to the deployment', () => {
    const dataDir = join(folder, 'damaged');
    ensureDeploymentFile(dataDir);
    writeFileSync(join(dataDir, 'deployment.json'), '{"id":');
    expect(() => readDeploymentFile(dataDir)).toThrow(/deployment\.json is damaged/);
    expect(() => ensureDeploymentFile(dataDir)).toThrow('damaged');
  });

  test('is refused with advice if it cannot be read', () => {
    const dataDir = join(folder, 'unreadable');
    mkdirSync(join(dataDir, 'deployment.json'), { recursive: true });
    expect(() => readDeploymentFile(dataDir)).toThrow(/deployment\.json can't be read \(EISDIR\)\. It must be a file/);
  });
});
