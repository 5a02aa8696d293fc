import { ContainerModule } from 'inversify';
import { ConversationDriver } from '../../application/conversations/driver.ts';
import { Conversations } from '../../application/conversations/conversations.ts';
import { Microagents } from '../../application/microagents.ts';
import { Reconciler } from '../../application/reconciler.ts';
import { Repositories } from '../../application/repositories.ts';
import { SandboxDriver } from '../../application/sandboxes/driver.ts';
import { Sandboxes } from '../../application/sandboxes/sandboxes.ts';
import { SandboxSpecs } from '../../application/sandboxes/specs.ts';
import { sandboxSpec } from '../../domain/sandbox-spec-defaults.ts';
import { defaultSpecs } from '../default-specs.ts';
import { provide } from './provide.ts';
import { tokens } from './tokens.ts';

const hour = 3_600_000;

/** The use cases. */
export const applicationModule = new ContainerModule(({ bind }) => {
  const { options, store, runtime, clock, random, logger, closers, sandboxDriver, conversationDriver, specs, sandboxes } = tokens;
  provide(bind, tokens.repositories, [tokens.gitProviders], (providers) => new Repositories(providers));
  provide(bind, tokens.microagents, [tokens.repositories, options], (repositories, { product = 'skep' }) => new Microagents(repositories, product));
  provide(bind, specs, [options, store, clock], (options, store, clock) => new SandboxSpecs((options.specs ?? defaultSpecs()).map(sandboxSpec), store.specs, clock));
  provide(bind, sandboxDriver, [store, runtime, tokens.probe, clock, logger, closers], (store, runtime, probe, clock, logger, closers) => {
    const driver = new SandboxDriver({ store: store.sandboxes, runtime, probe, clock, logger });
    closers.defer(() => driver.close());
    return driver;
  });
  provide(bind, sandboxes, [options, store, specs, sandboxDriver, clock, random], (options, store, specs, driver, clock, random) => {
    const limits = { runningPerOwner: null, running: null, ...options.limits };
    return new Sandboxes({ store: store.sandboxes, specs, driver, limits, clock, random, answerWithinMs: options.answerWithinMs ?? 20_000 });
  });
  provide(bind, conversationDriver, [store, sandboxes, sandboxDriver, clock, logger, closers], (store, sandboxes, sandboxDriver, clock, logger, closers) => {
    const driver = new ConversationDriver({ store: store.conversations, sandboxes, sandboxDriver, clock, logger });
    closers.defer(() => driver.close());
    return driver;
  });
  provide(
    bind,
    tokens.conversations,
    [options, store, sandboxes, specs, tokens.repositories, conversationDriver, clock, random],
    (options, store, sandboxes, specs, repositories, driver, clock, random) =>
      new Conversations({
        store: store.conversations,
        sandboxStore: store.sandboxes,
        sandboxes,
        specs,
        repositories,
        driver,
        clock,
        random,
        answerWithinMs: options.answerWithinMs ?? 20_000,
      }),
  );
  provide(
    bind,
    tokens.reconciler,
    [options, store, runtime, sandboxDriver, conversationDriver, clock, logger, closers],
    (options, store, runtime, sandboxDriver, conversationDriver, clock, logger, closers) => {
      const sweepEveryMs = options.sweepEveryMs ?? 10_000;
      const rules = { sweepEveryMs, orphanGraceMs: 10_000, rememberDeletedMs: 24 * hour };
      const reconciler = new Reconciler({ store, runtime, sandboxDriver, conversationDriver, clock, logger, ...rules });
      closers.defer(() => reconciler.close());
      return reconciler;
    },
  );
});
