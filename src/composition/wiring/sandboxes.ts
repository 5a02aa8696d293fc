import { ContainerModule } from 'inversify';
import { SandboxPool } from '../../application/sandboxes/sandbox-pool.ts';
import { SandboxReconciler } from '../../application/sandboxes/sandbox-reconciler.ts';
import { SandboxSpecs } from '../../application/sandboxes/sandbox-specs.ts';
import { Sandboxes } from '../../application/sandboxes/sandboxes.ts';
import { StartQueue } from '../../application/sandboxes/start-queue.ts';
import { provide, tokens } from './tokens.ts';

/** The use cases of sandboxes, and what keeps sandboxes in their desired state. */
export const sandboxesModule = new ContainerModule(({ bind }) => {
  const { store, runtime, clock, random, logger, rules, closers, specs, startQueue, sandboxReconciler, sandboxPool } = tokens;
  provide(bind, specs, [tokens.specList, store, clock], (list, store, clock) => new SandboxSpecs(list, store.specs, clock));
  provide(bind, startQueue, [rules], ({ startsAtOnce }) => new StartQueue(startsAtOnce));
  provide(
    bind,
    sandboxReconciler,
    [store, runtime, tokens.probe, startQueue, clock, logger, closers],
    (store, runtime, probe, queue, clock, logger, closers) => {
      const reconciler = new SandboxReconciler({ store: store.sandboxes, runtime, probe, queue, clock, logger });
      closers.defer(() => reconciler.close());
      return reconciler;
    },
  );
  provide(
    bind,
    sandboxPool,
    [rules, store, runtime, specs, sandboxReconciler, clock, random, logger, closers],
    ({ poolStartsAtOnce }, store, runtime, specs, reconciler, clock, random, logger, closers) => {
      const deps = { store: store.sandboxes, runtime, specs, reconciler, clock, random, logger };
      const pool = new SandboxPool({ ...deps, startsAtOnce: poolStartsAtOnce });
      closers.defer(() => pool.close());
      return pool;
    },
  );
  provide(
    bind,
    tokens.sandboxes,
    [rules, store, specs, sandboxReconciler, sandboxPool, clock, random, logger],
    ({ limits, whenFull, answerWithinMs }, store, specs, reconciler, pool, clock, random, logger) =>
      new Sandboxes({ store: store.sandboxes, specs, reconciler, pool, limits, whenFull, answerWithinMs, clock, random, logger }),
  );
});
