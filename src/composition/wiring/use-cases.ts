import { ContainerModule } from 'inversify';
import { Agents } from '../../application/agents/agents.ts';
import { ConversationReconciler } from '../../application/conversations/conversation-reconciler.ts';
import { Conversations } from '../../application/conversations/conversations.ts';
import { Events, purgeEventsEveryMs } from '../../application/events/events.ts';
import { Microagents } from '../../application/microagents/list-microagents.ts';
import { Repositories } from '../../application/repositories/locate-repository.ts';
import { SandboxPool } from '../../application/sandboxes/sandbox-pool.ts';
import { SandboxReconciler } from '../../application/sandboxes/sandbox-reconciler.ts';
import { SandboxSpecs } from '../../application/sandboxes/sandbox-specs.ts';
import { Sandboxes } from '../../application/sandboxes/sandboxes.ts';
import { StartQueue } from '../../application/sandboxes/start-queue.ts';
import { Sweeper } from '../../application/sweeper.ts';
import type { SystemDeps } from '../options.ts';
import { all, provide, tokens } from './tokens.ts';

const { system, store, runtime, rules, closers, specs, startQueue, sandboxReconciler, sandboxPool, sandboxes } = tokens;
const { repositories, microagents, checkouts, events, agents, conversationReconciler } = tokens;

const close = (service: { close(): Promise<void> | void }): Promise<void> | void => service.close();

/** The use cases of sandboxes, and what keeps sandboxes in their desired state. */
export const sandboxesModule = new ContainerModule(({ bind }) => {
  provide(bind, specs, [tokens.specList, store, system], (list, store, { clock }) => new SandboxSpecs(list, store.specs, clock));
  provide(bind, startQueue, [rules], ({ startsAtOnce }) => new StartQueue(startsAtOnce));
  provide(bind, sandboxReconciler, [store, runtime, tokens.probe, startQueue, system, closers],
    (store, runtime, probe, queue, system, closers) =>
      closers.adopt(new SandboxReconciler({ store: store.sandboxes, runtime, probe, queue, ...system }), close));
  provide(bind, sandboxPool, [rules, store, runtime, specs, sandboxReconciler, system, closers],
    ({ poolStartsAtOnce }, store, runtime, specs, reconciler, system, closers) => {
      const deps = { store: store.sandboxes, runtime, specs, reconciler, ...system };
      return closers.adopt(new SandboxPool({ ...deps, startsAtOnce: poolStartsAtOnce }), close);
    });
  provide(bind, sandboxes, [rules, store, specs, sandboxReconciler, sandboxPool, system],
    (rules, store, specs, reconciler, pool, system) =>
      new Sandboxes({ ...rules, store: store.sandboxes, specs, reconciler, pool, ...system }));
});

/** The use cases of repositories, events and conversations, and what keeps conversations going. */
export const conversationsModule = new ContainerModule(({ bind }) => {
  provide(bind, repositories, [all(tokens.gitProvider)], (providers) => new Repositories(providers));
  provide(bind, microagents, [repositories, tokens.deployment], (all, { product }) => new Microagents(all, product));
  provide(bind, events, [rules, store, system, closers], ({ keepEventsForMs: keepForMs }, store, { clock }, closers) =>
    closers.adopt(new Events({ store: store.events, conversations: store.conversations, clock, keepForMs }), close));
  provide(bind, agents, [runtime, all(tokens.agentProtocol), tokens.secrets, system], (runtime, protocols, secrets, system) =>
    new Agents({ runtime, protocols, secrets, ...system }));
  provide(bind, conversationReconciler,
    [store, sandboxes, sandboxReconciler, runtime, repositories, microagents, checkouts, agents, system, closers],
    (store, sandboxes, sandboxReconciler, runtime, repositories, microagents, checkouts, agents, system, closers) => {
      const stores = { store: store.conversations, events: store.events, sandboxStore: store.sandboxes };
      const parts = { sandboxes, sandboxReconciler, runtime, repositories, microagents, checkouts, agents };
      return closers.adopt(new ConversationReconciler({ ...stores, ...parts, ...system }), close);
    });
  provide(bind, tokens.conversations, [rules, store, sandboxes, specs, repositories, conversationReconciler, system],
    ({ answerWithinMs }, store, sandboxes, specs, repositories, reconciler, system) => {
      const stores = { store: store.conversations, sandboxStore: store.sandboxes };
      return new Conversations({ ...stores, sandboxes, specs, repositories, reconciler, ...system, answerWithinMs });
    });
});

/** What runs by itself while a deployment is open. */
export const upkeepModule = new ContainerModule(({ bind }) => {
  provide(bind, tokens.sweeper, [rules, store, runtime, sandboxReconciler, conversationReconciler, sandboxPool, system, closers],
    (rules, store, runtime, sandboxReconciler, conversationReconciler, pool, system, closers) =>
      closers.adopt(new Sweeper({ ...rules, store, runtime, sandboxReconciler, conversationReconciler, pool, ...system }), close));
  provide(bind, tokens.eventPurge, [events, system, closers], (events, system, closers) =>
    closers.adopt(startEventPurge(events, system), close));
});

export interface EventPurge {
  /** Stops it. Resolves when a removal that runs has ended. */
  close(): Promise<void>;
}

/** Removes old events at once, and again after each interval. */
function startEventPurge(events: Pick<Events, 'purge'>, { clock, logger }: SystemDeps): EventPurge {
  let closed = false;
  let cancel: (() => void) | null = null;
  let running = purge();

  async function purge(): Promise<void> {
    try {
      await events.purge();
    } catch (error) {
      logger.warn({ error }, 'old events could not be removed; the next interval tries again');
    }
    if (!closed) cancel = clock.after(purgeEventsEveryMs, () => void (running = purge()));
  }

  return {
    async close() {
      closed = true;
      cancel?.();
      await running;
    },
  };
}
