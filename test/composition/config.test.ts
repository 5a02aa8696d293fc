import { availableParallelism } from 'node:os';
import { describe, expect, test } from 'vitest';
import { readConfig } from '../../src/composition/config/read-config.ts';
import { defaultIsolation, defaultResources, sandboxSpec } from '../../src/domain/sandbox-spec.ts';
import { duration, size } from '../../src/composition/config/field-schemas.ts';
import { rulesOf } from '../../src/composition/wiring/use-case-modules.ts';
import { configFiles, refusalOf } from './config-files.ts';

const { file, pathOf } = configFiles();
const problemsOf = (env: Record<string, string>) => refusalOf(env).problems;

describe('the configuration', () => {
  test('has its default values', () => {
    expect(readConfig({})).toMatchObject({
      host: '127.0.0.1', port: 3000, product: 'skep', gitProviders: ['local'], sandboxRuntime: 'auto', logLevel: 'info',
      specs: null, requestsPerMinute: 6000, streamsPerKey: 50, warnings: [],
    });
    expect(rulesOf(readConfig({}).options)).toMatchObject({
      limits: { runningPerOwner: null, running: null, existingPerOwner: null, existing: null }, whenFull: 'refuse',
      startsAtOnce: 2 * availableParallelism(), answerWithinMs: 20_000, drainTimeoutMs: 10_000, keepEventsForMs: 30 * 86_400_000,
      diskUsedPercent: 90, agentMemoryBytes: 256 * 2 ** 20, sweepEveryMs: 10_000, orphanGraceMs: 10_000, rememberDeletedMs: 86_400_000,
    });
    expect(rulesOf(readConfig({ SKEP_DRAIN_TIMEOUT: '3s' }).options)).toMatchObject({ drainTimeoutMs: 3000 });
    expect(readConfig({}).dataDir).toMatch(/skep$/);
  });

  test('prefers the environment to the file, and the file to the defaults', () => {
    const path = file('port: 4000\nhost: "::1"\nproduct: bees\n');
    expect(readConfig({ SKEP_CONFIG: path, SKEP_PORT: '5000' })).toMatchObject({ port: 5000, host: '::1', product: 'bees' });
  });

  test('accepts a file with the common fields, and converts their values', () => {
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
limits: { running_per_owner: 5, running: 50, requests_per_minute: unlimited }
`);
    const { specs, options, requestsPerMinute, warnings } = readConfig({ SKEP_CONFIG: path });
    expect(specs).toEqual([
      sandboxSpec({
        id: 'node', description: 'Node 26 with git', image: 'node:26', command: ['sh', '-c', 'exec sleep infinity'], workingDir: '/workspace',
        initialEnv: { CI: '1' }, sessionKeyEnv: 'SESSION_API_KEY', ports: [{ name: 'AGENT_SERVER', port: 8000 }],
        ready: { probe: { kind: 'http', port: 8000, path: '/health' }, withinMs: 60_000 },
        resources: { ...defaultResources, cpus: 2, memoryBytes: 2 ** 31, pids: 512 },
        rest: { freezeAfterMs: 900_000, stopAfterMs: 7_200_000, deleteAfterMs: 864_000_000, maxLifeMs: null },
        pool: { size: 2 },
      }),
    ]);
    expect([options.limits, requestsPerMinute]).toEqual([{ runningPerOwner: 5, running: 50 }, null]);
    expect(warnings).toEqual([]);
  });

  test('accepts the other fields of specs, limits, starts, events and the quarantine, and has defaults for them', () => {
    const path = file(`
specs:
  - id: coder
    image: registry.example.com:5000/agents/coder@sha256:0123
    resources: { cpus: unlimited, memory: 512MiB, pids: unlimited, open_files: 4096, log: unlimited, disk: 10GiB }
    isolation: { read_only_root: true, network: none, user: 1000 }
    docker: { capabilities: [NET_BIND_SERVICE, CHOWN], new_privileges: true, seccomp: unconfined, oci_runtime: runsc }
    labels: { team: shop, "com.example/cost": "7" }
    rest: { max_life: 3d }
    agent: { protocol: acp, command: [opencode, acp], env: { MODE: quick }, secrets: [MODEL_KEY], auth_method: api-key, permissions: allow, start_within: 90s }
  - id: plain
    agent: { protocol: acp, command: [agent] }
limits: { existing_per_owner: 20, existing: 200, when_full: pause_idle }
starts: { at_once: 3, setup_timeout: 90s }
events: { keep_for: 2d }
quarantine: { keep_for: 3d }
`);
    const { specs, options } = readConfig({ SKEP_CONFIG: path });
    expect(specs?.[0]).toMatchObject({
      image: 'registry.example.com:5000/agents/coder@sha256:0123',
      resources: { cpus: null, memoryBytes: 2 ** 29, pids: null, openFiles: 4096, logBytes: null, diskBytes: 10 * 2 ** 30 },
      isolation: { readOnlyRoot: true, network: 'none', user: '1000' },
      runtimeOptions: { docker: { capabilities: ['NET_BIND_SERVICE', 'CHOWN'], new_privileges: true, seccomp: 'unconfined', oci_runtime: 'runsc' } },
      labels: { team: 'shop', 'com.example/cost': '7' },
      rest: { freezeAfterMs: null, stopAfterMs: null, deleteAfterMs: null, maxLifeMs: 3 * 86_400_000 },
      agent: { protocol: 'acp', command: ['opencode', 'acp'], env: { MODE: 'quick' }, secrets: ['MODEL_KEY'], authMethod: 'api-key', permissions: 'allow', startWithinMs: 90_000, turnTimeoutMs: 3_600_000, permissionTimeoutMs: 86_400_000 },
    });
    expect(specs?.[1]).toMatchObject({
      resources: defaultResources, isolation: defaultIsolation, runtimeOptions: {}, labels: {}, pool: { size: 0 },
      agent: { env: {}, secrets: [], authMethod: null, permissions: 'ask', startWithinMs: 60_000, turnTimeoutMs: 3_600_000, permissionTimeoutMs: 86_400_000 },
    });
    expect(options).toMatchObject({
      limits: { existingPerOwner: 20, existing: 200 }, whenFull: 'pause_idle', startsAtOnce: 3, setupTimeoutMs: 90_000, keepEventsForMs: 2 * 86_400_000, quarantineForMs: 3 * 86_400_000,
    });
  });

  test.each([
    ['labels: { skep.sandbox: mine }', 'labels."skep.sandbox"', 'reserved'],
    ['labels: { team: 7 }', 'labels.team', 'put it in quotes'],
    ['docker: { capabilities: [CAP_CHOWN] }', 'docker.capabilities[0]', 'without CAP_'],
    ['docker: { capabilities: [chown] }', 'docker.capabilities[0]', 'upper case'],
    ['docker: { seccomp: off }', 'docker.seccomp', 'is "off"'],
    ['isolation: { network: host }', 'isolation.network', 'is "host"'],
    ['isolation: { user: "-1" }', 'isolation.user', 'is "-1", which is not a user'],
    ['docker: { privileged: true }', 'docker.privileged', 'not a known field'],
    ['isolation: { capabilities: [CHOWN] }', 'isolation.capabilities', 'did you mean docker.capabilities?'],
    ['isolation: { new_privileges: true }', 'isolation.new_privileges', 'did you mean docker.new_privileges?'],
    ['isolation: { privileged: true }', 'isolation.privileged', 'not a known field'],
    ['resources: { memory: 0B }', 'resources.memory', 'is "0B", which is not a size'],
    ['resources: { cpus: many }', 'resources.cpus', 'is "many" instead of a number'],
    ['resources: { pids: 0 }', 'resources.pids', 'is 0'],
    ['pool: { size: -1 }', 'pool.size', 'is -1'],
    ['agent: { protocol: acp }', 'agent.command', 'is missing'],
    ['agent: { protocol: acp, command: [x], secrets: [A=B] }', 'agent.secrets[0]', 'not a variable name'],
    ['agent: { protocol: acp, command: [x], permissions: yes please }', 'agent.permissions', 'is "yes please"'],
    ['image: --privileged', 'image', 'which is not the name of an image'],
  ])('refuses a spec with %j', (line, key, problem) => {
    const problems = problemsOf({ SKEP_CONFIG: file(`specs:\n  - id: a\n    ${line}\n`) });
    expect(problems.map(({ name }) => name)).toEqual([`spec a, ${key}`]);
    expect(problems[0]?.problem).toContain(problem);
  });

  test.each([
    ['limits: { when_full: evict }', 'limits.when_full'],
    ['limits: { existing: 0 }', 'limits.existing'],
    ['starts: { at_once: 0 }', 'starts.at_once'],
    ['events: { keep_for: 30 }', 'events.keep_for'],
  ])('refuses %j with an example', (text, key) => {
    expect(problemsOf({ SKEP_CONFIG: file(text) })).toMatchObject([{ name: key, form: expect.stringMatching(/for example|pause_idle/) }]);
  });

  test.each([
    ['SKEP_API_KEY', 'too-short-hush', 'is shorter than 16 characters'],
    ['SKEP_LOCAL_GIT_ROOT', '/no/such/folder', 'is "/no/such/folder", which is not a folder'],
    ['SKEP_GIT_PROVIDERS', 'local,svn', 'has an entry that is "svn", which is not a known provider'],
    ['SKEP_DOCKER_PUBLISH_ADDRESS', 'localhost', 'is "localhost", which is not an IP address'],
    ['SKEP_DOCKER_URL_HOST', 'http://a', 'is "http://a", which is not a host name or address'],
    ['SKEP_PUBLIC_URL', 'http://u:p@skep.example.com', 'has credentials, a query or a fragment'],
    ['SKEP_PUBLIC_URL', 'https://a/?b', 'is "https://a/?b", which has credentials, a query or a fragment'],
    ['SKEP_PUBLIC_URL', 'https://a/#b', 'is "https://a/#b", which has credentials, a query or a fragment'],
    ['SKEP_PUBLIC_URL', 'ftp://a', 'is "ftp://a", which is not an http or https URL'],
    ['SKEP_PUBLIC_URL', 'skep', 'is "skep", which is not an http or https URL'],
  ])('refuses the variable %s with the value %j, without showing a secret', (name, value, problem) => {
    expect(problemsOf({ [name]: value })).toEqual([{ name, problem, form: expect.stringMatching(/for example/) }]);
  });

  test('refuses one port for the API and the proxy', () => {
    const problem = expect.stringContaining('is the port of the API too');
    expect(problemsOf({ SKEP_PORT: '4000', SKEP_PROXY_PORT: '4000' })).toMatchObject([{ name: 'SKEP_PROXY_PORT', problem }]);
    expect(problemsOf({ SKEP_CONFIG: file('proxy_port: 3000') })).toMatchObject([{ name: 'proxy_port', problem }]);
    expect(() => readConfig({ SKEP_PORT: '0', SKEP_PROXY_PORT: '0' })).not.toThrow();
  });

  test('does not warn about a variable that is a secret of an agent', () => {
    const path = file('specs: [{ id: a, agent: { protocol: acp, command: [x], secrets: [SKEP_MODEL_KEY] } }]');
    expect(readConfig({ SKEP_CONFIG: path, SKEP_MODEL_KEY: 'x' }).warnings).toEqual([]);
  });

  test('refuses a file that does not exist', () => {
    expect(problemsOf({ SKEP_CONFIG: pathOf('none.yaml') })).toMatchObject([{ name: 'SKEP_CONFIG', problem: expect.stringContaining('does not exist') }]);
  });
});

describe('quantities', () => {
  test.each([['250ms', 250], ['60s', 60_000], ['1.5m', 90_000], ['2h', 7_200_000], ['10d', 864_000_000], ['', null], ['5', null], ['-5s', null], ['5 weeks', null], ['0s', null]])('the duration %j is parsed as %j', (text, ms) => {
    expect(duration('1s').safeParse(text).data ?? null).toBe(ms);
  });

  test.each([['512MiB', 2 ** 29], ['2GiB', 2 ** 31], ['1GB', 1e9], ['1', null], ['GiB', null], ['1e3B', null], ['constructor', null], ['1constructor', null]])('the size %j is parsed as %j', (text, bytes) => {
    expect(size('1GiB').safeParse(text).data ?? null).toBe(bytes);
  });
});
