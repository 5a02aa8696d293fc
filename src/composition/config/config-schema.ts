import { z } from 'zod';
import { dockerSpecSchema } from '../../adapters/sandbox-runtime/docker/spec-options.ts';
import { inCamelCase } from '../../adapters/shared/snake-case.ts';
import { dnsLabel } from '../../domain/dns-label.ts';
import { defaultAgentTimes } from '../../domain/agent.ts';
import { permissionPolicies } from '../../domain/permission.ts';
import {
  defaultIsolation, defaultReadyWithinMs, defaultResources, defaultRest, type ReadinessRule, sandboxSpec, type SandboxSpec, wakesOnAccess,
} from '../../domain/sandbox-spec.ts';
import type { CheckedOptions } from '../skep-options.ts';
import {
  command, duration, omitUndefined, orUnlimited, portNumber, positiveInteger, size, variableName, variables,
} from './field-schemas.ts';
import { type Settings, settingsSchema } from './settings.ts';

const port = z.strictObject({
  name: z.string().regex(/^[A-Za-z][A-Za-z0-9_-]*$/, 'is not a name')
    .describe('a name of letters, digits, - and _ that begins with a letter, for example AGENT_SERVER'),
  port: portNumber(),
  public: z.boolean().describe('true if the proxy needs no key for the port, or false').optional(),
  wants_session_key: z.boolean().describe("true if the proxy sends the sandbox's own key to the port, or false").optional(),
  keep_prefix: z.boolean().describe('true if requests to the port keep the path prefix of the proxy, or false').optional(),
}).describe('a mapping of a name and a port, for example { name: AGENT_SERVER, port: 8000 }')
  .transform(({ wants_session_key: wantsSessionKey, keep_prefix: keepsPrefix, ...same }) =>
    ({ ...same, ...omitUndefined({ wantsSessionKey, keepsPrefix }) }));

const ready = z.strictObject({
  http: z.string().regex(/^\//, 'does not begin with a slash')
    .describe('the path of a URL that responds when the sandbox is ready, for example /health'),
  tcp: z.literal(true).describe('true: the sandbox is ready when its port accepts a connection and keeps it open'),
  port: portNumber().describe("one of the spec's ports, for http or tcp, for example 8000"),
  within: duration('60s'),
}).partial().describe('a mapping that says when the sandbox is ready, for example { http: /health, port: 8000, within: 60s }')
  .transform(({ http, tcp, port, within: withinMs = defaultReadyWithinMs }): ReadinessRule => {
    if (port === undefined || (http === undefined && tcp === undefined)) return { probe: { kind: 'none' }, withinMs };
    return { probe: http === undefined ? { kind: 'tcp', port } : { kind: 'http', port, path: http }, withinMs };
  });

const resources = z.strictObject({
  cpus: orUnlimited(z.number().positive().describe('a number of CPUs above 0, for example 2 or 0.5')),
  memory: orUnlimited(size('2GiB')),
  pids: orUnlimited(positiveInteger('512', 'processes and threads')),
  open_files: orUnlimited(positiveInteger('16384', 'open files')),
  log: orUnlimited(size('20MiB')),
  disk: orUnlimited(size('10GiB')),
}).partial().describe('a mapping with the limits of a sandbox, for example { cpus: 2, memory: 2GiB, pids: 512 }')
  .transform(({ memory: memoryBytes, open_files: openFiles, log: logBytes, disk: diskBytes, ...same }) =>
    ({ ...defaultResources, ...omitUndefined({ ...same, memoryBytes, openFiles, logBytes, diskBytes }) }));

const user = z
  .union([z.string(), z.int().nonnegative().transform(String)], { error: 'is not a user' })
  .pipe(z.string().regex(/^\w[\w.-]*(:\w[\w.-]*)?$/, 'is not a user'));

const isolation = z.strictObject({
  read_only_root: z.boolean().describe('true if everything but the working directory and /tmp is read-only, or false'),
  network: z.enum(['isolated', 'shared', 'none']).describe('isolated (it reaches no other sandbox), shared or none'),
  user: user.describe('a user of the image, as a name, a number, or user:group, for example "1000:1000"'),
}).partial()
  .describe('a mapping with settings of the isolation, for example { read_only_root: true, network: none, user: "1000" }')
  .transform(({ read_only_root: readOnlyRoot, ...same }) => ({ ...defaultIsolation, ...omitUndefined({ ...same, readOnlyRoot }) }));

/** `skep.` is reserved for labels that Skep sets. */
const labels = z.record(
  z.string().min(1, 'is empty').regex(/^(?!skep\.)/, 'begins with skep., which is reserved'),
  z.string().describe('a text, for example shop'),
).describe('a mapping of labels, each a text, for example { team: shop }');

const rest = z.strictObject({
  freeze_after: duration('15m'),
  stop_after: duration('2h'),
  delete_after: duration('10d'),
  max_life: duration('30d'),
}).partial().describe('a mapping of durations, for example { freeze_after: 15m, stop_after: 2h, delete_after: 10d, max_life: 30d }')
  .transform(({ freeze_after: freezeAfterMs, stop_after: stopAfterMs, delete_after: deleteAfterMs, max_life: maxLifeMs }) =>
    ({ ...defaultRest, ...omitUndefined({ freezeAfterMs, stopAfterMs, deleteAfterMs, maxLifeMs }) }));

const elsewhere = "in the server's environment and not in this file, for example";

// Secret, because a user may write the value of a secret by mistake.
const secretNames = z.array(variableName.describe(`the name of a variable, whose value is ${elsewhere} ANTHROPIC_API_KEY`))
  .meta({ description: `a list of names of variables, whose values are ${elsewhere} [ANTHROPIC_API_KEY]`, secret: true });

const agent = z.strictObject({
  protocol: z.string().describe('the name of a protocol, for example acp, which is the Agent Client Protocol'),
  command: command('[opencode, acp]'),
  env: variables("a mapping of variables for the agent's process, each a text, for example { MODE: quick }").default({}),
  secrets: secretNames.default([]),
  auth_method: z.string().min(1).describe("the id of a login method of the agent, for example api-key").optional(),
  permissions: z.enum(permissionPolicies).default('ask')
    .describe(`${permissionPolicies.slice(0, -1).join(', ')} or ${permissionPolicies.at(-1)}`),
  start_within: duration('60s').default(defaultAgentTimes.startWithinMs),
  turn_timeout: duration('1h').default(defaultAgentTimes.turnTimeoutMs),
  permission_timeout: duration('24h').default(defaultAgentTimes.permissionTimeoutMs),
}).describe('a mapping that says which agent runs, for example { protocol: acp, command: [opencode, acp], secrets: [ANTHROPIC_API_KEY] }')
  .transform(({ auth_method = null, start_within, turn_timeout, permission_timeout, ...same }) => ({
    ...same, authMethod: auth_method, startWithinMs: start_within, turnTimeoutMs: turn_timeout, permissionTimeoutMs: permission_timeout,
  }));

const pool = z.strictObject({ size: z.int().min(0).describe('a whole number of sandboxes, 0 or more, for example 2') })
  .describe('a mapping that says how many sandboxes are kept running, for example { size: 2 }');

/** A sandbox spec in the form of the file. Its output is the domain's form. */
export const specSchema = z.strictObject({
  id: z.string().regex(dnsLabel, 'is not a lower-case name of letters, digits and dashes')
    .describe('a name of at most 63 lower-case letters, digits and dashes, for example node-26'),
  description: z.string().describe('a text, for example "Node 26 with git"'),
  image: z.string().regex(/^[^\s-]\S*$/, 'is not the name of an image').describe('the name of an image, for example node:26'),
  command: command('[sh, -c, "exec sleep infinity"]'),
  working_dir: z.string().regex(/^\/[^\0]*$/, 'is not an absolute path')
    .describe('an absolute path inside the sandbox, for example /workspace'),
  initial_env: variables('a mapping of variables, each a text, for example { CI: "1" }'),
  secrets: secretNames,
  allowed_secrets: secretNames,
  allow_plain_secrets: z.boolean()
    .describe('true to allow values that look like credentials in initial_env, command, labels, description and env of a start, or false'),
  session_key_env: variableName
    .describe("the name of the variable with the sandbox's own key, for example SESSION_API_KEY"),
  ports: z.array(port).describe('a list of ports, for example [{ name: AGENT_SERVER, port: 8000 }]'),
  wake_on_access: z.enum(wakesOnAccess)
    .describe('none, freeze (a request to a port resumes frozen sandboxes) or stop (also stopped ones)'),
  ready,
  resources,
  isolation,
  docker: dockerSpecSchema,
  labels,
  rest,
  pool,
  agent,
}).partial().required({ id: true })
  .describe('a sandbox spec, for example { id: node, image: "node:26", command: [sh, -c, "exec sleep infinity"] }')
  .transform(({ id, docker, ...fields }) =>
    sandboxSpec({ ...omitUndefined(inCamelCase(fields)), id, runtimeOptions: omitUndefined({ docker }) }));

export const limitFields = {
  running_per_owner: positiveInteger('5'),
  running: positiveInteger('50'),
  existing_per_owner: positiveInteger('50'),
  existing: positiveInteger('500'),
  conversations_per_owner: positiveInteger('100'),
  conversations: positiveInteger('1000'),
  conversations_per_sandbox: positiveInteger('5'),
  executions_per_sandbox: orUnlimited(positiveInteger('100')),
  when_full: z.enum(['refuse', 'pause_idle']).describe('refuse, or pause_idle to freeze the sandbox that was idle the longest'),
};

const limits = z.strictObject({
  ...limitFields,
  requests_per_minute: orUnlimited(positiveInteger('6000')),
  streams_per_key: orUnlimited(positiveInteger('50')),
  connections_per_sandbox: orUnlimited(positiveInteger('1000')),
}).partial().prefault({}).describe('a mapping of limits, for example { running_per_owner: 5, existing: 500, when_full: refuse }');

export const fileSchema = z.object({
  specs: z.array(specSchema).min(1).describe('a list of sandbox specs, for example [{ id: node, image: "node:26" }]'),
  starts: z.strictObject({ at_once: positiveInteger('4'), setup_timeout: duration('5m') }).partial()
    .describe('a mapping that says how starts are done, for example { at_once: 4, setup_timeout: 5m }'),
  events: z.strictObject({ keep_for: duration('30d').optional() })
    .describe('a mapping that says how events are kept, for example { keep_for: 30d }'),
  quarantine: z.strictObject({ keep_for: duration('24h').optional() })
    .describe('a mapping that says how sandboxes without a record are kept, for example { keep_for: 24h }'),
}).partial().extend({ limits });

/** The whole content of the file. Secret settings are refused there. */
export const configSchema = z.strictObject({ ...settingsSchema.shape, ...fileSchema.shape });

export type FileConfig = z.output<typeof fileSchema>;

export interface SkepConfig extends Settings {
  /** The options of `createSkep`, without the runtime, which is chosen later. */
  readonly options: CheckedOptions;
  /** Null: the default specs. */
  readonly specs: readonly SandboxSpec[] | null;
  /** Null: unlimited. */
  readonly requestsPerMinute: number | null;
  readonly streamsPerKey: number | null;
  readonly connectionsPerSandbox: number | null;
  /** The source of each key that is set. */
  readonly sources: Readonly<Record<string, 'environment' | 'file'>>;
  /** Warnings about values that are allowed, but probably a mistake. */
  readonly warnings: readonly string[];
}
