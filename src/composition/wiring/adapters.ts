import { join, resolve } from 'node:path';
import { type Bind, ContainerModule } from 'inversify';
import type { AgentProtocol } from '../../ports/agent-protocol.ts';
import type { Auth } from '../../ports/auth.ts';
import type { GitProvider } from '../../ports/git-provider.ts';
import type { RepositoryCheckouts } from '../../ports/repository-checkouts.ts';
import type { SandboxRuntime } from '../../ports/sandbox-runtime.ts';
import type { Store } from '../../ports/store.ts';
import type { AdapterDeps, GitOptions, Own, SkepOptions, StoreOptions, SystemDeps } from '../options.ts';
import { provideOwn, temporaryFolder, unknownChoice } from './custom-adapters.ts';
import { openRuntime } from './runtime.ts';
import { provide, token, tokens } from './tokens.ts';

const adapterDeps = token<AdapterDeps>('AdapterDeps');
const { deployment, system, clock, random, logger, store, closers } = tokens;

/** The adapters of the ports, as the options choose them. An adapter is loaded and opened when something asks for it. */
export function adaptersModule(options: SkepOptions): ContainerModule {
  return new ContainerModule(({ bind }) => {
    bindSystem(bind, options);
    bindStore(bind, options);
    provide(bind, adapterDeps, [system, store], (system, { listingCache }) => ({ ...system, listingCache }));
    for (const git of options.git ?? [{ provider: 'local' }]) {
      const given = isOwn<GitProvider>(git, 'listFiles') ? git : (deps: AdapterDeps) => createGitProvider(git, deps);
      provideOwn(bind, tokens.gitProvider, adapterDeps, given);
    }
    const { runtime = { kind: 'process' }, checkouts, auth = { kind: 'api-keys' } } = options;
    if (isOwn<SandboxRuntime>(runtime, 'inspect')) provideOwn(bind, tokens.runtime, adapterDeps, runtime);
    else provide(bind, tokens.runtime, [closers], (closers) => openRuntime(runtime, options, closers));
    if (checkouts !== undefined) provideOwn(bind, tokens.checkouts, adapterDeps, checkouts);
    else provide(bind, tokens.checkouts, [deployment, closers], ({ dataDir }, closers) => createMirrors(dataDir, closers));
    for (const protocol of options.protocols ?? defaultProtocols(options)) provideOwn(bind, tokens.agentProtocol, adapterDeps, protocol);
    provideOwn(bind, tokens.secrets, adapterDeps, options.secrets ?? { get: (name) => process.env[name] ?? null });
    provideOwn(bind, tokens.probe, adapterDeps, options.probe ?? (async () => {
      const { createNetworkProbe } = await import('../../adapters/readiness-probe/network/index.ts');
      return createNetworkProbe();
    }));
    if (isOwn<Auth>(auth, 'authenticate')) provideOwn(bind, tokens.auth, adapterDeps, auth);
    else {
      provide(bind, tokens.auth, [clock, store], async (clock, { apiKeys }) => {
        const { createApiKeyAuth } = await import('../../adapters/auth/api-keys/index.ts');
        const { kind: _, ...chosen } = auth;
        return createApiKeyAuth({ ...chosen, keys: apiKeys, clock });
      });
    }
  });
}

/** Whether the option is an adapter, or a factory of one, and no choice among Skep's own. Every such adapter has the member. */
function isOwn<T, D = AdapterDeps>(given: unknown, member: keyof T): given is Own<T, D> {
  return typeof given === 'function' || (typeof given === 'object' && given !== null && member in given);
}

/** The clock, the source of randomness and the logger. */
function bindSystem(bind: Bind, options: SkepOptions): void {
  provideOwn(bind, clock, deployment, options.clock ?? (async () => {
    const { createSystemClock } = await import('../../adapters/clock/system-clock.ts');
    return createSystemClock();
  }));
  provideOwn(bind, random, deployment, options.random ?? (async () => {
    const { createSystemRandom } = await import('../../adapters/random/system-random.ts');
    return createSystemRandom();
  }));
  // Without a logger, nothing is logged: the streams of the process belong to the embedder.
  provideOwn(bind, logger, deployment, options.logger ?? (async () => {
    const { createSilentLogger } = await import('../../adapters/logger/silent-logger.ts');
    return createSilentLogger();
  }));
  provide(bind, system, [deployment, clock, random, logger], (deployment, clock, random, logger) => ({
    ...deployment, clock, random, logger,
  }));
}

function bindStore(bind: Bind, { store: given, dataDir }: SkepOptions): void {
  const chosen = given ?? (dataDir === undefined ? { kind: 'memory' as const } : { kind: 'sqlite' as const, dataDir });
  provideOwn(bind, store, system, isOwn<Store, SystemDeps>(chosen, 'sandboxes') ? chosen : () => openStore(chosen));
}

const loadStores = async () => await import('../../adapters/store/sqlite/index.ts');

async function openStore(options: StoreOptions): Promise<Store> {
  switch (options.kind) {
    case 'sqlite':
      return await (await loadStores()).createSqliteStore({ dataDir: options.dataDir });
    case 'memory':
      return (await loadStores()).createInMemoryStore();
    default:
      throw unknownChoice('store', options, 'sqlite or memory as its kind, or is a Store of your own');
  }
}

/** The default protocol is not loaded if no spec has an agent. */
function defaultProtocols({ specs = [] }: SkepOptions): readonly (() => Promise<AgentProtocol>)[] {
  if (!specs.some(({ agent }) => agent !== undefined && agent !== null)) return [];
  return [async () => {
    const { createAcpProtocol } = await import('../../adapters/agent-protocol/acp/index.ts');
    return createAcpProtocol();
  }];
}

async function createGitProvider(options: GitOptions, { clock, listingCache }: AdapterDeps): Promise<GitProvider> {
  switch (options.provider) {
    case 'local': {
      const { createLocalGitProvider } = await import('../../adapters/git-provider/local/index.ts');
      const { provider: _, ...chosen } = options;
      return createLocalGitProvider({ ...chosen, root: chosen.root ?? process.cwd() });
    }
    case 'github': {
      const { createGitHubProvider } = await import('../../adapters/git-provider/github/index.ts');
      const { provider: _, ...chosen } = options;
      return createGitHubProvider({ ...chosen, clock, listingCache });
    }
    case 'gitlab': {
      const { createGitLabProvider } = await import('../../adapters/git-provider/gitlab/index.ts');
      const { provider: _, ...chosen } = options;
      return createGitLabProvider({ ...chosen, clock, listingCache });
    }
    default:
      throw unknownChoice('git', options, 'github, gitlab or local as its provider, or is a GitProvider of your own');
  }
}

/** Creates mirrors in the data folder. Without one they are in a temporary folder, which is removed with the deployment. */
async function createMirrors(dataDir: string | null, closers: AsyncDisposableStack): Promise<RepositoryCheckouts> {
  const { createGitMirror } = await import('../../adapters/repository-checkouts/git-mirror/index.ts');
  const root = dataDir === null ? await temporaryFolder('repositories', closers) : join(resolve(dataDir), 'repositories');
  return createGitMirror({ root });
}
