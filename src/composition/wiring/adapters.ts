import { join, resolve } from 'node:path';
import { type Bind, ContainerModule } from 'inversify';
import type { AgentProtocol } from '../../ports/agent-protocol.ts';
import type { GitProvider } from '../../ports/git-provider.ts';
import type { ReadinessProbe } from '../../ports/readiness-probe.ts';
import type { RepositoryCheckouts } from '../../ports/repository-checkouts.ts';
import type { AdapterDeps, GitOptions, Own, SkepOptions, SystemDeps } from '../options.ts';
import { made, temporaryFolder, unknownChoice } from './own-adapters.ts';
import { openRuntime } from './runtime.ts';
import { openStore } from './store.ts';
import { provide, type Token, token, tokens } from './tokens.ts';

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
      const isOwn = typeof git === 'function' || (typeof git === 'object' && 'listFiles' in git);
      provideOwn(bind, tokens.gitProvider, adapterDeps, isOwn ? git : (deps) => createGitProvider(git, deps));
    }
    provide(bind, tokens.runtime, [adapterDeps, closers], async (deps, closers) =>
      await openRuntime({ ...options, runtime: await made(options.runtime, deps, closers) }, closers));
    provide(bind, tokens.checkouts, [adapterDeps, closers], async (deps, closers) =>
      await made(options.checkouts ?? (({ dataDir }) => createMirrors(dataDir, closers)), deps, closers));
    for (const protocol of options.protocols ?? defaultProtocols(options)) provideOwn(bind, tokens.agentProtocol, adapterDeps, protocol);
    provideOwn(bind, tokens.secrets, adapterDeps, options.secrets ?? { get: (name) => process.env[name] ?? null });
    provideOwn(bind, tokens.probe, adapterDeps, options.probe ?? createDefaultProbe);
    provide(bind, tokens.auth, [adapterDeps, store, closers], async (deps, { apiKeys }, closers) => {
      const auth = (await made(options.auth, deps, closers)) ?? { kind: 'api-keys' };
      if ('authenticate' in auth) return auth;
      const { createApiKeyAuth } = await import('../../adapters/auth/api-keys/index.ts');
      const { kind: _, ...chosen } = auth;
      return createApiKeyAuth({ ...chosen, keys: apiKeys, clock: deps.clock });
    });
  });
}

/** Binds the token to an adapter of the options. What its factory makes is closed with the deployment. */
function provideOwn<T, D>(bind: Bind, target: Token<T>, deps: Token<D>, given: Own<T, D>): void {
  provide(bind, target, [deps, closers], async (deps, closers) => await made<T, D>(given, deps, closers));
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
  provide(bind, systemDeps, [deployment, clock, random, logger], (deployment, clock, random, logger) => ({
    ...deployment, clock, random, logger,
  }));
}

/** The default protocol is not loaded if no spec has an agent. */
function defaultProtocols({ specs = [] }: SkepOptions): readonly (() => Promise<AgentProtocol>)[] {
  if (!specs.some(({ agent }) => agent !== undefined && agent !== null)) return [];
  return [async () => {
    const { createAcpProtocol } = await import('../../adapters/agent-protocol/acp/index.ts');
    return createAcpProtocol();
  }];
}

async function createDefaultProbe(): Promise<ReadinessProbe> {
  const { createNetworkProbe } = await import('../../adapters/readiness-probe/network/index.ts');
  return createNetworkProbe();
}

async function createGitProvider(options: GitOptions, { clock, listingCache }: AdapterDeps): Promise<GitProvider> {
  switch (options.provider) {
    case 'local': {
      const { createLocalGitProvider } = await import('../../adapters/git-provider/local/index.ts');
      const { root = process.cwd(), timeoutMs } = options;
      return createLocalGitProvider({ root, ...(timeoutMs !== undefined && { timeoutMs }) });
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
