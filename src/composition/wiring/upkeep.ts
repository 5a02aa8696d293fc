import { ContainerModule } from 'inversify';
import { Sweeper } from '../../application/sweeper.ts';
import { purgeEvents } from './purge-events.ts';
import { provide } from './provide.ts';
import { tokens } from './tokens.ts';

const hour = 3_600_000;

/** What goes on by itself while a deployment is open. */
export const upkeepModule = new ContainerModule(({ bind }) => {
  const { options, store, runtime, sandboxReconciler: sandboxDriver, conversationReconciler: conversationDriver, sandboxPool: pool, clock, logger, closers, events } = tokens;
  provide(
    bind,
    tokens.sweeper,
    [options, store, runtime, sandboxDriver, conversationDriver, pool, clock, logger, closers],
    (options, store, runtime, sandboxDriver, conversationDriver, pool, clock, logger, closers) => {
      const rules = { sweepEveryMs: options.sweepEveryMs ?? 10_000, orphanGraceMs: 10_000, rememberDeletedMs: 24 * hour };
      const reconciler = new Sweeper({ store, runtime, sandboxReconciler: sandboxDriver, conversationReconciler: conversationDriver, pool, clock, logger, ...rules });
      closers.defer(() => reconciler.close());
      return reconciler;
    },
  );
  provide(bind, tokens.purging, [events, clock, logger, closers], (events, clock, logger, closers) => {
    const purging = purgeEvents(events, clock, logger, hour);
    closers.defer(() => purging.close());
    return purging;
  });
});
