import { availableParallelism } from 'node:os';
import { defaultAgentMemoryBytes } from '../../application/agents/agent-memory.ts';
import { defaultKeepEventsForMs } from '../../application/events/events.ts';
import { defaultMinIdleMs } from '../../application/sandboxes/make-room.ts';
import { defaultAnswerWithinMs } from '../../application/sandboxes/sandbox-reconciler.ts';
import { startsPerCore } from '../../application/sandboxes/start-queue.ts';
import { defaultOrphanGraceMs } from '../../application/sandboxes/quarantine.ts';
import { sweeperDefaults } from '../../application/sweeper.ts';
import { unlimitedConversations } from '../../domain/conversation-limits.ts';
import { defaultDiskUsedPercent } from '../../domain/disk-pressure.ts';
import { defaultExecutionLimits } from '../../domain/execution.ts';
import { defaultQuarantineForMs } from '../../domain/quarantine.ts';
import { unlimited } from '../../domain/sandbox-limits.ts';
import { poolStartsAtOnce } from '../../domain/pool-plan.ts';
import { defined } from '../config/field-schemas.ts';
import type { CheckedOptions } from '../options.ts';

/** The numbers that use cases and reconcilers work by. */
export interface Rules extends Readonly<Omit<ReturnType<typeof rulesOf>, 'keepEventsForMs'>> {
  /** Null: for ever. */
  readonly keepEventsForMs: number | null;
}

/** Returns the rules that the options choose. Each default stands next to its rule. */
export function rulesOf(options: CheckedOptions) {
  const startsAtOnce = options.startsAtOnce ?? startsPerCore * availableParallelism();
  const { conversationsPerOwner, conversations, conversationsPerSandbox, executionsPerSandbox, ...sandboxLimits } = options.limits ?? {};
  return {
    limits: { ...unlimited, ...defined(sandboxLimits) },
    conversationLimits: { ...unlimitedConversations, ...defined({ conversationsPerOwner, conversations, conversationsPerSandbox }) },
    executionLimits: executionsPerSandbox === undefined ? defaultExecutionLimits : { executionsPerSandbox },
    whenFull: options.whenFull ?? ('refuse' as const),
    minIdleMs: defaultMinIdleMs,
    diskUsedPercent: options.diskUsedPercent ?? defaultDiskUsedPercent,
    agentMemoryBytes: options.agentMemoryBytes ?? defaultAgentMemoryBytes,
    startsAtOnce,
    poolStartsAtOnce: poolStartsAtOnce(startsAtOnce),
    answerWithinMs: options.answerWithinMs ?? defaultAnswerWithinMs,
    keepEventsForMs: options.keepEventsForMs ?? defaultKeepEventsForMs,
    orphanGraceMs: defaultOrphanGraceMs,
    // Without a kept store, what an earlier process left has no record anywhere.
    quarantineForMs: options.quarantineForMs ?? (keepsStore(options) ? defaultQuarantineForMs : 0),
    ...sweeperDefaults,
    ...(options.sweepEveryMs !== undefined && { sweepEveryMs: options.sweepEveryMs }),
  };
}

/** Returns whether the records outlive the process. */
function keepsStore({ dataDir, store }: Pick<CheckedOptions, 'dataDir' | 'store'>): boolean {
  return store === undefined ? dataDir !== undefined : !('kind' in store && store.kind === 'memory');
}
