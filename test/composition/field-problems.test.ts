import { mkdirSync } from 'node:fs';
import { basename } from 'node:path';
import { describe, expect, test } from 'vitest';
import { readConfig } from '../../src/composition/config/read-config.ts';
import { configSchema } from '../../src/composition/config/config-schema.ts';
import { allFields } from '../../src/composition/config/field-problems.ts';
import { unsetSecrets } from '../../src/composition/config/environment-warnings.ts';
import { configFiles, refusalOf } from './config-files.ts';

const { file, pathOf } = configFiles();
const refusal = (text: string, env: Readonly<Record<string, string>> = {}) => refusalOf({ ...env, SKEP_CONFIG: file(text) });

/** Returns the message of each mistake, with its line. */
function told(text: string, env: Readonly<Record<string, string>> = {}): string[] {
  return refusal(text, env).problems.map(({ name, place, problem }) => `${place === undefined ? '' : `${basename(place).replace(/^.*:/, '')}: `}${name}: ${problem}`);
}

const spec = (lines: string): string => `specs:\n  - id: web\n    ${lines}\n`;

/** Every field of the file, with a valid value. */
const whole = {
  specs: [
    {
      id: 'web',
      description: 'A server',
      image: 'node:26',
      command: ['sleep', 'infinity'],
      working_dir: '/workspace',
      initial_env: { CI: '1' },
      session_key_env: 'KEY',
      ports: [{ name: 'WEB', port: 8000 }],
      ready: { http: '/', port: 8000, within: '60s' },
      resources: { cpus: 2, memory: '2GiB', pids: 512, open_files: 1024, log: '20MiB' },
      isolation: { read_only_root: true, network: 'isolated', user: '1000' },
      docker: { capabilities: ['CHOWN'], new_privileges: false, seccomp: 'default', oci_runtime: 'runsc' },
      labels: { team: 'shop' },
      rest: { freeze_after: '15m', stop_after: '2h', delete_after: '10d', max_life: '30d' },
      pool: { size: 2 },
      secrets: ['DATABASE_URL'],
      allow_plain_secrets: false,
      agent: { protocol: 'acp', command: ['opencode'], env: { MODE: 'quick' }, secrets: ['MODEL_KEY'], auth_method: 'api-key', permissions: 'ask', start_within: '60s' },
    },
  ],
  limits: { running_per_owner: 5, running: 50, existing_per_owner: 50, existing: 500, conversations_per_owner: 100, conversations: 1000, conversations_per_sandbox: 5, when_full: 'refuse', requests_per_minute: 600, streams_per_key: 'unlimited' },
  starts: { at_once: 4 },
  events: { keep_for: '30d' },
  quarantine: { keep_for: '24h' },
};

/** Returns the file with another value of one field. */
function withValue(path: string, value: unknown): string {
  const copy = structuredClone(whole);
  const steps = path.replaceAll('[]', '.0').split('.');
  const last = steps.pop() ?? '';
  const parent = steps.reduce<object>((part, step) => Reflect.get(part, step) as object, copy);
  Reflect.set(parent, last, value);
  return JSON.stringify(copy);
}

/** Values that are wrong for every field. */
const rubbish = [null, [null], { '': { x: [] } }, -0.5, [[]]] as const;
const leaves = [...allFields(configSchema), 'specs[]', 'specs[].ports[]', 'specs[].command[]', 'specs[].initial_env.CI', 'specs[].labels.team', 'specs[].docker.capabilities[]', 'specs[].agent.command[]', 'specs[].agent.env.MODE', 'specs[].agent.secrets[]', 'specs[].secrets[]'];

describe('a mistake in the file', () => {
  test.each<[string, string, string]>([
    ['ready: { within: "60" }', 'ready.within: is "60", which has no unit', 'a duration, which is a number above 0 with its unit (ms, s, m, h or d), for example 60s'],
    ['rest: { freeze_after: 60 }', 'rest.freeze_after: is 60, which has no unit', 'for example 15m'],
    ['rest: { stop_after: 2 hours }', 'rest.stop_after: is "2 hours", which is not a duration', 'for example 2h'],
    ['rest: { max_life: 99999999d }', 'rest.max_life: is "99999999d", which is longer than 100 years', 'for example 30d'],
    ['resources: { memory: 2 }', 'resources.memory: is 2, which has no unit', 'for example 2GiB, or unlimited'],
    ['resources: { cpus: "2" }', 'resources.cpus: is "2" instead of a number; leave out the quotes', 'for example 2'],
    ['isolation: { read_only_root: "true" }', 'isolation.read_only_root: is "true" instead of true or false; leave out the quotes', 'true if'],
    ['isolation: { seccomp: unconfined }', 'isolation.seccomp: is not a known field; did you mean docker.seccomp?', 'one of network, read_only_root, user'],
    ['isolation: { oci_runtime: runsc }', 'isolation.oci_runtime: is not a known field; did you mean docker.oci_runtime?', 'one of network'],
    ['docker: { new_privileges: "true" }', 'docker.new_privileges: is "true" instead of true or false; leave out the quotes', 'true if'],
    ['agent: { protocol: a2a, command: [x] }', 'agent.protocol: is "a2a", which is not a known protocol; known: acp', 'for example acp, which is the Agent Client Protocol'],
    ['initial_env: { CI: 1 }', 'initial_env.CI: is a number instead of a text; put it in quotes', 'for example "1"'],
    ['initial_env: { A-B: x }', 'initial_env.A-B: has a name that is not a variable name (letters, digits and _, without a digit at the beginning)', 'for example { CI: "1" }'],
    ['command: sleep infinity', 'command: is a text instead of a list', 'for example [sh, -c, "exec sleep infinity"]'],
    ['command: [serve, 8000]', 'command[1]: is a number instead of a text; put it in quotes', 'for example "8000"'],
    ['ports: [{ name: WEB, port: 70000 }]', 'ports[0].port: is 70000', 'a port from 1 to 65535, for example 8000'],
    ['ports: [{ port: 80 }]', 'ports[0].name: is missing', 'for example AGENT_SERVER'],
    ['ports: { WEB: 80 }', 'ports: is a mapping instead of a list', 'for example [{ name: AGENT_SERVER, port: 8000 }]'],
    ['pool: 3', 'pool: is 3 instead of a mapping', 'for example { size: 2 }'],
    ['agent:', 'agent: has no value', 'for example { protocol: acp'],
    ['ready: { port: 80 }', 'ready.port: has no effect without http or tcp; add one', "one of the spec's ports"],
    ['ready: { tcp: true }', 'ready.port: is missing, but tcp needs it', "one of the spec's ports"],
    ['ready: { http: /, port: 80 }', 'ready.port: is 80, which is not a port of the spec (it has none)', "one of the spec's ports"],
  ])('has a message and the expected form: %s', (line, problem, form) => {
    expect(told(spec(line))).toEqual([`3: spec web, ${problem}`]);
    expect(refusal(spec(line)).problems[0]?.form).toContain(form);
  });

  test.each([
    ['colour: red', 'colour', ''],
    ['workingDir: /x', 'workingDir', 'working_dir'],
    ['imag: node', 'imag', 'image'],
    ['env: { A: b }', 'env', 'initial_env'],
    ['memory: 2GiB', 'memory', 'resources.memory'],
    ['freezeAfter: 3m', 'freezeAfter', 'rest.freeze_after'],
    ['agent: { protocol: acp, command: [x], secret: [A] }', 'agent.secret', 'secrets'],
  ])('suggests the nearest known field for an unknown one: %s', (line, field, meant) => {
    expect(told(spec(line))).toEqual([`3: spec web, ${field}: is not a known field${meant === '' ? '' : `; did you mean ${meant}?`}`]);
    expect(refusal(spec(line)).problems[0]?.form).toMatch(/^one of .*command/);
  });

  test.each([
    ['prot: 1', 'prot: is not a known field; did you mean port?'],
    ['SKEP_PORT: 1', 'SKEP_PORT: must be named port in the file'],
    ['github_token: abc', 'github_token: is a secret; set SKEP_GITHUB_TOKEN in the environment instead'],
    ['host: 5', 'host: is 5 instead of a text; put it in quotes'],
    ['product:', 'product: has no value'],
    ['git_timeout: 30', 'git_timeout: is 30, which has no unit'],
    ['git_timeout: [30]', 'git_timeout: is a list, which is not a duration'],
    ['disk_used_percent: [90]', 'disk_used_percent: is a list, which is not a whole number'],
    ['disk_used_percent: 1.5', 'disk_used_percent: is 1.5, which is not a whole number'],
    ['git_providers: [local, svn]', 'git_providers: has an entry that is "svn", which is not a known provider'],
    ['git_providers: {}', 'git_providers: is a mapping instead of a list'],
    ['git_providers: [github, local, github]', 'git_providers: is a list, which names a provider twice'],
    ['git_http_hosts: [a b]', 'git_http_hosts: has an entry that is "a b", which is not a host name or address'],
    ['git_http_hosts: []', 'git_http_hosts: is an empty list'],
    ['trust_proxy: [1]', 'trust_proxy: has an entry that is 1 instead of a text; put it in quotes'],
    ['trust_proxy: [loopback, 10.0.0.0/99]', 'trust_proxy: has an entry that is "10.0.0.0/99", which is not an address'],
    ['trust_proxy: 1', 'trust_proxy: is 1 instead of a list'],
    ['cors_origins: [null]', 'cors_origins: has an entry that has no value'],
    ['cors_origins: ["http://ann:secret@host"]', 'cors_origins: has an entry that is not an origin'],
    ['limits: { runing: 3 }', 'limits.runing: is not a known field; did you mean running?'],
    ['specs: { web: {} }', 'specs: is a mapping instead of a list'],
    ['specs: []', 'specs: is an empty list'],
    ['specs: [web]', 'spec no. 1: is "web" instead of a mapping'],
    ['specs: [{ image: node }]', 'spec no. 1, id: is missing'],
    ['specs: [{ id: 7 }]', 'spec no. 1, id: is 7 instead of a text; put it in quotes'],
    ['specs: [{ id: Web App }]', 'spec "Web App", id: is "Web App", which is not a lower-case name of letters, digits and dashes'],
  ])('has a message outside of the fields of a spec: %s', (text, problem) => {
    expect(told(text)).toEqual([`1: ${problem}`]);
  });

  test('is listed with all others in the order of the file, including repeated fields', () => {
    const text = `
limits: { running: 0 }
specs:
  - id: web
    ports:
      - { name: WEB, port: 8000 }
      - { name: WEB, port: 8000 }
    colour: red
  - id: web
    image: a
    image: b
    ready: { within: soon }
  - id: other
    ports: [{ name: A-1, port: 80 }, { name: a_1, port: 81 }]
    isolation: { network: none, user: 1.5 }
    resources: { memory: 5MiB }
  - id: vars
    image: node:26
    session_key_env: PATH
    ports: [{ name: WEB, port: 8000 }]
    initial_env: { SKEP_X: a, PORT: b, PATH: c, CI: d }
    secrets: [PATH, TOKEN]
    agent: { protocol: acp, command: [x], secrets: [SKEP_API_KEY, MODE], env: { MODE: fast } }
  - { id: doubled, image: node:26, initial_env: { SESSION_API_KEY: a, TOKEN: b }, secrets: [TOKEN], allowed_secrets: [SESSION_API_KEY] }
log_level: loud
`;
    expect(told(text, { SKEP_PORT: 'eighty', SKEP_SANDBOX_RUNTIME: 'docker' })).toEqual([
      'SKEP_PORT: is "eighty", which is not a whole number',
      '2: limits.running: is 0',
      '4: spec web, image: is missing, and Docker needs it',
      '7: spec web, ports[1].name: is "WEB", which ports[0] has already',
      '7: spec web, ports[1].port: is 8000, which ports[0] has already',
      '8: spec web, colour: is not a known field',
      '9: spec web, id: is "web", which spec no. 1 has already',
      '11: image: is written twice in one mapping; keep one of the two',
      '12: spec web, ready.within: is "soon", which is not a duration',
      '13: spec other, image: is missing, and Docker needs it',
      '14: spec other, ports[1].name: is "a_1", which has the same variable SKEP_PORT_A_1 as ports[0]; rename one of them',
      '14: spec other, ports: can not be reached, because isolation.network is none; remove one of the two',
      '15: spec other, isolation.user: is 1.5, which is not a user',
      '16: spec other, resources.memory: is less than 6MiB, the least memory of a container in Docker',
      '21: spec vars, initial_env.SKEP_X: is a variable that Skep sets itself; remove it',
      '21: spec vars, initial_env.PORT: is a variable that Skep sets itself; remove it',
      '21: spec vars, initial_env.PATH: is a variable that Skep sets itself; remove it',
      "22: spec vars, secrets[0]: is the sandbox's own key, session_key_env; rename one of them",
      "23: spec vars, agent.secrets[0]: is one of the server's own settings, which sandboxes must not get; remove it",
      '23: spec vars, agent.secrets[1]: is also in agent.env; keep one of the two',
      '24: spec doubled, initial_env.SESSION_API_KEY: is a variable that Skep sets itself; remove it',
      "24: spec doubled, allowed_secrets[0]: is the sandbox's own key, session_key_env; rename one of them",
      '24: spec doubled, secrets[0]: is also in initial_env; keep one of the two',
      '25: log_level: is "loud", which is not a log level',
    ]);
  });

  test('is listed together with settings that depend on each other', () => {
    expect(told('starts: 4', { SKEP_GIT_PROVIDERS: 'github', SKEP_GITHUB_APP_ID: '1', SKEP_GITHUB_APP_INSTALLATION_ID: '2' })).toEqual([
      'SKEP_GITHUB_APP_KEY_FILE: is missing, but other settings of the GitHub App are set',
      '1: starts: is 4 instead of a mapping',
    ]);
  });

  test('is not in the file with every field, which the next tests change', () => {
    expect(() => readConfig({ SKEP_CONFIG: file(JSON.stringify(whole)) })).not.toThrow();
    expect(leaves.length).toBeGreaterThan(60);
  });

  test.each(leaves)('in %s has a plain message for every wrong value', (path) => {
    const [last = ''] = path.split('.').slice(-1);
    const field = new RegExp(`${last.replace('[]', '(\\[0\\]| web| no\\. 1)')}|^spec `);
    for (const value of rubbish) {
      const { message, problems } = refusal(withValue(path, value));
      expect(problems.length, message).toBeGreaterThan(0);
      expect(message).not.toMatch(/invalid|expected|received|zod|undefined|\[object|_type|NaN/i);
      for (const { name, problem, form, place } of problems) {
        expect(name).toMatch(field);
        expect(problem).toMatch(/^(is|has) \S/);
        expect(form).not.toBe('');
        expect(place).toMatch(/\.yaml:1$/);
      }
    }
  });

  test('never contains a possible secret', () => {
    const hush = 'hush-hush-123';
    const number = 909_090_909;
    for (const path of ['specs[].initial_env', 'specs[].agent.env', 'specs[].agent.secrets', 'specs[].command', 'specs[].agent.command']) {
      for (const value of [hush, number, [{ a: hush }], { [path]: { a: hush } }, [number]]) expect(refusal(withValue(path, value)).message).not.toMatch(new RegExp(`${hush}|${number}`));
    }
    expect(refusal(withValue('specs[].agent.secrets', [hush])).message).not.toContain(hush);
    expect(refusal(`api_key: ${hush}\npublic_url: http://a:${hush}@b\ngitlab_url: [${hush}]`).message).not.toContain(hush);
  });
});

describe('a file is refused', () => {
  test.each([
    ['specs:\n\t- id: a\n', /^2: SKEP_CONFIG: is not valid YAML: Tabs/],
    ['port: 1\n---\nport: 2\n', /^2: SKEP_CONFIG: has several documents; keep only one/],
    ['port: 1\nproduct: !env NAME\n', /^2: SKEP_CONFIG: has a tag that Skep does not know \(.*!env\)/],
    ['product: *nobody\n', /^1: SKEP_CONFIG: is not valid YAML: .*alias/],
    ['- a\n', /^1: SKEP_CONFIG: has no mapping at the top level/],
  ])('if its content is %j', (text, problem) => {
    expect(told(text)).toEqual([expect.stringMatching(problem)]);
  });

  test('if it is a folder', () => {
    const path = pathOf('a-folder');
    mkdirSync(path);
    expect(() => readConfig({ SKEP_CONFIG: path })).toThrow(`SKEP_CONFIG: names the file ${path}, which is a folder`);
  });
});

test('each secret without a value gets a warning with its spec and the effect', () => {
  const { specs } = readConfig({ SKEP_CONFIG: file('specs: [{ id: a, agent: { protocol: acp, command: [x], secrets: [SET, UNSET, EMPTY] } }, { id: b, agent: { protocol: acp, command: [x], secrets: [UNSET] } }]') });
  expect(unsetSecrets(specs, { SET: 'x', EMPTY: '' }).map(({ detail }) => detail)).toEqual([
    expect.stringMatching(/^UNSET is not set: .*the spec a will fail to start/),
    expect.stringMatching(/^EMPTY is empty: .*the spec a /),
    expect.stringMatching(/^UNSET is not set: .*the spec b will fail to start/),
  ]);
  const own = readConfig({ SKEP_CONFIG: file('specs: [{ id: a, command: [x], secrets: [UNSET] }]') });
  expect(unsetSecrets(own.specs, {}).map(({ detail }) => detail)).toEqual([expect.stringMatching(/^UNSET is not set: each sandbox of the spec a will fail to start/)]);
  expect(unsetSecrets(null, {})).toEqual([]);
});
