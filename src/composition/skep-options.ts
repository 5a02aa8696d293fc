import type { ContainerModule } from 'inversify';
import { z } from 'zod';
import { dnsLabel } from '../domain/dns-label.ts';
import type { Clock } from '../ports/clock.ts';
import type { ListingCache } from '../ports/listing-cache.ts';
import type { Logger } from '../ports/logger.ts';
import type { Random } from '../ports/random.ts';
import { ConfigError } from './config/config-error.ts';
import { positiveInteger } from './config/field-schemas.ts';
import { limitFields, specSchema } from './config/config-schema.ts';
import { type FieldProblem, problemsIn, toConfigProblem } from './config/field-problems.ts';
import { settingsSchema } from './config/settings.ts';
import { asksForContainer, conflictsIn } from './config/spec-conflicts.ts';
import { adapterProblemsIn, customForm, isCustomAdapter, isObjectWith, type OwnAdapters, protocolNames } from './wiring/custom-adapters.ts';

const { github_token: token, github_url: url, gitlab_url: gitLabUrl, ...setting } = settingsSchema.shape;
const milliseconds = positiveInteger('30000', 'milliseconds');
const count = positiveInteger('10');
const path = z.string().min(1, 'is empty').describe('a path, for example /var/lib/skep');

const customAdapter = <O extends keyof OwnAdapters, Deps = AdapterDeps>(option: O) =>
  z.custom<Own<OwnAdapters[O], Deps>>((given) => isCustomAdapter<O, Deps>(given, option)).describe(customForm(option));

const localGit = z.strictObject({
  /** The folder that contains the repositories. Default: the working directory. */
  root: setting.local_git_root,
  timeoutMs: milliseconds,
  concurrency: count,
}).partial().extend({ provider: z.literal('local') });

const gitHost = {
  timeoutMs: milliseconds,
  concurrency: count,
  httpHosts: setting.git_http_hosts,
};

const gitHubApp = z.strictObject({
  appId: positiveInteger('123456'),
  installationId: positiveInteger('7890123'),
  privateKey: z.string().min(1, 'is empty').meta({ description: 'a private key in PEM', secret: true }),
}).describe('a mapping of appId, installationId and privateKey');

const gitHub = z.strictObject({
  ...gitHost,
  token,
  /** A GitHub App instead of a token. */
  app: gitHubApp,
  /** The URL of the REST API. GitHub Enterprise: `https://HOST/api/v3`. Default: github.com's API. */
  url,
}).partial().extend({ provider: z.literal('github') });

const gitLab = z.strictObject({
  ...gitHost,
  token: setting.gitlab_token,
  url: gitLabUrl,
}).partial().extend({ provider: z.literal('gitlab') });

const processRuntime = z.strictObject({
  /** Default: `sandboxes` in the data folder, or a temporary folder, which is removed with its sandboxes on close. */
  root: path,
}).partial().extend({ kind: z.literal('process') });

const dockerRuntime = z.strictObject({
  /** The engine's address: `unix://`, `tcp://`, `ssh://`. Default: Docker's environment variables, then Docker's default. */
  host: setting.docker_host,
  /** The address on the engine's machine to which ports are bound. Default: loopback. */
  publishAddress: setting.docker_publish_address,
  /** The host name in `exposed_urls`. Default: that of a remote engine, otherwise the publish address. */
  urlHost: setting.docker_url_host,
  /** Whether firewall rules keep isolated sandboxes from reaching the engine's machine. Default: true. */
  firewall: z.boolean(),
  /**
   * A lower-case DNS label that distinguishes the deployment's containers from others. Never use one for two deployments. Default: the id
   * in the data folder, or a new id each time; then the containers are removed on close.
   */
  deployment: z.string().regex(dnsLabel, 'is not a lower-case DNS label').describe('a lower-case DNS label, for example main'),
}).partial().extend({ kind: z.literal('docker') });

const gitProvider = z.discriminatedUnion('provider', [localGit, gitHub, gitLab]);
const runtime = z.discriminatedUnion('kind', [dockerRuntime, processRuntime]);
/** `sqlite`: on disk, in the data folder. `memory`: lost when the process ends. */
const store = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('sqlite'), dataDir: path }), z.strictObject({ kind: z.literal('memory') }),
]);
/** API keys in the store, and one static key. */
const auth = z.strictObject({ kind: z.literal('api-keys'), staticKey: setting.api_key });

/**
 * All options have a default: local git, the process runtime, a store in memory (nothing is written to disk without `dataDir` or `store`),
 * API keys. Each port accepts your own adapter, see {@link Own}. `createSkep` closes what it creates.
 */
export const optionsSchema = z.strictObject({
  /** The providers in order. The first serves repository names without a host. */
  git: z.array(
    z.union([customAdapter('git'), gitProvider])
      .describe("the provider github, gitlab or local, for example { provider: 'github', token }, or an adapter of your own"),
  ).min(1).readonly().describe("a list of git providers, for example [{ provider: 'github', token }]"),
  runtime: z.union([customAdapter('runtime'), runtime])
    .describe("the kind docker or process, for example { kind: 'docker' }, or an adapter of your own"),
  store: z.union([customAdapter<'store', SystemDeps>('store'), store])
    .describe("the kind sqlite or memory, for example { kind: 'sqlite', dataDir }, or an adapter of your own"),
  auth: z.union([customAdapter('auth'), auth])
    .describe("the kind api-keys, for example { kind: 'api-keys', staticKey }, or an adapter of your own"),
  probe: customAdapter('probe'),
  /** Fetches repositories to this machine. Default: mirrors in the data folder, made by the git program. */
  checkouts: customAdapter('checkouts'),
  /** The protocols of the specs' agents. Default: `acp`. */
  protocols: z.array(customAdapter('protocols')).readonly().describe('a list of protocols of your own'),
  /** Returns the values of secrets that the specs' agents name. Default: the environment of this process. */
  secrets: customAdapter('secrets'),
  clock: customAdapter<'clock', Deployment>('clock'),
  random: customAdapter<'random', Deployment>('random'),
  /** Default: warnings and errors, as JSON lines on standard error. */
  logger: customAdapter<'logger', Deployment>('logger'),
  /** Modules, loaded in order after Skep's own. A module's services are closed only if their factory adds them to `tokens.closers`. */
  modules: z.array(z.custom<ContainerModule>((given) => isObjectWith(given, ['load']), 'is not a module')).readonly()
    .describe('a list of container modules of inversify'),
  /** The folder for the embedded store, the deployment's id and the process runtime's workspaces. */
  dataDir: path,
  /** The `<product>` word in the paths of microagents and setup scripts, and in publications. Default: `skep`. */
  product: setting.product,
  specs: z.array(specSchema).min(1).readonly().describe("a list of sandbox specs, for example [{ id: 'node', image: 'node:26' }]"),
  limits: z.strictObject({
    runningPerOwner: limitFields.running_per_owner.nullable(),
    running: limitFields.running.nullable(),
    existingPerOwner: limitFields.existing_per_owner.nullable(),
    existing: limitFields.existing.nullable(),
    conversationsPerOwner: limitFields.conversations_per_owner.nullable(),
    conversations: limitFields.conversations.nullable(),
    conversationsPerSandbox: limitFields.conversations_per_sandbox.nullable(),
    /** Commands that can run in one sandbox at a time. Default: 100. */
    executionsPerSandbox: limitFields.executions_per_sandbox.nullable(),
  }).partial().describe('a mapping of limits, for example { runningPerOwner: 5, existing: 500 }'),
  /** At a limit on running sandboxes: refuse the start or resumption, or pause a long idle sandbox for it. Default: `refuse`. */
  whenFull: limitFields.when_full,
  /** In percent. Above it no sandbox starts, and stopped ones with a `delete_after` are deleted early. 100: no limit. Default: 90. */
  diskUsedPercent: z.int().min(1, 'is below 1').max(100, 'is above 100').describe('a percentage from 1 to 100, for example 90'),
  /** The memory for output of all agents, in bytes. Above it, agents are slowed down. Default: 256 MiB. */
  agentMemoryBytes: positiveInteger('16777216', 'bytes'),
  /** How many sandboxes can start at the same time. Default: twice the number of cores. */
  startsAtOnce: positiveInteger('4'),
  /** The time limit of a repository's setup script, in milliseconds. Default: 5 minutes. */
  setupTimeoutMs: milliseconds,
  /** How long `close` waits for turns of agents that need this process, in milliseconds. Default: 0. */
  drainTimeoutMs: milliseconds,
  /** How long events are kept, in milliseconds. Default: 30 days. */
  keepEventsForMs: milliseconds,
  /** The interval of the sweep that reconciles all sandboxes, in milliseconds. Default: 10,000. */
  sweepEveryMs: milliseconds,
  /** How long a sandbox without a record in the store is kept, in milliseconds. Default: 24 hours; 0 if the store is in memory. */
  quarantineForMs: milliseconds,
  /** How long a request waits before it returns an interim status such as `PAUSING`, in milliseconds. Default: 20,000. */
  answerWithinMs: milliseconds,
}).partial();

/** The options of `createSkep`. They are checked: an unknown or wrong option is refused, with the accepted values. */
export interface SkepOptions extends Omit<z.input<typeof optionsSchema>, 'specs'> {
  /** The specs in the form of the configuration file. The first is the default. Default: one ready-made spec, `workspace`. */
  readonly specs?: readonly SpecOptions[];
}

export type CheckedOptions = z.output<typeof optionsSchema>;
/** A sandbox spec in the form of the configuration file. */
export type SpecOptions = ReadonlyDeep<z.input<typeof specSchema>>;
export type LocalGitOptions = z.output<typeof localGit>;
/** GitHub with a token, with an App installation, or without a credential for public repositories. */
export type GitHubOptions = z.output<typeof gitHub>;
export type GitHubApp = z.output<typeof gitHubApp>;
/** GitLab with a token, or without one for public projects. */
export type GitLabOptions = z.output<typeof gitLab>;
export type GitOptions = z.output<typeof gitProvider>;
/** Sandboxes as process groups of this machine, without isolation. */
export type ProcessRuntimeOptions = z.output<typeof processRuntime>;
/** Sandboxes as containers of a Docker engine. */
export type DockerRuntimeOptions = z.output<typeof dockerRuntime>;
export type StoreOptions = z.output<typeof store>;
export type ApiKeyAuthOptions = z.output<typeof auth>;

type ReadonlyDeep<T> = T extends object ? { readonly [K in keyof T]: ReadonlyDeep<T[K]> } : T;
/** The information about the deployment that a factory in the options gets. */
export interface Deployment {
  /** The `<product>` word in the paths of microagents and setup scripts, and in publications. */
  readonly product: string;
  /** Null: nothing must be written to disk. */
  readonly dataDir: string | null;
  /** Returns a lower-case DNS label that is unique on the engine. It is kept in the data folder; without one, it is new each time. */
  deploymentId(): string;
}

/** The dependencies of a store's factory. */
export interface SystemDeps extends Deployment {
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
}

/** The dependencies of an adapter's factory. */
export interface AdapterDeps extends SystemDeps {
  /** The store's cache, for data that an adapter often requests from a host. */
  readonly listingCache: ListingCache;
}

/**
 * Your own adapter, ready-made or as a factory, which `createSkep` calls once. The deployment's `close` calls `close` of a factory's
 * adapter, if it has one. You close a ready-made adapter yourself, after the deployment.
 */
export type Own<T, Deps = AdapterDeps> = T | ((deps: Deps) => T | Promise<T>);

/** Checks the options. Throws a {@link ConfigError} with all problems. */
export function checkOptions(options: SkepOptions): CheckedOptions {
  const { runtime = {}, specs } = options;
  const report = (problems: readonly FieldProblem[]): void => {
    if (problems.length > 0) throw new ConfigError(problems.map((each) => toConfigProblem(optionsSchema, each, specs)));
  };
  const isDocker = isObjectWith(runtime, ['kind']) && runtime.kind === 'docker';
  const ofAdapters = adapterProblemsIn(options);
  // A wrong custom adapter also fails the schema. Only the adapter's own problem is reported.
  const ofSchema = problemsIn(optionsSchema, options).filter(({ path }) =>
    !ofAdapters.some((each) => each.path.every((part, index) => path[index] === part)));
  report([...ofSchema, ...conflictsIn(specs, isDocker, protocolNames(options)), ...ofAdapters]);
  const checked = optionsSchema.parse(options);
  const isRuntimeDefault = options.runtime === undefined && options.modules === undefined;
  const isolated = isRuntimeDefault ? checked.specs?.find(asksForContainer) : undefined;
  if (isolated !== undefined) {
    const problem = `is missing, but the spec ${isolated.id} needs a container; the default runtime, process, would run it without one`;
    report([{ path: ['runtime'], problem }]);
  }
  return checked;
}
