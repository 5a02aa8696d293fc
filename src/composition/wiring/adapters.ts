import { join, resolve } from 'node:path';
import { type Bind, ContainerModule } from 'inversify';
import type { GitProvider } from '../../ports/git-provider.ts';
import type { RepositoryCheckouts } from '../../ports/repository-checkouts.ts';
import type { AdapterDeps, ApiKeyAuthOptions, GitOptions, SkepOptions, SystemDeps } from '../options.ts';
import { made, temporaryFolder, unknownChoice } from './own-adapters.ts';
import { openRuntime } from './runtime.ts';
import { openStore } from './store.ts';
import { provide, token, tokens } from './tokens.ts';

const systemDeps = token<SystemDeps>('SystemDeps');
const adapterDeps = token<AdapterDeps>('AdapterDeps');
const { deployment, clock, random, logger, store, closers } = tokens;

/** The adapters of the ports, as the options choose them. An adapter is loaded and opened when something asks for it. */
export function adaptersModule(options: SkepOptions): ContainerModule {
  return new ContainerModule(({ bind }) => {
    bindSystem(bind, options);
    provide(bind, store, [systemDeps, closers], async (deps, closers) =>
      await openStore({ dataDir: options.dataDir, store: await made(options.store, deps, closers) }, closers));
    provide(bind, adapterDeps, [systemDeps, store], (system, { listingCache }) => ({ ...system, listingCache }));
    for (const git of options.git ?? [{ provider: 'local' }]) {
      provide(bind, tokens.gitProvider, [adapterDeps, closers], async (deps, closers) =>
        await openGitProvider(await made(git, deps, closers), deps, closers));
    }
    provide(bind, tokens.runtime, [adapterDeps, closers], async (deps, closers) =>
      await openRuntime({ ...options, runtime: await made(options.runtime, deps, closers) }, closers));
    provide(bind, tokens.checkouts, [adapterDeps, closers], async (deps, closers) =>
      (await made(options.checkouts, deps, closers)) ?? (await openGitMirror(options.dataDir, closers)));
    bindAgents(bind, options);
    bindAccess(bind, options);
  });
}

/** The clock, the source of randomness and the logger. */
function bindSystem(bind: Bind, options: SkepOptions): void {
  provide(bind, clock, [deployment, closers], async (deployment, closers) => {
    const { createSystemClock } = await import('../../adapters/clock/system-clock.ts');
    return (await made(options.clock, deployment, closers)) ?? createSystemClock();
  });
  provide(bind, random, [deployment, closers], async (deployment, closers) => {
    const { createSystemRandom } = await import('../../adapters/random/system-random.ts');
    return (await made(options.random, deployment, closers)) ?? createSystemRandom();
  });
  // Without a logger, nothing is logged: the streams of the process belong to the embedder.
  provide(bind, logger, [deployment, closers], async (deployment, closers) => {
    const { createSilentLogger } = await import('../../adapters/logger/silent-logger.ts');
    return (await made(options.logger, deployment, closers)) ?? createSilentLogger();
  });
  provide(bind, systemDeps, [deployment, clock, random, logger], (deployment, clock, random, logger) => ({
    ...deployment, clock, random, logger,
  }));
}

/** The protocols of agents, and their secrets. The default protocol is not loaded if no spec has an agent. */
function bindAgents(bind: Bind, { protocols, secrets, specs = [] }: SkepOptions): void {
  for (const protocol of protocols ?? []) {
    provide(bind, tokens.agentProtocol, [adapterDeps, closers], async (deps, closers) => await made(protocol, deps, closers));
  }
  if (protocols === undefined && specs.some(({ agent }) => agent !== undefined && agent !== null)) {
    provide(bind, tokens.agentProtocol, [], async () => {
      const { createAcpProtocol } = await import('../../adapters/agent-protocol/acp/index.ts');
      return createAcpProtocol();
    });
  }
  provide(bind, tokens.secrets, [adapterDeps, closers], async (deps, closers) =>
    (await made(secrets, deps, closers)) ?? { get: (name) => process.env[name] ?? null });
}

/** What decides who may use the API, and what finds out whether a sandbox is ready. */
function bindAccess(bind: Bind, options: SkepOptions): void {
  provide(bind, tokens.auth, [adapterDeps, store, closers], async (deps, { apiKeys }, closers) => {
    const auth = await made(options.auth, deps, closers);
    if (auth !== undefined && 'authenticate' in auth) return auth;
    const { staticKey }: Partial<ApiKeyAuthOptions> = auth ?? {};
    const { createApiKeyAuth } = await import('../../adapters/auth/api-keys/index.ts');
    return createApiKeyAuth({ keys: apiKeys, clock: deps.clock, ...(staticKey !== undefined && { staticKey }) });
  });
  provide(bind, tokens.probe, [adapterDeps, closers], async (deps, closers) => {
    const { createNetworkProbe } = await import('../../adapters/readiness-probe/network/index.ts');
    return (await made(options.probe, deps, closers)) ?? createNetworkProbe();
  });
}

async function openGitProvider(git: GitOptions | GitProvider, deps: AdapterDeps, closers: AsyncDisposableStack): Promise<GitProvider> {
  if (typeof git === 'object' && 'listFiles' in git) return git;
  const provider = await createGitProvider(git, deps);
  closers.defer(() => provider.close());
  return provider;
}

async function createGitProvider(options: GitOptions, { clock, listingCache: knowledge }: AdapterDeps): Promise<GitProvider> {
  switch (options.provider) {
    case 'local': {
      const { createLocalGitProvider } = await import('../../adapters/git-provider/local/index.ts');
      const { root = process.cwd(), timeoutMs } = options;
      return createLocalGitProvider({ root, ...(timeoutMs !== undefined && { timeoutMs }) });
    }
    case 'github': {
      const { createGitHubProvider } = await import('../../adapters/git-provider/github/index.ts');
      const { provider: _, ...chosen } = options;
      return createGitHubProvider({ ...chosen, clock, knowledge });
    }
    case 'gitlab': {
      const { createGitLabProvider } = await import('../../adapters/git-provider/gitlab/index.ts');
      const { provider: _, ...chosen } = options;
      return createGitLabProvider({ ...chosen, clock, knowledge });
    }
    default:
      throw unknownChoice('git', options, 'github, gitlab or local as its provider, or is a GitProvider of your own');
  }
}

/** Opens mirrors in the data folder. Without one they are in a temporary folder, which is removed with the deployment. */
async function openGitMirror(dataDir: string | undefined, closers: AsyncDisposableStack): Promise<RepositoryCheckouts> {
  const { createGitMirror } = await import('../../adapters/repository-checkouts/git-mirror/index.ts');
  const root = dataDir === undefined ? await temporaryFolder('repositories', closers) : join(resolve(dataDir), 'repositories');
  const mirror = createGitMirror({ root });
  closers.defer(() => mirror.close());
  return mirror;
}
