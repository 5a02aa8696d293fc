import type { ContainerModule } from 'inversify';
import type { ApiKeyAuthOptions as StaticKeyOptions } from '../adapters/auth/api-keys/index.ts';
import type { GitHostOptions } from '../adapters/git-provider/hosted-provider.ts';
import type { GitLabOptions as HostedGitLabOptions } from '../adapters/git-provider/gitlab/index.ts';
import type { LocalGitOptions as LocalOptions } from '../adapters/git-provider/local/index.ts';
import type { ProcessRuntimeOptions as ProcessOptions } from '../adapters/sandbox-runtime/process/index.ts';
import type { SandboxLimits } from '../domain/sandbox-limits.ts';
import type { SandboxSpecInput } from '../domain/sandbox-spec.ts';
import type { AgentProtocol } from '../ports/agent-protocol.ts';
import type { Auth } from '../ports/auth.ts';
import type { Clock } from '../ports/clock.ts';
import type { GitProvider } from '../ports/git-provider.ts';
import type { ListingCache } from '../ports/listing-cache.ts';
import type { Logger } from '../ports/logger.ts';
import type { Random } from '../ports/random.ts';
import type { ReadinessProbe } from '../ports/readiness-probe.ts';
import type { RepositoryCheckouts } from '../ports/repository-checkouts.ts';
import type { SandboxRuntime } from '../ports/sandbox-runtime.ts';
import type { Secrets } from '../ports/secrets.ts';
import type { Store } from '../ports/store.ts';

/** Repositories in folders of this machine. The root is the working directory by default. */
export interface LocalGitOptions extends Partial<LocalOptions> {
  readonly provider: 'local';
}

/** GitHub, with a token, as the installation of an App, or without a credential for public repositories. */
export interface GitHubOptions extends Omit<GitHostOptions, keyof AdapterDeps> {
  readonly provider: 'github';
  readonly token?: string;
  /** Instead of a token. */
  readonly app?: GitHubApp;
  /** The URL of the REST API. GitHub Enterprise: `https://HOST/api/v3`. Default: the public one. */
  readonly url?: string;
}

/** The installation of a GitHub App. */
export interface GitHubApp {
  readonly appId: number;
  readonly installationId: number;
  /** PEM. */
  readonly privateKey: string;
}

/** GitLab, with a token, or without one for public projects. */
export interface GitLabOptions extends Omit<HostedGitLabOptions, keyof AdapterDeps> {
  readonly provider: 'gitlab';
}

export type GitOptions = LocalGitOptions | GitHubOptions | GitLabOptions;

/**
 * Sandboxes as process groups of this machine, without isolation. The root is `sandboxes` in the data folder by default, or a temporary
 * folder without one.
 */
export interface ProcessRuntimeOptions extends Partial<ProcessOptions> {
  readonly kind: 'process';
}

/** Sandboxes as containers of a Docker engine. */
export interface DockerRuntimeOptions {
  readonly kind: 'docker';
  /** The engine's address: `unix://`, `tcp://`, `ssh://`. Default: Docker's own variables and default. */
  readonly host?: string;
  /** The address of the engine's machine that ports are bound to. Default: loopback. */
  readonly publishAddress?: string;
  /** The host in `exposed_urls`. Default: the name by which the engine's machine is reached. */
  readonly urlHost?: string;
  /**
   * A lower-case DNS label that tells the deployment's containers from those of others on the same engine. Never use one for two
   * deployments. Default: the id in the data folder. Without a data folder, the deployment gets a new id, and its containers are
   * removed when it is closed.
   */
  readonly deployment?: string;
}

export type RuntimeOptions = DockerRuntimeOptions | ProcessRuntimeOptions;

/** `sqlite`: durable, in the data folder. `memory`: gone with the process. */
export type StoreOptions = { readonly kind: 'sqlite'; readonly dataDir: string } | { readonly kind: 'memory' };

/** API keys of the store, and one static key. */
export interface ApiKeyAuthOptions extends Pick<StaticKeyOptions, 'staticKey'> {
  readonly kind: 'api-keys';
}

/** What a factory of the options gets to know about the deployment. */
export interface Deployment {
  /** The `<product>` word of the microagents' directories. */
  readonly product: string;
  /** Null: nothing is to be written to disk. */
  readonly dataDir: string | null;
  /**
   * Returns a lower-case DNS label that tells this deployment from others on the same engine. It is kept in the data folder.
   * Without one, it is new in each deployment.
   */
  deploymentId(): string;
}

/** What the factory of a store gets. */
export interface SystemDeps extends Deployment {
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
}

/** What the factory of an adapter gets. */
export interface AdapterDeps extends SystemDeps {
  /** The store's cache, for what an adapter asks of a host again and again. */
  readonly listingCache: ListingCache;
}

/**
 * An adapter of your own, ready-made or as a factory. `createSkep` calls a factory once. Who makes an adapter closes it: if a
 * factory's adapter has a method `close`, the deployment's `close` calls it. Nothing closes a ready-made adapter but you, after the
 * deployment.
 */
export type Own<T, Deps = AdapterDeps> = T | ((deps: Deps) => T | Promise<T>);

/**
 * What a deployment is made of. Everything has a default: local git, the process runtime, a store in memory (nothing is written to
 * disk unless `dataDir` or `store` says so), API keys, no log. Every port takes an adapter of your own, see {@link Own}. What
 * `createSkep` makes itself, it closes.
 */
export interface SkepOptions {
  /** In order. The first serves repository names without a host. */
  readonly git?: readonly (GitOptions | Own<GitProvider>)[];
  readonly runtime?: RuntimeOptions | Own<SandboxRuntime>;
  readonly store?: StoreOptions | Own<Store, SystemDeps>;
  readonly auth?: ApiKeyAuthOptions | Own<Auth>;
  readonly probe?: Own<ReadinessProbe>;
  /** Fetches repositories to this machine. Default: mirrors in the data folder, by the git program. */
  readonly checkouts?: Own<RepositoryCheckouts>;
  /** The protocols that the specs' agents speak. Default: `acp`. */
  readonly protocols?: readonly Own<AgentProtocol>[];
  /** The values of the secrets that the specs' agents name. Default: the environment of this process. */
  readonly secrets?: Own<Secrets>;
  readonly clock?: Own<Clock, Deployment>;
  readonly random?: Own<Random, Deployment>;
  readonly logger?: Own<Logger, Deployment>;
  /**
   * inversify modules, loaded in order after Skep's own. With `rebind` they replace what any of the `tokens` is bound to; with
   * `bind` they add a git provider or an agent protocol. Nothing closes what a module makes, unless its factory adds that to
   * `tokens.closers`.
   */
  readonly modules?: readonly ContainerModule[];
  /** Folder for the embedded store, the deployment's id and the process runtime's workspaces. */
  readonly dataDir?: string;
  /** The `<product>` word of the microagents' directories. Default: `skep`. */
  readonly product?: string;
  /** The first one is the default. Default: one ready-made spec, `workspace`. */
  readonly specs?: readonly SandboxSpecInput[];
  readonly limits?: Partial<SandboxLimits>;
  /**
   * What happens if a limit on running sandboxes leaves no room for a start or a resumption: it is refused, or a sandbox that was
   * idle for long is frozen to make room. Default: `refuse`.
   */
  readonly whenFull?: 'refuse' | 'pause_idle';
  /** How many sandboxes are started at a time. Default: twice the number of cores. */
  readonly startsAtOnce?: number;
  /** How long events are kept, in milliseconds. Default: 30 days. */
  readonly keepEventsForMs?: number;
  /** The interval in which all sandboxes are reconciled, in milliseconds. Default: 10,000. */
  readonly sweepEveryMs?: number;
  /** How long a pause, resumption or deletion is waited for until its interim status is returned, in milliseconds. Default: 20,000. */
  readonly answerWithinMs?: number;
}
