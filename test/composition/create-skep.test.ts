import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { ConfigError, createSkep, loadConfig, type SkepOptions } from '../../src/composition/index.ts';
import { createInMemoryStore } from '../../src/adapters/store/sqlite/index.ts';
import { createContainer, resolve } from '../../src/composition/create-skep.ts';
import { checkOptions, optionsSchema } from '../../src/composition/skep-options.ts';
import { all, tokens } from '../../src/composition/wiring/tokens.ts';
import { neverAborts } from '../../src/ports/abort-signals.ts';
import { createMemoryAgentProtocol } from '../doubles/memory/agent.ts';
import { createMemoryGitProvider } from '../doubles/memory/index.ts';
import { until } from '../support/until.ts';
import { isAlive } from '../adapters/sandbox-runtime/process/host.ts';

/** Options as a caller without types may pass them. */
const untyped = (options: unknown): SkepOptions => options as SkepOptions;

async function refusalOf(options: unknown): Promise<ConfigError> {
  const error: unknown = await createSkep(untyped(options)).then(async (skep) => await skep.close(), (error: unknown) => error);
  if (error instanceof ConfigError) return error;
  throw new Error('the options were taken', { cause: error });
}

const ownGit = { ...createMemoryGitProvider({ hosts: ['own.example'], repositories: [] }), name: 'own' };

const ownProtocol = { ...createMemoryAgentProtocol({}), name: 'line' };
const lineSpec = (protocol: string) => ({ id: 'a', command: ['sleep', '1'], agent: { protocol, command: ['agent'] } });

describe('an option', () => {
  test.each<[unknown, string, string]>([
    [{ git: [{ provider: 'svn' }] }, 'git[0].provider: is "svn"', 'github, gitlab or local'],
    [{ git: ['github'] }, 'git[0]: is "github" instead of a mapping', 'github, gitlab or local'],
    [{ git: [] }, 'git: is an empty list', 'a list of git providers'],
    [{ git: [{ provider: 'github', tokn: 'x' }] }, 'git[0].tokn: is not a known field; did you mean token?', 'one of '],
    [{ git: [{ provider: 'gitlab', timeoutMs: '30s' }] }, 'git[0].timeoutMs: is "30s" instead of a number', 'milliseconds'],
    [{ runtime: { kind: 'podman' } }, 'runtime.kind: is "podman"', 'docker or process'],
    [{ runtime: 'docker' }, 'runtime: is "docker" instead of a mapping', "{ kind: 'docker' }"],
    [{ runtime: { kind: 'docker', host: 'tcp://' } }, 'runtime.host: is "tcp://", which is not the address of an engine', 'ssh://'],
    [{ runtime: { kind: 'docker', deployment: 'Main' } }, 'runtime.deployment: is "Main", which is not a lower-case DNS label', 'main'],
    [{ store: { kind: 'redis' } }, 'store.kind: is "redis"', 'sqlite or memory'],
    [{ auth: { kind: 'api-keys', staticKey: 'short' } }, 'auth.staticKey: is shorter than 16 characters', 'a key of 16 to 256'],
    [{ auth: { kind: 'api-keys', key: 'a-key-of-16-or-more' } }, 'auth.key: is not a known field', 'one of'],
    [{ runtime: null }, 'runtime: has no value', 'docker or process'],
    [{ runtime: { name: 'x', start() {} } }, 'runtime: has no kind, and is no adapter without inspect, ignores', 'an adapter of your own'],
    [{ runtime: Promise.resolve({}) }, 'runtime: is a promise; did you forget await?', 'docker or process'],
    [{ auth: { description: 'x' } }, 'auth: has no kind, and is no adapter without authenticate', 'api-keys'],
    [{ auth: { staticKey: 'a-key-of-16-or-more' } }, 'auth: has no kind, and is no adapter without authenticate, description', 'api-keys'],
    [{ git: [ownGit, Promise.resolve(ownGit)] }, 'git[1]: is a promise; did you forget await?', 'github, gitlab or local'],
    [{ clock: {} }, 'clock: is an adapter without now, after', 'an object with now, after, or a function that returns one'],
    [{ logger: { warn() {}, error() {} } }, 'logger: is an adapter without debug, info', 'an object with debug, info, warn, error, or a function that returns one'],
    [{ logger: () => {} }, 'logger: is a function that returned nothing', 'an object with debug, info, warn, error, or a function that returns one'],
    [{ logger: async () => console.warn }, 'logger: is a function that returned a function', 'an object with debug'],
    [{ clock: Date.now }, 'clock: is a function that returned a number', 'an object with now, after, or'],
    [{ secrets: (name: string) => process.env[name] }, 'secrets: is a function that returned nothing', 'an object with get, or'],
    [{ git: [{ provider: 'local' }, () => null] }, 'git[1]: is a function that returned nothing', 'an object with listFiles, name,'],
    [{ auth: () => ({ description: 'x' }) }, 'auth: is a function that returned an object without authenticate', 'an object with authenticate'],
    [{ git: [{ name: 'a', listFiles() {}, readFile() {} }] }, 'git[0]: is an adapter without family, hosts, find, remote, check, close', 'an adapter'],
    [{ git: [ownGit, { ...ownGit }] }, 'git[1]: has the name "own", which git[0] has already', 'an adapter of your own'],
    [{ modules: [{}] }, 'modules[0]: is', 'a list of container modules'],
    [{ protocols: [ownProtocol], specs: [lineSpec('acp')] }, 'spec a, agent.protocol: is "acp", which is not a known protocol; known: line', 'a protocol'],
    [{ limits: -1 }, 'limits: is -1 instead of a mapping', 'runningPerOwner'],
    [{ limits: { running: 0 } }, 'limits.running: is 0', 'of at least 1'],
    [{ limits: { runing: 3 } }, 'limits.runing: is not a known field; did you mean running?', 'one of'],
    [{ wehnFull: 'refuse' }, 'wehnFull: is not a known field; did you mean whenFull?', 'one of'],
    [{ startsAtOnce: 0.5 }, 'startsAtOnce: is 0.5 instead of a whole number', 'a whole number'],
    [{ specs: [{ id: 'a', command: 'sleep 1' }] }, 'spec a, command: is a text instead of a list', 'for example [sh, -c'],
    [{ specs: [{ id: 'a', workingDir: '/x' }] }, 'spec a, workingDir: is not a known field; did you mean working_dir?', 'one of'],
    [{ specs: [{ id: 'a' }, { id: 'a' }] }, 'spec a, id: is "a", which spec no. 1 has already', 'a name of at most 63'],
    [{ specs: [{ id: 'a', ready: { tcp: true } }] }, 'spec a, ready.port: is missing, but tcp needs it', "one of the spec's ports"],
    [{ specs: [{ id: 'a', image: 'debian' }] }, 'runtime: is missing, but the spec a needs a container', "{ kind: 'docker' }"],
    [{ specs: [{ id: 'a', isolation: { user: '1000' } }] }, 'runtime: is missing, but the spec a needs a container', "{ kind: 'docker' }"],
    [{ specs: [{ id: 'a' }], runtime: { kind: 'docker' } }, 'spec a, image: is missing, and Docker needs it', 'the name of an image'],
    [
      { specs: [{ id: 'a', image: 'debian', resources: { memory: '1MiB' } }], runtime: { kind: 'docker' } },
      'spec a, resources.memory: is less than 6MiB', 'a size',
    ],
  ])('is refused with the expected form if it is wrong: %j', async (options, mistake, form) => {
    const { problems, message } = await refusalOf(options);
    expect(problems.map(({ name, problem }) => `${name}: ${problem}`)).toEqual([expect.stringContaining(mistake)]);
    expect(problems[0]?.form).toContain(form);
    expect(message).not.toMatch(/zod|expected|undefined|\[object/i);
  });

  test.each(Object.keys(optionsSchema.shape))('is checked without another error than a ConfigError: %s', (name) => {
    const thrown = [null, 5, 'x', {}, [], [null], [5], [{}]].map((value) => {
      try {
        return checkOptions(untyped({ [name]: value }));
      } catch (error) {
        return error;
      }
    }).filter((result) => result instanceof Error);
    for (const error of thrown) expect(error).toBeInstanceOf(ConfigError);
    expect(thrown).not.toEqual([]);
  });

  test('is refused together with all other mistakes, without values of secrets', async () => {
    const { message, problems } = await refusalOf({ product: 'Not Good', git: [{ provider: 'github', token: 5, app: { privateKey: ['hush'] } }], sweepEveryMs: -1 });
    expect(problems.map(({ name }) => name)).toEqual(['git[0].token', 'git[0].app.appId', 'git[0].app.installationId', 'git[0].app.privateKey', 'product', 'sweepEveryMs']);
    expect(message).not.toContain('hush');
  });
});

test('an agent can use a custom protocol, and acp is available by default, even without a spec that uses it', async () => {
  await (await createSkep({ protocols: [ownProtocol], specs: [lineSpec('line')] })).close();
  await using closers = new AsyncDisposableStack();
  const protocols = await resolve(createContainer({}, closers), all(tokens.agentProtocol));
  expect(protocols.map(({ name }) => name)).toEqual(['acp']);
});

test('specs in options have the same form as in the file', async () => {
  const spec = { id: 'a', command: ['sleep', '1'], working_dir: '/work', rest: { freeze_after: '15m' }, ports: [{ name: 'WEB', port: 80 }], ready: { http: '/', port: 80 } } as const;
  const skep = await createSkep({ specs: [spec] });
  onTestFinished(async () => await skep.close());
  expect(skep.specs.find(null)).toMatchObject( { workingDir: '/work', rest: { freezeAfterMs: 900_000 }, ready: { probe: { kind: 'http', port: 80, path: '/' } } });
});

test('loadConfig returns the options for createSkep from a file, including the runtime, and refuses a wrong file', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'skep-options-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'skep.yaml');
  writeFileSync(file, `data_dir: ${folder}/data\nsandbox_runtime: process\nspecs: [{ id: a, command: [sleep, "1"], rest: { max_life: 1h } }]\nlimits: { running: 3 }\n`);
  const options = await loadConfig(file, { SKEP_PRODUCT: 'bees' });
  expect(options).toMatchObject({ runtime: { kind: 'process' }, product: 'bees', dataDir: `${folder}/data`, limits: { running: 3 } });
  const skep = await createSkep(options);
  onTestFinished(async () => await skep.close());
  expect(skep.specs.find(null)).toMatchObject( { rest: { maxLifeMs: 3_600_000 } });
  writeFileSync(file, 'limits: -1');
  await expect(loadConfig(file)).rejects.toThrow(`limits (${file}:1): is -1 instead of a mapping`);
});

test('a docker runtime with a custom store needs the name of the deployment', async () => {
  await expect(createSkep({ runtime: { kind: 'docker' }, store: createInMemoryStore() })).rejects.toThrow("runtime: { kind: 'docker', deployment: 'a-name' }");
});

test('sandboxes of the process runtime are removed when a deployment without a data folder is closed', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'skep-options-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'pid');
  const skep = await createSkep({ specs: [{ id: 'a', command: ['sh', '-c', `echo "$$ $PWD" > ${file}.new; mv ${file}.new ${file}; exec sleep 1000`] }] });
  await skep.sandboxes.start('ann', { specId: null });
  await until(() => existsSync(file), (isThere) => isThere);
  const [pid, workspace = ''] = readFileSync(file, 'utf8').trim().split(' ');
  process.kill(Number(pid), 0);
  await skep.close();
  expect(await isAlive(Number(pid))).toBe(false);
  expect(existsSync(workspace)).toBe(false);
});

test('without a logger, only warnings are written, to stderr', async () => {
  const script = `
    const { createSkep } = await import(${JSON.stringify(join(import.meta.dirname, '../../src/composition/index.ts'))});
    const skep = await createSkep({ specs: [{ id: 'a', command: ['no-such-program-anywhere'] }] });
    await skep.sandboxes.start('ann', { specId: null });
    const moves = skep.events.follow('ann', { kinds: ['sandbox_moved'] }, 0, new AbortController().signal);
    for await (const batch of moves) if (batch.some(({ data }) => data.to === 'ERROR')) break;
    await skep.close();
  `;
  const { stdout, stderr } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script]);
  expect(stdout).toBe('');
  expect(stderr.trim().split('\n').map((line) => JSON.parse(line) as unknown)).toMatchObject([{ level: 'warn', to: 'ERROR', msg: 'sandbox changed its status' }]);
});

test('a lost deployment.json is written again with the id in the store, and one of another deployment is refused', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'skep-lost-'));
  onTestFinished(() => rmSync(dataDir, { recursive: true, force: true }));
  const file = join(dataDir, 'deployment.json');
  const idOf = (): unknown => (JSON.parse(readFileSync(file, 'utf8')) as { id?: unknown }).id;
  await (await createSkep({ dataDir })).close();
  const id = idOf();
  rmSync(file);
  await (await createSkep({ dataDir })).close();
  expect(idOf()).toBe(id);
  writeFileSync(file, JSON.stringify({ id: 'another', runtime: null }));
  await expect(createSkep({ dataDir })).rejects.toMatchObject({ reason: 'other_deployment' });
});

test('local repositories are never served from the folders with the sandboxes of all owners', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'skep-served-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  for (const name of ['data/mirror', 'workspaces/a', 'shop']) await promisify(execFile)('git', ['init', '--bare', join(folder, name)]);
  const options = { dataDir: join(folder, 'data'), runtime: { kind: 'process' as const, root: join(folder, 'workspaces') } };
  for (const root of [options.dataDir, join(folder, 'data/mirror'), join(folder, 'workspaces/a')]) {
    expect((await refusalOf({ ...options, git: [{ provider: 'local', root }] })).message).toContain(`SKEP_LOCAL_GIT_ROOT: is ${root}; the sandboxes of all owners are in`);
  }
  const skep = await createSkep({ ...options, git: [{ provider: 'local', root: folder }] });
  onTestFinished(async () => await skep.close());
  expect((await skep.repositories.search('', null, { after: null, limit: 10 })).items).toMatchObject([{ path: 'shop' }]);
});

test('local repositories are not served from the temporary folders of a deployment without a data folder', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'skep-served-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  vi.stubEnv('TMPDIR', folder);
  onTestFinished(() => void vi.unstubAllEnvs());
  const skep = await createSkep({ git: [{ provider: 'local', root: folder }], specs: [{ id: 'a', command: ['sleep', '60'] }] });
  const { id } = await skep.sandboxes.start('ann', { specId: null });
  await skep.sandboxes.awaitRunning('ann', id, neverAborts);
  const workspace = join(folder, readdirSync(folder).find((name) => name.startsWith('skep-sandboxes-')) ?? '', id, 'workspace');
  await promisify(execFile)('git', ['init', workspace]);
  expect((await skep.repositories.search('', null, { after: null, limit: 10 })).items).toEqual([]);
  await skep.close();
  expect(readdirSync(folder)).toEqual([]);
});

test('sandboxes run in a data folder with a relative path', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'skep-relative-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const skep = await createSkep({ dataDir: relative(process.cwd(), folder), runtime: { kind: 'process' }, specs: [{ id: 'a', command: ['sleep', '60'] }] });
  await using _ = { [Symbol.asyncDispose]: () => skep.close() };
  const { id } = await skep.sandboxes.start('me', { specId: 'a' });
  expect(await skep.sandboxes.awaitRunning('me', id, AbortSignal.timeout(20_000))).toMatchObject({ status: 'RUNNING' });
  await skep.sandboxes.delete('me', id);
});

test.each(['is requested', 'is recorded', 'has its process'])('no process is left if a deployment without a data folder is closed when a start %s', async (moment) => {
  const mark = `sleep ${process.pid}00`;
  const commands = async () => (await promisify(execFile)('ps', ['-eo', 'args'])).stdout.split('\n').filter((args) => args.endsWith(mark));
  // Nothing listens on the port, so the start does not end by itself.
  const skep = await createSkep({
    runtime: { kind: 'process' },
    specs: [{ id: 'a', command: mark.split(' '), ports: [{ name: 'WEB', port: 80 }], ready: { tcp: true, port: 80, within: '1h' } }],
  });
  const started = skep.sandboxes.start('ann', { specId: null });
  if (moment !== 'is requested') expect(await started).toMatchObject({ status: 'STARTING' });
  if (moment === 'has its process') {
    await until(commands, (found) => found.length > 0);
    expect(await skep.sandboxes.get('ann', (await started).id)).toMatchObject({ status: 'STARTING' });
  }
  await skep.close();
  await started.catch(() => null);
  expect(await commands()).toEqual([]);
});
