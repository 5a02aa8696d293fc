import { ContainerModule } from 'inversify';
import { type Events, purgeEventsEveryMs } from '../../application/events/events.ts';
import { Sweeper } from '../../application/sweeper.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Logger } from '../../ports/logger.ts';
import { provide, tokens } from './tokens.ts';

/** What runs by itself while a deployment is open. */
export const upkeepModule = new ContainerModule(({ bind }) => {
  const { rules, store, runtime, sandboxReconciler, conversationReconciler, sandboxPool, clock, logger, closers } = tokens;
  provide(
    bind,
    tokens.sweeper,
    [rules, store, runtime, sandboxReconciler, conversationReconciler, sandboxPool, clock, logger, closers],
    (rules, store, runtime, sandboxReconciler, conversationReconciler, pool, clock, logger, closers) => {
      const { sweepEveryMs, orphanGraceMs, rememberDeletedMs } = rules;
      const deps = { store, runtime, sandboxReconciler, conversationReconciler, pool, clock, logger };
      const sweeper = new Sweeper({ ...deps, sweepEveryMs, orphanGraceMs, rememberDeletedMs });
      closers.defer(() => sweeper.close());
      return sweeper;
    },
  );
  provide(bind, tokens.eventPurge, [tokens.events, clock, logger, closers], (events, clock, logger, closers) => {
    const purge = startEventPurge(events, clock, logger);
    closers.defer(() => purge.close());
    return purge;
  });
});

export interface EventPurge {
  /** Stops it. Resolves when a removal that runs has ended. */
  close(): Promise<void>;
}

/** Removes old events at once, and again after each interval. */
function startEventPurge(events: Pick<Events, 'purge'>, clock: Clock, logger: Logger): EventPurge {
  let closed = false;
  let cancel: (() => void) | null = null;
  let running = purge();

  async function purge(): Promise<void> {
    try {
      await events.purge();
    } catch (error) {
      logger.warn({ error }, 'old events could not be removed; the next interval tries again');
    }
    if (!closed) cancel = clock.after(purgeEventsEveryMs, again);
  }

  function again(): void {
    running = purge();
  }

  return {
    async close() {
      closed = true;
      cancel?.();
      await running;
    },
  };
}
