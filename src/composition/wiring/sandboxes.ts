import { availableParallelism } from 'node:os';
import { ContainerModule } from 'inversify';
import { SandboxReconciler } from '../../application/sandboxes/sandbox-reconciler.ts';
import { SandboxPool } from '../../application/sandboxes/sandbox-pool.ts';
import { Sandboxes } from '../../application/sandboxes/sandboxes.ts';
import { SandboxSpecs } from '../../application/sandboxes/sandbox-specs.ts';
import { StartQueue } from '../../application/sandboxes/start-queue.ts';
import { unlimited } from '../../domain/sandbox-limits.ts';
import { sandboxSpec } from '../../domain/sandbox-spec.ts';
import { defaultSpecs } from './default-specs.ts';
import type { SkepOptions } from '../options.ts';
import { provide } from './provide.ts';
import { tokens } from './tokens.ts';

/** An engine that is asked for more starts at a time than it has cores for only gets slower. */
const startsAtOnce = (options: SkepOptions): number => options.startsAtOnce ?? 2 * availableParallelism();

/** The use cases of sandboxes. */
export const sandboxesModule = new ContainerModule(({ bind }) => {
  const { options, store, runtime, clock, random, logger, closers, specs, sandboxReconciler: sandboxDriver, sandboxPool: pool } = tokens;
  provide(bind, specs, [options, store, clock], (options, store, clock) => new SandboxSpecs((options.specs ?? defaultSpecs(options)).map(sandboxSpec), store.specs, clock));
  provide(bind, sandboxDriver, [options, store, runtime, tokens.probe, clock, logger, closers], (options, store, runtime, probe, clock, logger, closers) => {
    const queue = new StartQueue(startsAtOnce(options));
    const driver = new SandboxReconciler({ store: store.sandboxes, runtime, probe, clock, logger, queue });
    closers.defer(() => driver.close());
    return driver;
  });
  provide(bind, pool, [options, store, runtime, specs, sandboxDriver, clock, random, logger, closers], (options, store, runtime, specs, reconciler, clock, random, logger, closers) => {
    const deps = { store: store.sandboxes, runtime, specs, reconciler, clock, random, logger };
    // The rest of the turns is left to those who wait for a sandbox.
    const pool = new SandboxPool({ ...deps, startsAtOnce: Math.max(1, Math.floor(startsAtOnce(options) / 2)) });
    closers.defer(() => pool.close());
    return pool;
  });
  provide(bind, tokens.sandboxes, [options, store, specs, sandboxDriver, pool, clock, random, logger], (options, store, specs, reconciler, pool, clock, random, logger) => {
    const { whenFull = 'refuse', answerWithinMs = 20_000 } = options;
    const limits = { ...unlimited, ...options.limits };
    return new Sandboxes({ store: store.sandboxes, specs, reconciler, pool, limits, whenFull, clock, random, logger, answerWithinMs });
  });
});
