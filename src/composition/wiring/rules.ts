import { availableParallelism } from 'node:os';
import { defaultKeepEventsForMs } from '../../application/events/events.ts';
import { defaultAnswerWithinMs } from '../../application/sandboxes/sandbox-reconciler.ts';
import { startsPerCore } from '../../application/sandboxes/start-queue.ts';
import { sweeperDefaults } from '../../application/sweeper.ts';
import { unlimited } from '../../domain/sandbox-limits.ts';
import { poolStartsAtOnce } from '../../domain/pool-plan.ts';
import type { SkepOptions } from '../options.ts';

/** The numbers that use cases and reconcilers work by. */
export interface Rules extends Readonly<Omit<ReturnType<typeof rulesOf>, 'keepEventsForMs'>> {
  /** Null: for ever. */
  readonly keepEventsForMs: number | null;
}

/** Returns the rules that the options choose. Each default stands next to its rule. */
export function rulesOf(options: SkepOptions) {
  const startsAtOnce = options.startsAtOnce ?? startsPerCore * availableParallelism();
  return {
    limits: { ...unlimited, ...options.limits },
    whenFull: options.whenFull ?? ('refuse' as const),
    startsAtOnce,
    poolStartsAtOnce: poolStartsAtOnce(startsAtOnce),
    answerWithinMs: options.answerWithinMs ?? defaultAnswerWithinMs,
    keepEventsForMs: options.keepEventsForMs ?? defaultKeepEventsForMs,
    ...sweeperDefaults,
    ...(options.sweepEveryMs !== undefined && { sweepEveryMs: options.sweepEveryMs }),
  };
}
