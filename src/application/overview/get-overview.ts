import type { Conversation } from '../../domain/conversation.ts';
import type { ConversationLimits } from '../../domain/conversation-limits.ts';
import type { DiskSpace } from '../../domain/disk-pressure.ts';
import { type LimitUsage, listLimitUsage, type SandboxCount } from '../../domain/limit-usage.ts';
import { type Caller, scopeOf } from '../../domain/principal.ts';
import type { SandboxLimits } from '../../domain/admission-limits.ts';
import type { Sandbox } from '../../domain/sandbox.ts';
import type { ConversationCount } from '../../ports/conversation-store.ts';
import type { AgentMemory } from '../agents/agent-memory-limit.ts';
import type { CoreDeps } from '../use-cases.ts';
import type { DiskWatch } from '../sandboxes/disk-watch.ts';
import type { ForecastAction, IdleForecast } from '../sandboxes/idle-forecast.ts';
import type { PoolReport, SandboxPool } from '../sandboxes/sandbox-pool.ts';
import type { StartStatistics, StartSummary } from '../sandboxes/start-statistics.ts';

export interface OverviewDeps extends CoreDeps {
  readonly pool: Pick<SandboxPool, 'report'>;
  readonly diskWatch: Pick<DiskWatch, 'space'>;
  readonly agentMemory: Pick<AgentMemory, 'held' | 'maxBytes'>;
  readonly startStatistics: StartStatistics;
  readonly idleForecast: IdleForecast;
  readonly limits: SandboxLimits;
  readonly conversationLimits: ConversationLimits;
  readonly diskUsedPercent: number;
}

export interface Overview {
  readonly at: number;
  readonly sandboxes: readonly SandboxCount[];
  readonly conversations: readonly ConversationCount[];
  /** The newest 20 sandboxes that are in ERROR or MISSING, or that start slowly. */
  readonly failedOrSlowSandboxes: readonly Sandbox[];
  /** The newest 20 conversations that have an error, or that start slowly. */
  readonly failedOrSlowConversations: readonly Conversation[];
  readonly starts: StartSummary;
  readonly limits: readonly LimitUsage[];
  readonly upcoming: readonly ForecastAction[];
  /** The state of the whole deployment; null unless the scope is all owners. */
  readonly deployment: {
    readonly pools: readonly PoolReport[];
    /** The disk space at the last sweep. Null if the runtime does not know it. */
    readonly disk: DiskSpace | null;
    readonly diskUsedPercent: number;
    readonly agentMemory: { readonly heldBytes: number; readonly maxBytes: number };
  } | null;
}

/** A start that takes longer is slow. Most starts take seconds, but an image may have to be pulled. */
const slowStartMs = 60_000;

const maxListed = 20;

/** Returns a summary of what the caller sees. Reads only the store, with few queries for any number of records. Resumes no sandbox. */
export async function getOverview(deps: OverviewDeps, caller: Caller | null): Promise<Overview> {
  const { store, clock, startStatistics, idleForecast, limits, conversationLimits } = deps;
  const scope = scopeOf(caller);
  const at = clock.now();
  const [sandboxCounts, conversationCounts, failedOrSlowSandboxes, failedOrSlowConversations, upcoming, deployment] = await Promise.all([
    store.sandboxes.countByStatus(scope),
    store.conversations.countByStatus(scope),
    store.sandboxes.findFailedOrSlow(scope, at - slowStartMs, maxListed),
    store.conversations.findFailedOrSlow(scope, at - slowStartMs, maxListed),
    idleForecast.next(scope, maxListed),
    scope === null ? deploymentOf(deps) : null,
  ]);
  const counts = { sandboxes: sandboxCounts, conversations: conversationCounts };
  return {
    at, ...counts, failedOrSlowSandboxes, failedOrSlowConversations, upcoming, deployment,
    starts: startStatistics.summary(scope),
    limits: listLimitUsage({ ...limits, ...conversationLimits }, counts, scope),
  };
}

async function deploymentOf({ pool, diskWatch, diskUsedPercent, agentMemory }: OverviewDeps): Promise<NonNullable<Overview['deployment']>> {
  const memory = { heldBytes: agentMemory.held, maxBytes: agentMemory.maxBytes };
  return { pools: await pool.report(), disk: diskWatch.space, diskUsedPercent, agentMemory: memory };
}
