import type { Bind } from 'inversify';
import type { AgentMemory } from '../../application/agents/agent-memory-limit.ts';
import type { Agents } from '../../application/agents/agents.ts';
import type { ConversationReconciler } from '../../application/conversations/conversation-reconciler.ts';
import type { ExecutionReconciler } from '../../application/executions/execution-reconciler.ts';
import type { Repositories } from '../../application/repositories/repositories.ts';
import type { Quarantine } from '../../application/sandboxes/quarantine.ts';
import type { SandboxPool } from '../../application/sandboxes/sandbox-pool.ts';
import type { SandboxReconciler } from '../../application/sandboxes/sandbox-reconciler.ts';
import type { StartQueue } from '../../application/sandboxes/start-queue.ts';
import type { Skep } from '../../application/skep.ts';
import type { Sweeper } from '../../application/sweeper.ts';
import type { SandboxSpec } from '../../domain/sandbox-spec.ts';
import type { AgentProtocol } from '../../ports/agent-protocol.ts';
import type { Auth } from '../../ports/auth.ts';
import type { Clock } from '../../ports/clock.ts';
import type { ParseFrontMatter } from '../../ports/front-matter.ts';
import type { GitProvider } from '../../ports/git-provider.ts';
import type { Logger } from '../../ports/logger.ts';
import type { Random } from '../../ports/random.ts';
import type { ReadinessProbe } from '../../ports/readiness-probe.ts';
import type { RepositoryCheckouts } from '../../ports/repository-checkouts.ts';
import type { SandboxRuntime } from '../../ports/sandbox-runtime.ts';
import type { Secrets } from '../../ports/secrets.ts';
import type { Store } from '../../ports/store.ts';
import type { Deployment, SystemDeps } from '../skep-options.ts';
import type { Rules } from './use-case-modules.ts';

/** The key of a service in the container. It carries the type of the service. */
export interface Token<T> {
  readonly id: symbol;
  /** True if the token means all bindings of the id, as a list. */
  readonly isMultiple?: true;
  /** Never set. It makes `Token<A>` and `Token<B>` different types. */
  readonly service?: (service: T) => T;
}

/** Returns a new token. The description appears in errors of the container. */
export function token<T>(description: string): Token<T> {
  return { id: Symbol(description) };
}

/** Returns the token for the list of all bindings of a token, in their order. */
export function all<T>({ id }: Token<T>): Token<readonly T[]> {
  return { id, isMultiple: true };
}

export const tokens = {
  /** Closes services together with the deployment, in reverse order of their opening. */
  closers: token<AsyncDisposableStack>('closers'),
  deployment: token<Deployment>('Deployment'),
  rules: token<Rules>('Rules'),
  specList: token<readonly SandboxSpec[]>('SandboxSpec[]'),

  clock: token<Clock>('Clock'),
  random: token<Random>('Random'),
  logger: token<Logger>('Logger'),
  /** The deployment and the three services above. Rebind those, not this. */
  system: token<SystemDeps>('SystemDeps'),
  /** One binding for each provider. The first serves repository names without a host. */
  gitProvider: token<GitProvider>('GitProvider'),
  runtime: token<SandboxRuntime>('SandboxRuntime'),
  probe: token<ReadinessProbe>('ReadinessProbe'),
  store: token<Store>('Store'),
  auth: token<Auth>('Auth'),
  checkouts: token<RepositoryCheckouts>('RepositoryCheckouts'),
  /** One binding for each protocol. */
  agentProtocol: token<AgentProtocol>('AgentProtocol'),
  secrets: token<Secrets>('Secrets'),
  parseFrontMatter: token<ParseFrontMatter>('ParseFrontMatter'),

  keys: token<Skep['keys']>('Keys'),
  repositories: token<Repositories>('Repositories'),
  microagents: token<Skep['microagents']>('Microagents'),
  specs: token<Skep['specs']>('SandboxSpecs'),
  startQueue: token<StartQueue>('StartQueue'),
  sandboxReconciler: token<SandboxReconciler>('SandboxReconciler'),
  executionReconciler: token<ExecutionReconciler>('ExecutionReconciler'),
  sandboxPool: token<SandboxPool>('SandboxPool'),
  quarantine: token<Quarantine>('Quarantine'),
  sandboxes: token<Skep['sandboxes']>('Sandboxes'),
  executions: token<Skep['executions']>('Executions'),
  files: token<Skep['files']>('Files'),
  events: token<Skep['events']>('Events'),
  agentMemory: token<AgentMemory>('AgentMemory'),
  agents: token<Agents>('Agents'),
  conversationReconciler: token<ConversationReconciler>('ConversationReconciler'),
  conversations: token<Skep['conversations']>('Conversations'),
  overview: token<Skep['overview']>('Overview'),
  sweeper: token<Sweeper>('Sweeper'),
};

export type ServiceOf<T> = T extends Token<infer Service> ? Service : never;

export type TokensOf<Deps extends object> = { readonly [Name in keyof Deps]: Token<Deps[Name]> };

/**
 * Binds the token to the result of the factory, which is called once. It gets the services of the dependencies under their names. A wrong
 * type or a missing dependency does not compile; inversify alone would accept it. A module's `bind` adds a binding, its `rebind` replaces
 * all bindings.
 */
export function provide<T, Deps extends object>(
  bind: Bind, target: Token<T>, dependencies: TokensOf<Deps>, factory: (deps: Deps) => T | Promise<T>,
): void {
  const named = Object.entries<Pick<Token<unknown>, 'id' | 'isMultiple'>>(dependencies);
  const injected = named.map(([, { id, isMultiple }]) => (isMultiple === true ? { serviceIdentifier: id, isMultiple } : id));
  bind<T>(target.id)
    .toResolvedValue((...services: unknown[]) => {
      try {
        // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the tokens are typed by the dependencies
        return factory(Object.fromEntries(named.map(([name], at) => [name, services[at]])) as Deps);
      } catch (error) {
        // Not `async`: then services could not be resolved synchronously, as tests do.
        // If it were thrown, inversify would leave other factories that are pending, and nobody would handle their failures.
        return Promise.reject<T>(error);
      }
    }, injected)
    .inSingletonScope();
}

/** Binds the token to an existing value. Nothing closes it. */
export function provideValue<T>(bind: Bind, target: Token<T>, value: T): void {
  bind<T>(target.id).toConstantValue(value);
}
