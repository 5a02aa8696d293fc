import { availableParallelism } from 'node:os';
import { ContainerModule } from 'inversify';
import { createLruMap } from '../../adapters/shared/lru-map.ts';
import { AgentMemory, defaultAgentMemoryBytes } from '../../application/agents/agent-memory.ts';
import { Agents } from '../../application/agents/agents.ts';
import { ConversationReconciler } from '../../application/conversations/conversation-reconciler.ts';
import { type ConversationDeps, createConversations } from '../../application/conversations/conversations.ts';
import { keepBeforePause } from '../../application/conversations/kept-changes.ts';
import type { CoreDeps } from '../../application/use-cases.ts';
import { defaultKeepEventsForMs, Events } from '../../application/events/events.ts';
import { ExecutionReconciler } from '../../application/executions/execution-reconciler.ts';
import { createExecutions } from '../../application/executions/executions.ts';
import { createFiles } from '../../application/files/files.ts';
import { Keys } from '../../application/keys/keys.ts';
import { Microagents } from '../../application/microagents/microagents.ts';
import { getOverview } from '../../application/overview/get-overview.ts';
import { Repositories } from '../../application/repositories/repositories.ts';
import { DiskWatch } from '../../application/sandboxes/disk-watch.ts';
import { IdleForecast } from '../../application/sandboxes/idle-forecast.ts';
import { defaultMinIdleMs } from '../../application/sandboxes/make-room.ts';
import { defaultOrphanGraceMs, Quarantine } from '../../application/sandboxes/quarantine.ts';
import { SandboxPool } from '../../application/sandboxes/sandbox-pool.ts';
import { SandboxReconciler } from '../../application/sandboxes/sandbox-reconciler.ts';
import { defaultAnswerWithinMs } from '../../application/sandboxes/await-status.ts';
import { SandboxSpecs } from '../../application/sandboxes/sandbox-specs.ts';
import { createSandboxes, type SandboxDeps } from '../../application/sandboxes/sandboxes.ts';
import { StartStatistics } from '../../application/sandboxes/start-statistics.ts';
import { StartQueue, startsPerCore } from '../../application/sandboxes/start-queue.ts';
import { Sweeper, sweeperDefaults } from '../../application/sweeper.ts';
import { unlimitedConversations } from '../../domain/conversation-limits.ts';
import { defaultDiskUsedPercent } from '../../domain/disk-pressure.ts';
import { defaultExecutionLimits } from '../../domain/execution.ts';
import { poolStartsAtOnce } from '../../domain/pool-plan.ts';
import { defaultQuarantineForMs } from '../../domain/quarantine.ts';
import { defaultSetupTimeoutMs } from '../../application/conversations/run-setup-script.ts';
import { unlimited } from '../../domain/sandbox-limits.ts';
import type { ParseFrontMatter } from '../../ports/front-matter.ts';
import { omitUndefined } from '../config/field-schemas.ts';
import type { CheckedOptions } from '../skep-options.ts';
import { all, provide, provideValue, token, tokens } from './tokens.ts';

const { system, store, runtime, rules, closers, specs, startQueue, sandboxReconciler, sandboxPool, sandboxes } = tokens;
const { executionReconciler } = tokens;
const { repositories, microagents, checkouts, events, agentMemory, agents, conversationReconciler } = tokens;

const core = token<CoreDeps>('CoreDeps');
const conversationDeps = token<ConversationDeps>('ConversationDeps');
const sandboxDeps = token<SandboxDeps>('SandboxDeps');
const diskWatch = token<DiskWatch>('DiskWatch');
const startStatistics = token<StartStatistics>('StartStatistics');
const idleForecast = token<IdleForecast>('IdleForecast');

const close = (service: { close(): Promise<void> | void }): Promise<void> | void => service.close();

/** Binds the use cases of sandboxes, and the services that keep sandboxes in their desired state. */
export const sandboxesModule = new ContainerModule(({ bind }) => {
  provide(bind, specs, [tokens.specList, store, system], (list, store, { clock }) => new SandboxSpecs(list, store.specs, clock));
  provide(bind, startQueue, [rules], ({ startsAtOnce }) => new StartQueue(startsAtOnce));
  provide(bind, core, [store, runtime, system], (store, runtime, system) => ({ store, runtime, ...system }));
  provide(bind, executionReconciler, [core, closers], (deps, closers) => closers.adopt(new ExecutionReconciler(deps), close));
  provide(bind, tokens.executions, [core, rules, executionReconciler],
    (deps, { executionLimits: limits, answerWithinMs }, reconciler) => createExecutions({ ...deps, reconciler, limits, answerWithinMs }));
  provide(bind, tokens.files, [core], createFiles);
  provide(bind, startStatistics, [tokens.clock], (clock) => new StartStatistics(clock));
  provide(bind, sandboxDeps, [core, executionReconciler, startStatistics], (deps, executionReconciler, startStatistics) =>
    ({ ...deps, executionReconciler, startStatistics }));
  provide(bind, sandboxReconciler, [sandboxDeps, tokens.probe, startQueue, tokens.secrets, checkouts, closers],
    (deps, probe, startQueue, secrets, checkouts, closers) => {
      const keepChanges = (sandboxId: string, signal: AbortSignal): Promise<void> =>
        keepBeforePause({ ...deps, checkouts }, sandboxId, signal);
      return closers.adopt(new SandboxReconciler({ ...deps, probe, startQueue, secrets, keepChanges }), close);
    });
  provide(bind, idleForecast, [store, runtime], ({ sandboxes: sandboxStore }, runtime) => new IdleForecast({ sandboxStore, runtime }));
  provide(bind, diskWatch, [sandboxDeps, rules, sandboxReconciler], (deps, { diskUsedPercent }, reconciler) =>
    new DiskWatch({ ...deps, reconciler, diskUsedPercent }));
  provide(bind, sandboxPool, [sandboxDeps, rules, specs, sandboxReconciler, diskWatch, closers],
    (deps, { poolStartsAtOnce: startsAtOnce }, specs, reconciler, diskWatch, closers) =>
      closers.adopt(new SandboxPool({ ...deps, specs, reconciler, diskWatch, startsAtOnce }), close));
  provide(bind, sandboxes, [sandboxDeps, rules, specs, sandboxReconciler, sandboxPool, diskWatch, tokens.secrets],
    (deps, { limits, whenFull, minIdleMs, answerWithinMs }, specs, reconciler, pool, diskWatch, secrets) =>
      createSandboxes({ ...deps, limits, whenFull, minIdleMs, answerWithinMs, specs, reconciler, pool, diskWatch, secrets }));
});

// The size of the cache of microagents.
const cachedTexts = 256;
const cachedCharacters = 4 * 2 ** 20;

const parseYamlLazily: ParseFrontMatter = async (text) =>
  (await import('../../adapters/front-matter/yaml-front-matter.ts')).parseYamlFrontMatter(text);

/** Binds the use cases of repositories, events and conversations, and the services that drive conversations. */
export const conversationsModule = new ContainerModule(({ bind }) => {
  provide(bind, repositories, [all(tokens.gitProvider)], (providers) => new Repositories(providers));
  provideValue(bind, tokens.parseFrontMatter, parseYamlLazily);
  provide(bind, microagents, [repositories, tokens.deployment, tokens.parseFrontMatter], (repositories, { product }, parseFrontMatter) => {
    const texts = createLruMap<string>(cachedTexts, cachedCharacters, ({ length }) => length);
    return new Microagents({ repositories, product, parseFrontMatter, texts });
  });
  provide(bind, events, [core, rules, closers], (deps, { keepEventsForMs: keepForMs }, closers) =>
    closers.adopt(new Events({ ...deps, keepForMs }), close));
  provide(bind, agentMemory, [rules, system], ({ agentMemoryBytes }, { clock }) => new AgentMemory(agentMemoryBytes, clock));
  provide(bind, agents, [runtime, all(tokens.agentProtocol), tokens.secrets, agentMemory, system],
    ({ executions: sandboxExecutions }, protocols, secrets, memory, system) =>
      new Agents({ sandboxExecutions, protocols, secrets, memory, ...system }));
  provide(bind, conversationDeps, [core, sandboxes, repositories, checkouts], (deps, sandboxes, repositories, checkouts) =>
    ({ ...deps, sandboxes, repositories, checkouts }));
  provide(bind, conversationReconciler,
    [conversationDeps, rules, sandboxReconciler, microagents, agents, tokens.executions, executionReconciler, tokens.deployment, closers],
    (deps, { setupTimeoutMs, drainTimeoutMs }, sandboxReconciler, microagents, agents, executions, executionReconciler, { product },
      closers) =>
      closers.adopt(new ConversationReconciler({
        ...deps, setupTimeoutMs, drainTimeoutMs, sandboxReconciler, microagents, agents, executions, executionReconciler, product,
      }), close));
  provide(bind, tokens.conversations, [conversationDeps, rules, specs, agentMemory, conversationReconciler, events, tokens.deployment],
    (deps, { conversationLimits, answerWithinMs }, specs, agentMemory, reconciler, events, { product }) =>
      createConversations({ ...deps, conversationLimits, answerWithinMs, specs, agentMemory, reconciler, events, product }));
});

/** Binds the background services of an open deployment. */
export const upkeepModule = new ContainerModule(({ bind }) => {
  provide(bind, tokens.quarantine, [sandboxDeps, rules, sandboxReconciler],
    (deps, { orphanGraceMs, quarantineForMs }, reconciler) => new Quarantine({ ...deps, orphanGraceMs, quarantineForMs, reconciler }));
  provide(bind, tokens.sweeper,
    [core, rules, sandboxReconciler, conversationReconciler, executionReconciler, sandboxPool, tokens.quarantine, diskWatch, idleForecast,
      events, closers],
    (deps, { sweepEveryMs, rememberDeletedMs }, sandboxReconciler, conversationReconciler, executionReconciler, pool, quarantine,
      diskWatch, idleForecast, events, closers) =>
      closers.adopt(new Sweeper({
        ...deps, sweepEveryMs, rememberDeletedMs, sandboxReconciler, conversationReconciler, executionReconciler, pool, quarantine,
        diskWatch, idleForecast, events,
      }), close));
});

/** Binds the services of the deployment as a whole: its keys and its state. */
export const deploymentModule = new ContainerModule(({ bind }) => {
  provide(bind, tokens.keys, [tokens.auth], (auth) => new Keys(auth));
  provide(bind, tokens.overview, [core, sandboxPool, diskWatch, agentMemory, startStatistics, idleForecast, rules],
    (deps, pool, diskWatch, agentMemory, startStatistics, idleForecast, { limits, conversationLimits, diskUsedPercent }) => (scope) =>
      getOverview({
        ...deps, pool, diskWatch, agentMemory, startStatistics, idleForecast, limits, conversationLimits, diskUsedPercent,
      }, scope));
});

/** The limits and times of use cases and reconcilers. */
export interface Rules extends Readonly<Omit<ReturnType<typeof rulesOf>, 'keepEventsForMs'>> {
  /** Null: forever. */
  readonly keepEventsForMs: number | null;
}

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
