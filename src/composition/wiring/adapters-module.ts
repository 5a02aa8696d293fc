import { randomUUID } from 'node:crypto';
import { existsSync, realpathSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { type Bind, ContainerModule } from 'inversify';
import { isInside } from '../../adapters/shared/is-inside.ts';
import { defaultProtocol } from '../../domain/agent.ts';
import type { AgentProtocol } from '../../ports/agent-protocol.ts';
import type { GitProvider } from '../../ports/git-provider.ts';
import type { Logger } from '../../ports/logger.ts';
import type { RepositoryCheckouts } from '../../ports/repository-checkouts.ts';
import type { SandboxRuntime } from '../../ports/sandbox-runtime.ts';
import type { Store } from '../../ports/store.ts';
import { ConfigError } from '../config/config-error.ts';
import { ensureDeploymentFile, newDeploymentId } from '../config/deployment-file.ts';
import { omitUndefined } from '../config/field-schemas.ts';
import type {
  AdapterDeps, CheckedOptions, DockerRuntimeOptions, GitOptions, ProcessRuntimeOptions, StoreOptions, SystemDeps,
} from '../skep-options.ts';
import { storeWarningText } from '../store-warnings.ts';
import { isCustomAdapter, provideCustom } from './custom-adapters.ts';
import { provide, token, tokens } from './tokens.ts';

const adapterDeps = token<AdapterDeps>('AdapterDeps');
const { deployment, system, clock, random, logger, store, closers } = tokens;

/** Binds the adapters that the options choose. An adapter is loaded and opened at its first use. */
export function adaptersModule(options: CheckedOptions): ContainerModule {
  return new ContainerModule(({ bind }) => {
    const folders = ownFolders(options);
    bindSystem(bind, options);
    bindStore(bind, options);
    provide(bind, adapterDeps, { system, store }, ({ system, store: { listingCache } }) => ({ ...system, listingCache }));
    for (const [index, git] of (options.git ?? [{ provider: 'local' }]).entries()) {
      const given = isCustomAdapter(git, 'git') ? git : (deps: AdapterDeps) => createGitProvider(git, options, folders, deps);
      provideCustom(bind, 'git', adapterDeps, given, `git[${index}]`);
    }
    const { runtime = { kind: 'process' }, checkouts, auth = { kind: 'api-keys' } } = options;
    if (isCustomAdapter(runtime, 'runtime')) provideCustom(bind, 'runtime', adapterDeps, runtime);
    else {
      provide(bind, tokens.runtime, { closers }, ({ closers }) =>
        (runtime.kind === 'docker' ? openDockerRuntime(runtime, options, closers) : openProcessRuntime(runtime, folders, closers)));
    }
    if (checkouts !== undefined) provideCustom(bind, 'checkouts', adapterDeps, checkouts);
    else provide(bind, tokens.checkouts, { closers }, ({ closers }) => createMirrors(folders, closers));
    for (const [index, protocol] of (options.protocols ?? [acp]).entries()) {
      provideCustom(bind, 'protocols', adapterDeps, protocol, `protocols[${index}]`);
    }
    provideCustom(bind, 'secrets', adapterDeps, options.secrets ?? { get: (name) => process.env[name] ?? null });
    provideCustom(bind, 'probe', adapterDeps, options.probe ?? loadProbe);
    if (isCustomAdapter(auth, 'auth')) provideCustom(bind, 'auth', adapterDeps, auth);
    else {
      provide(bind, tokens.auth, { clock, random, store }, async ({ store: { apiKeys }, ...own }) => {
        const { createApiKeyAuth } = await import('../../adapters/auth/api-keys/index.ts');
        return createApiKeyAuth({ ...omitUndefined(auth), ...own, keys: apiKeys });
      });
    }
  });
}

const loadClock = async () => (await import('../../adapters/clock/system-clock.ts')).createSystemClock();
const loadRandom = async () => (await import('../../adapters/random/system-random.ts')).createSystemRandom();
const loadProbe = async () => (await import('../../adapters/readiness-probe/network-probe.ts')).createNetworkProbe();
const loadLogger = async () => (await import('../../adapters/logger/pino-logger.ts')).createPinoLogger({ level: 'warn' });

function bindSystem(bind: Bind, options: CheckedOptions): void {
  provideCustom(bind, 'clock', deployment, options.clock ?? loadClock);
  provideCustom(bind, 'random', deployment, options.random ?? loadRandom);
  provideCustom(bind, 'logger', deployment, options.logger ?? loadLogger);
  provide(bind, system, { deployment, clock, random, logger }, ({ deployment, ...own }) => ({ ...deployment, ...own }));
}

function bindStore(bind: Bind, { store: given, dataDir }: CheckedOptions): void {
  const chosen = given ?? (dataDir === undefined ? { kind: 'memory' as const } : { kind: 'sqlite' as const, dataDir });
  const own = isCustomAdapter<'store', SystemDeps>(chosen, 'store') ? chosen : (deps: SystemDeps) => openStore(chosen, deps);
  provideCustom(bind, 'store', system, own);
}

async function openStore(options: StoreOptions, { logger }: Pick<SystemDeps, 'logger'>): Promise<Store> {
  if (options.kind === 'sqlite') return await openSqliteStore(options.dataDir, logger);
  const { createInMemoryStore } = await import('../../adapters/store/sqlite/index.ts');
  return createInMemoryStore();
}

/** Opens the store of a data folder for a server. If `deployment.json` is lost, writes it again with the id in the store. */
export async function openSqliteStore(dataDir: string, logger: Pick<Logger, 'warn'>): Promise<Store> {
  const { createSqliteStore } = await import('../../adapters/store/sqlite/index.ts');
  return await createSqliteStore({
    dataDir,
    deploymentId: (kept) => ensureDeploymentFile(dataDir, kept ?? undefined).id,
    warn: (warning) => logger.warn({ ...warning }, storeWarningText(warning)),
    onDamaged: (record) => logger.warn({ ...record }, 'a sweep left out a record that is damaged; restore it from a backup'),
  });
}

const loadAcp = async () => (await import('../../adapters/agent-protocol/acp/index.ts')).createAcpProtocol();

/** Loaded at its first use. It is always bound, because a record may have an agent that no spec has any more. */
const acp: AgentProtocol = {
  name: defaultProtocol,
  open: async (request, signal) => await (await loadAcp()).open(request, signal),
  resume: async (request) => await (await loadAcp()).resume(request),
};

async function createGitProvider(
  options: GitOptions, all: CheckedOptions, own: OwnFolders, { clock, listingCache }: AdapterDeps,
): Promise<GitProvider> {
  switch (options.provider) {
    case 'local': {
      const { createLocalGitProvider } = await import('../../adapters/git-provider/local/index.ts');
      const { root = process.cwd() } = options;
      return createLocalGitProvider({ ...omitUndefined(options), root, excludedFolders: foldersOfOwners(root, all, own) });
    }
    case 'github': {
      const { createGitHubProvider } = await import('../../adapters/git-provider/github/index.ts');
      return createGitHubProvider({ ...omitUndefined(options), clock, listingCache });
    }
    case 'gitlab': {
      const { createGitLabProvider } = await import('../../adapters/git-provider/gitlab/index.ts');
      return createGitLabProvider({ ...omitUndefined(options), clock, listingCache });
    }
  }
}

/**
 * Returns the folders with the sandboxes and mirrors of all owners. The provider must not serve them, because its repositories are for
 * everybody. Throws a {@link ConfigError} if the root lies in one.
 */
function foldersOfOwners(root: string, { dataDir, runtime }: CheckedOptions, own: OwnFolders): readonly string[] {
  const sandboxes = !isCustomAdapter(runtime, 'runtime') && runtime?.kind === 'process' ? runtime.root : undefined;
  const folders = [dataDir, sandboxes, own.sandboxes, own.repositories].filter((folder) => folder !== undefined);
  const around = folders.find((folder) => existsSync(folder) && existsSync(root) && isInside(realpathSync(root), realpathSync(folder)));
  if (around === undefined) return folders;
  const problem = `is ${root}; the sandboxes of all owners are in ${around}, and every key could read them`;
  const form = 'a folder outside of it, for example /srv/git; it is the root of the provider local, by default the working directory';
  throw new ConfigError([{ name: 'SKEP_LOCAL_GIT_ROOT', problem, form }]);
}

interface OwnFolders {
  readonly sandboxes: string;
  readonly repositories: string;
  /** True if they are removed on close. */
  readonly isTemporary: boolean;
}

/** Returns the folders of the process runtime and of the mirrors, which create them. Without a data folder they are temporary. */
function ownFolders({ dataDir }: CheckedOptions): OwnFolders {
  const id = randomUUID();
  const at = (name: string): string => (dataDir === undefined ? join(tmpdir(), `skep-${name}-${id}`) : join(resolve(dataDir), name));
  return { sandboxes: at('sandboxes'), repositories: at('repositories'), isTemporary: dataDir === undefined };
}

function removeOnClose(folder: string, closers: AsyncDisposableStack): void {
  closers.defer(() => rm(folder, { recursive: true, force: true }));
}

async function createMirrors({ repositories: root, isTemporary }: OwnFolders, closers: AsyncDisposableStack): Promise<RepositoryCheckouts> {
  const { createGitMirror } = await import('../../adapters/repository-checkouts/git-mirror/index.ts');
  if (isTemporary) removeOnClose(root, closers);
  return closers.adopt(createGitMirror({ root }), (mirror) => mirror.close());
}

type DeploymentOptions = Pick<CheckedOptions, 'dataDir' | 'store'>;

// The stack closes the runtime. It also removes its sandboxes if no later process could find them.

async function openProcessRuntime(
  options: ProcessRuntimeOptions, { sandboxes, isTemporary }: OwnFolders, closers: AsyncDisposableStack,
): Promise<SandboxRuntime> {
  const { createProcessRuntime } = await import('../../adapters/sandbox-runtime/process/index.ts');
  const { root = sandboxes } = options;
  const isRemoved = isTemporary && options.root === undefined;
  if (isRemoved) removeOnClose(root, closers);
  const opened = closers.adopt(createProcessRuntime({ ...omitUndefined(options), root }), (runtime) => runtime.close());
  if (isRemoved) closers.defer(() => removeSandboxes(opened));
  return opened;
}

async function openDockerRuntime(
  options: DockerRuntimeOptions, lifetime: DeploymentOptions, closers: AsyncDisposableStack,
): Promise<SandboxRuntime> {
  const { createDockerRuntime } = await import('../../adapters/sandbox-runtime/docker/index.ts');
  const persistent = options.deployment ?? persistentName(lifetime);
  const deployment = persistent ?? newDeploymentId();
  // `close` removes the runtime's networks if no container is left.
  const opened = closers.adopt(createDockerRuntime({ ...omitUndefined(options), deployment }), (runtime) => runtime.close());
  if (persistent === undefined) closers.defer(() => removeSandboxes(opened));
  return opened;
}

/** Returns the deployment's name in the data folder; undefined if no record outlives the process. */
function persistentName({ dataDir, store }: DeploymentOptions): string | undefined {
  if (dataDir !== undefined) return ensureDeploymentFile(dataDir).id;
  if (store === undefined || ('kind' in store && store.kind === 'memory')) return undefined;
  if ('kind' in store) return ensureDeploymentFile(store.dataDir).id;
  throw new TypeError(
    "createSkep: the docker runtime needs a name that lasts as long as the store's records: "
    + "give it dataDir, or runtime: { kind: 'docker', deployment: 'a-name' }.",
  );
}

/** Removes all sandboxes of a deployment that ends with its process, because no later process could find them. */
async function removeSandboxes(runtime: SandboxRuntime & { settled(): Promise<void> }): Promise<void> {
  // An abandoned start still creates a sandbox.
  await runtime.settled();
  const sandboxes = await runtime.list();
  await Promise.allSettled(sandboxes.map(({ id }) => runtime.remove(id)));
}
