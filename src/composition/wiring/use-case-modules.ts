import { availableParallelism } from 'node:os';
import { type Bind, ContainerModule } from 'inversify';
import { LRUCache } from 'lru-cache';
import { KeyedMutex } from '../../adapters/shared/keyed-mutex.ts';
import { AgentMemory, defaultAgentMemoryBytes } from '../../application/agents/agent-memory-limit.ts';
import { Agents } from '../../application/agents/agents.ts';
import { ConversationReconciler } from '../../application/conversations/conversation-reconciler.ts';
import { type ConversationDeps, conversationUseCases } from '../../application/conversations/conversations.ts';
import { bindUseCases, type CoreDeps } from '../../application/use-cases.ts';
import { defaultKeepEventsForMs, Events } from '../../application/events/events.ts';
import { ExecutionReconciler } from '../../application/executions/execution-reconciler.ts';
import { executionUseCases } from '../../application/executions/executions.ts';
import { fileUseCases } from '../../application/files/files.ts';
import { Keys } from '../../application/keys/keys.ts';
import { Microagents } from '../../application/microagents/microagents.ts';
import { getOverview } from '../../application/overview/get-overview.ts';
import { Repositories } from '../../application/repositories/repositories.ts';
import { DiskWatch } from '../../application/sandboxes/disk-watch.ts';
import { IdleForecast } from '../../application/sandboxes/idle-forecast.ts';
import { defaultMinIdleMs } from '../../application/sandboxes/admit-sandbox.ts';
import { defaultOrphanGraceMs, Quarantine } from '../../application/sandboxes/quarantine.ts';
import { SandboxPool } from '../../application/sandboxes/sandbox-pool.ts';
import { SandboxReconciler } from '../../application/sandboxes/sandbox-reconciler.ts';
import { defaultAnswerWithinMs } from '../../application/sandboxes/reconcile-until.ts';
import { SandboxSpecs } from '../../application/sandboxes/sandbox-specs.ts';
import { type SandboxDeps, sandboxUseCases } from '../../application/sandboxes/sandboxes.ts';
import { StartStatistics } from '../../application/sandboxes/start-statistics.ts';
import { StartQueue, startsPerCore } from '../../application/sandboxes/start-queue.ts';
import { Sweeper, sweeperDefaults } from '../../application/sweeper.ts';
import { unlimitedConversations } from '../../domain/conversation-limits.ts';
import { defaultDiskUsedPercent } from '../../domain/disk-pressure.ts';
import { defaultExecutionLimits } from '../../domain/execution.ts';
import { poolStartsAtOnce } from '../../domain/pool-plan.ts';
import { defaultQuarantineForMs } from '../../domain/quarantine.ts';
import { defaultSetupTimeoutMs } from '../../application/conversations/run-setup-script.ts';
import { unlimited } from '../../domain/admission-limits.ts';
import type { ParseFrontMatter } from '../../ports/front-matter.ts';
import { omitUndefined } from '../config/field-schemas.ts';
import type { CheckedOptions, SystemDeps } from '../skep-options.ts';
import { all, provide, provideValue, type Token, token, tokens, type TokensOf } from './tokens.ts';

const { system, store, runtime, rules, specs, startQueue, sandboxReconciler, sandboxPool, sandboxes, executionReconciler } = tokens;
const { repositories, microagents, checkouts, events, agentMemory, agents, conversationReconciler } = tokens;

/** What most use cases need: the adapters and the rules. */
const base = token<CoreDeps & SystemDeps & Rules>('base');
const sandboxDeps = token<SystemDeps & Rules & SandboxDeps>('SandboxDeps');
const conversationDeps = token<SystemDeps & Rules & ConversationDeps>('ConversationDeps');
const diskWatch = token<DiskWatch>('DiskWatch');
const startStatistics = token<StartStatistics>('StartStatistics');
const idleForecast = token<IdleForecast>('IdleForecast');

/** Binds the token to a service that is closed together with the deployment. */
function provideClosable<T extends { close(): Promise<void> | void }, Deps extends object>(
  bind: Bind, target: Token<T>, dependencies: TokensOf<Deps>, factory: (deps: Deps) => T,
): void {
  const service = token<T>(`${target.id.description}, not closed`);
  provide(bind, service, dependencies, factory);
  provide(bind, target, { closers: tokens.closers, service }, ({ closers, service }) => closers.adopt(service, () => service.close()));
}

/** Binds the use cases of sandboxes, and the services that keep sandboxes in their desired state. */
export const sandboxesModule = new ContainerModule(({ bind }) => {
  provide(bind, base, { system, rules, store, runtime }, ({ system, rules, ...adapters }) => ({ ...system, ...rules, ...adapters }));
  provide(bind, specs, { list: tokens.specList, store, system }, ({ list, store, system }) =>
    new SandboxSpecs(list, store.specs, system.clock));
  provide(bind, startQueue, { rules }, ({ rules }) => new StartQueue(rules.startsAtOnce));
  provideClosable(bind, executionReconciler, { base }, ({ base }) => new ExecutionReconciler(base));
  provide(bind, tokens.executions, { base, reconciler: executionReconciler }, ({ base, reconciler }) =>
    bindUseCases({ ...base, reconciler, limits: base.executionLimits }, executionUseCases));
  provide(bind, tokens.files, { base }, ({ base }) => bindUseCases(base, fileUseCases));
  provide(bind, startStatistics, { clock: tokens.clock }, ({ clock }) => new StartStatistics(clock));
  provide(bind, sandboxDeps, { base, executionReconciler, startStatistics }, ({ base, ...own }) => ({ ...base, ...own }));
  const ofReconciler = { deps: sandboxDeps, probe: tokens.probe, startQueue, secrets: tokens.secrets, checkouts };
  provideClosable(bind, sandboxReconciler, ofReconciler, ({ deps, ...own }) => new SandboxReconciler({ ...deps, ...own }));
  provide(bind, idleForecast, { base }, ({ base }) => new IdleForecast(base));
  provide(bind, diskWatch, { deps: sandboxDeps, reconciler: sandboxReconciler }, ({ deps, ...own }) => new DiskWatch({ ...deps, ...own }));
  provideClosable(bind, sandboxPool, { deps: sandboxDeps, specs, reconciler: sandboxReconciler, diskWatch }, ({ deps, ...own }) =>
    new SandboxPool({ ...deps, ...own, startsAtOnce: deps.poolStartsAtOnce }));
  const ofUseCases = {
    deps: sandboxDeps, specs, reconciler: sandboxReconciler, pool: sandboxPool, diskWatch, secrets: tokens.secrets,
  };
  provide(bind, sandboxes, ofUseCases, ({ deps, ...own }) =>
    bindUseCases({ ...deps, ...own, pendingResumes: new Map() }, sandboxUseCases));
});

// The size of the cache of microagents.
const cachedTexts = 256;
const cachedCharacters = 4 * 2 ** 20;

const parseYamlLazily: ParseFrontMatter = async (text) =>
  (await import('../../adapters/front-matter/yaml-front-matter.ts')).parseYamlFrontMatter(text);

/** Binds the use cases of repositories, events and conversations, and the services that drive conversations. */
export const conversationsModule = new ContainerModule(({ bind }) => {
  provide(bind, repositories, { providers: all(tokens.gitProvider) }, ({ providers }) => new Repositories(providers));
  provideValue(bind, tokens.parseFrontMatter, parseYamlLazily);
  const ofMicroagents = { repositories, deployment: tokens.deployment, parseFrontMatter: tokens.parseFrontMatter };
  provide(bind, microagents, ofMicroagents, ({ deployment: { product }, ...own }) => {
    const texts = new LRUCache<string, string>({
      max: cachedTexts, maxSize: cachedCharacters, sizeCalculation: ({ length }) => length || 1,
    });
    return new Microagents({ ...own, product, texts });
  });
  // Without the runtime, so a module's runtime may use the events.
  provideClosable(bind, events, { rules, store, system }, ({ rules, store, system: { clock } }) =>
    new Events({ store, clock, keepForMs: rules.keepEventsForMs }));
  provide(bind, agentMemory, { rules, system }, ({ rules, system }) => new AgentMemory(rules.agentMemoryBytes, system.clock));
  const ofAgents = { base, protocols: all(tokens.agentProtocol), secrets: tokens.secrets, memory: agentMemory };
  provide(bind, agents, ofAgents, ({ base, ...own }) => new Agents({ ...base, ...own }));
  const ofConversations = { base, sandboxes, repositories, checkouts, secrets: tokens.secrets };
  provide(bind, conversationDeps, ofConversations, ({ base, ...own }) => ({ ...base, ...own }));
  const ofReconciler = {
    deps: conversationDeps, sandboxReconciler, microagents, agents, executions: tokens.executions, executionReconciler,
  };
  provideClosable(bind, conversationReconciler, ofReconciler, ({ deps, ...own }) =>
    new ConversationReconciler({ ...deps, ...own, sandboxEnds: new KeyedMutex() }));
  const ofUseCases = { deps: conversationDeps, specs, agentMemory, reconciler: conversationReconciler, events };
  provide(bind, tokens.conversations, ofUseCases, ({ deps, ...own }) =>
    bindUseCases({ ...deps, ...own, publications: new KeyedMutex() }, conversationUseCases));
});

/** Binds the background services of an open deployment. */
export const upkeepModule = new ContainerModule(({ bind }) => {
  const ofQuarantine = { deps: sandboxDeps, reconciler: sandboxReconciler };
  provide(bind, tokens.quarantine, ofQuarantine, ({ deps, ...own }) => new Quarantine({ ...deps, ...own }));
  const ofSweeper = {
    base, sandboxReconciler, conversationReconciler, executionReconciler, pool: sandboxPool, quarantine: tokens.quarantine, diskWatch,
    idleForecast, events,
  };
  provideClosable(bind, tokens.sweeper, ofSweeper, ({ base, ...own }) => new Sweeper({ ...base, ...own }));
});

/** Binds the services of the deployment as a whole: its keys and its state. */
export const deploymentModule = new ContainerModule(({ bind }) => {
  provide(bind, tokens.keys, { auth: tokens.auth }, ({ auth }) => new Keys(auth));
  const ofOverview = { base, pool: sandboxPool, diskWatch, agentMemory, startStatistics, idleForecast };
  provide(bind, tokens.overview, ofOverview, ({ base, ...own }) => (caller) => getOverview({ ...base, ...own }, caller));
});

/** The limits and times of use cases and reconcilers. */
export interface Rules extends Readonly<ReturnType<typeof rulesOf>> {}

/** Returns the rules from the options. Each default is next to its rule. */
export function rulesOf(options: CheckedOptions) {
  const { store, dataDir } = options;
  const isStoreKept = store === undefined ? dataDir !== undefined : !('kind' in store && store.kind === 'memory');
  const startsAtOnce = options.startsAtOnce ?? startsPerCore * availableParallelism();
  const { conversationsPerOwner, conversations, conversationsPerSandbox, executionsPerSandbox, ...sandboxLimits } = options.limits ?? {};
  return {
    limits: { ...unlimited, ...omitUndefined(sandboxLimits) },
    conversationLimits: { ...unlimitedConversations, ...omitUndefined({ conversationsPerOwner, conversations, conversationsPerSandbox }) },
    executionLimits: executionsPerSandbox === undefined ? defaultExecutionLimits : { executionsPerSandbox },
    whenFull: options.whenFull ?? ('refuse' as const),
    minIdleMs: defaultMinIdleMs,
    diskUsedPercent: options.diskUsedPercent ?? defaultDiskUsedPercent,
    agentMemoryBytes: options.agentMemoryBytes ?? defaultAgentMemoryBytes,
    startsAtOnce,
    poolStartsAtOnce: poolStartsAtOnce(startsAtOnce),
    setupTimeoutMs: options.setupTimeoutMs ?? defaultSetupTimeoutMs,
    drainTimeoutMs: options.drainTimeoutMs ?? 0,
    answerWithinMs: options.answerWithinMs ?? defaultAnswerWithinMs,
    keepEventsForMs: options.keepEventsForMs ?? defaultKeepEventsForMs,
    orphanGraceMs: defaultOrphanGraceMs,
    // Without a store on disk, sandboxes of an earlier process have no record anywhere.
    quarantineForMs: options.quarantineForMs ?? (isStoreKept ? defaultQuarantineForMs : 0),
    ...sweeperDefaults,
    ...(options.sweepEveryMs !== undefined && { sweepEveryMs: options.sweepEveryMs }),
  };
}
