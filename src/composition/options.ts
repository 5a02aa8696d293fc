import type { SandboxLimits } from '../domain/sandbox-limits.ts';
import type { SandboxSpecInput } from '../domain/sandbox-spec.ts';
import type { AgentProtocol } from '../ports/agent-protocol.ts';
import type { Auth } from '../ports/auth.ts';
import type { Clock } from '../ports/clock.ts';
import type { GitProvider } from '../ports/git-provider.ts';
import type { Logger } from '../ports/logger.ts';
import type { Random } from '../ports/random.ts';
import type { ReadinessProbe } from '../ports/readiness-probe.ts';
import type { RepositoryCheckouts } from '../ports/repository-checkouts.ts';
import type { SandboxRuntime } from '../ports/sandbox-runtime.ts';
import type { Secrets } from '../ports/secrets.ts';
import type { Store } from '../ports/store.ts';

/** Repositories in folders of this machine. */
export interface LocalGitOptions {
  readonly provider: 'local';
  /** Repositories are paths below it. Default: the working directory. */
  readonly root?: string;
  /** Limit of one listing, in milliseconds. Default: 30,000. */
  readonly timeoutMs?: number;
}

/** What the hosts that are asked over HTTP have in common. */
interface HostedGitOptions {
  readonly token?: string;
  /** Limit of one listing, in milliseconds. Default: 30,000. */
  readonly timeoutMs?: number;
  /**
   * While the host is down, a listing that it confirmed at most so many milliseconds ago is served, with its age. Default:
   * a host that is down is a failure.
   */
  readonly serveStaleForMs?: number;
}

/** GitHub, by a token, as an App's installation, or, for public repositories, without a credential. */
export interface GitHubOptions extends HostedGitOptions {
  readonly provider: 'github';
  /** Instead of a token. */
  readonly app?: GitHubApp;
  /** The URL of the REST API. Default: the public one; of GitHub Enterprise `https://HOST/api/v3`. */
  readonly url?: string;
}

/** The installation of a GitHub App. */
export interface GitHubApp {
  readonly appId: number;
  readonly installationId: number;
  /** PEM. */
  readonly privateKey: string;
}

/** GitLab, by a token, or, for public projects, without one. */
export interface GitLabOptions extends HostedGitOptions {
  readonly provider: 'gitlab';
  /** Where the host's pages are. Default: the public one; self-managed `https://HOST` or `https://HOST/path`. */
  readonly url?: string;
}

export type GitOptions = LocalGitOptions | GitHubOptions | GitLabOptions;

/** Sandboxes as process groups of this machine, without isolation. */
export interface ProcessRuntimeOptions {
  readonly kind: 'process';
  /** Where the workspaces lie. Default: `sandboxes` in the data folder, or a temporary folder where there is none. */
  readonly root?: string;
}

/** Sandboxes as containers of a Docker engine. */
export interface DockerRuntimeOptions {
  readonly kind: 'docker';
  /** The engine's address: `unix://`, `tcp://`, `ssh://`. Default: Docker's own variables and default. */
  readonly host?: string;
  /** The address of the engine's machine that ports are bound to. Default: loopback. */
  readonly publishAddress?: string;
  /** The host in `exposed_urls`. Default: the engine's machine as it is reached. */
  readonly urlHost?: string;
  /**
   * A lower-case DNS label by which the deployment knows its own among what others have on the same engine: never one for
   * two deployments. Default: one that is kept in the data folder. Where there is neither, one is made for this once, and its
   * containers are removed when the deployment is closed.
   */
  readonly deployment?: string;
}

export type RuntimeOptions = DockerRuntimeOptions | ProcessRuntimeOptions;

/** `sqlite`: durable, in the data folder. `memory`: gone with the process. */
export type StoreOptions = { readonly kind: 'sqlite'; readonly dataDir: string } | { readonly kind: 'memory' };

/** API keys of the store, and one static key. */
export interface ApiKeyAuthOptions {
  readonly kind: 'api-keys';
  readonly staticKey?: string;
}

/**
 * What a deployment is made of. Anything that has a port takes a ready-made object too. Everything has a default:
 * local git, the process runtime, a store in memory (nothing is written to disk unless `dataDir` or `store` says so),
 * API keys, no log.
 */
export interface SkepOptions {
  /** In order; the first serves names that no host stands in front of. */
  readonly git?: readonly (GitOptions | GitProvider)[];
  readonly runtime?: RuntimeOptions | SandboxRuntime;
  readonly store?: StoreOptions | Store;
  readonly auth?: ApiKeyAuthOptions | Auth;
  readonly probe?: ReadinessProbe;
  /** What brings repositories to this host. Default: mirrors in the data folder, by the git program. */
  readonly checkouts?: RepositoryCheckouts;
  /** What specs' agents are spoken to with. Default: `acp`. */
  readonly protocols?: readonly AgentProtocol[];
  /** Where the secrets are that specs' agents name. Default: the environment of this process. */
  readonly secrets?: Secrets;
  readonly clock?: Clock;
  readonly random?: Random;
  readonly logger?: Logger;
  /** Folder for the embedded store, the deployment's name and the process runtime's workspaces. */
  readonly dataDir?: string;
  /** The `<product>` word of the microagents' directories. Default: `skep`. */
  readonly product?: string;
  /** The first one is the default. Default: one ready-made spec, `workspace`. */
  readonly specs?: readonly SandboxSpecInput[];
  readonly limits?: Partial<SandboxLimits>;
  /**
   * What becomes of a start or a resumption that a limit on running sandboxes refuses: the refusal stands, or a sandbox that
   * nobody used for long is frozen to make room. Default: `refuse`.
   */
  readonly whenFull?: 'refuse' | 'pause_idle';
  /** How many sandboxes are started at a time. Default: twice the number of cores. */
  readonly startsAtOnce?: number;
  /** How long events are kept, in milliseconds. Default: 30 days. */
  readonly keepEventsForMs?: number;
  /** How often records and facts are compared, in milliseconds. Default: 10,000. */
  readonly sweepEveryMs?: number;
  /** How long a pause, resumption or deletion is waited for before the status on the way is the answer. Default: 20,000. */
  readonly answerWithinMs?: number;
}
