import { availableParallelism } from 'node:os';
import { defaultKeepEventsForMs } from '../../application/events/events.ts';
import type { WhenFull } from '../../application/sandboxes/sandbox-admission.ts';
import { defaultAnswerWithinMs } from '../../application/sandboxes/sandbox-reconciler.ts';
import { startsPerCore } from '../../application/sandboxes/start-queue.ts';
import { sweeperDefaults } from '../../application/sweeper.ts';
import { type SandboxLimits, unlimited } from '../../domain/sandbox-limits.ts';
import { poolStartsAtOnce } from '../../domain/sandbox-pool.ts';
import type { SkepOptions } from '../options.ts';

/** The numbers that use cases and reconcilers work by. */
export interface Rules {
  readonly limits: SandboxLimits;
  readonly whenFull: WhenFull;
  readonly startsAtOnce: number;
  readonly poolStartsAtOnce: number;
  readonly answerWithinMs: number;
  readonly keepEventsForMs: number | null;
  readonly sweepEveryMs: number;
  readonly orphanGraceMs: number;
  readonly rememberDeletedMs: number;
}

/** Returns the rules that the options choose. Each default stands next to its rule. */
export function rulesOf(options: SkepOptions): Rules {
  const startsAtOnce = options.startsAtOnce ?? startsPerCore * availableParallelism();
  return {
    limits: { ...unlimited, ...options.limits },
    whenFull: options.whenFull ?? 'refuse',
    startsAtOnce,
    poolStartsAtOnce: poolStartsAtOnce(startsAtOnce),
    answerWithinMs: options.answerWithinMs ?? defaultAnswerWithinMs,
    keepEventsForMs: options.keepEventsForMs ?? defaultKeepEventsForMs,
    ...sweeperDefaults,
    ...(options.sweepEveryMs !== undefined && { sweepEveryMs: options.sweepEveryMs }),
  };
}
