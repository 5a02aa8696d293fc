import { ContainerModule } from 'inversify';
import { Agents } from '../../application/agents/agents.ts';
import { ConversationReconciler } from '../../application/conversations/conversation-reconciler.ts';
import { createConversations } from '../../application/conversations/conversations.ts';
import { Events } from '../../application/events/events.ts';
import { Microagents } from '../../application/microagents/list-microagents.ts';
import { Repositories } from '../../application/repositories/repositories.ts';
import { Quarantine } from '../../application/sandboxes/quarantine.ts';
import { SandboxPool } from '../../application/sandboxes/sandbox-pool.ts';
import { SandboxReconciler } from '../../application/sandboxes/sandbox-reconciler.ts';
import { SandboxSpecs } from '../../application/sandboxes/sandbox-specs.ts';
import { createSandboxes } from '../../application/sandboxes/sandboxes.ts';
import { StartQueue } from '../../application/sandboxes/start-queue.ts';
import { Sweeper } from '../../application/sweeper.ts';
import { parseYamlFrontMatter } from '../../adapters/front-matter/yaml-front-matter.ts';
import { createLruMap } from '../../adapters/shared/lru-map.ts';
import { all, provide, tokens } from './tokens.ts';

const { system, store, runtime, rules, closers, specs, startQueue, sandboxReconciler, sandboxPool, sandboxes } = tokens;
const { repositories, microagents, checkouts, events, agents, conversationReconciler } = tokens;

const close = (service: { close(): Promise<void> | void }): Promise<void> | void => service.close();

/** The use cases of sandboxes, and what keeps sandboxes in their desired state. */
export const sandboxesModule = new ContainerModule(({ bind }) => {
  provide(bind, specs, [tokens.specList, store, system], (list, store, { clock }) => new SandboxSpecs(list, store.specs, clock));
  provide(bind, startQueue, [rules], ({ startsAtOnce }) => new StartQueue(startsAtOnce));
  provide(bind, sandboxReconciler, [store, runtime, tokens.probe, startQueue, tokens.secrets, system, closers],
    (store, runtime, probe, queue, secrets, system, closers) => {
      const stores = { store: store.sandboxes, conversations: store.conversations };
      return closers.adopt(new SandboxReconciler({ ...stores, runtime, probe, queue, secrets, ...system }), close);
    });
  provide(bind, sandboxPool, [rules, store, runtime, specs, sandboxReconciler, system, closers],
    ({ poolStartsAtOnce }, store, runtime, specs, reconciler, system, closers) => {
      const deps = { store: store.sandboxes, runtime, specs, reconciler, ...system };
      return closers.adopt(new SandboxPool({ ...deps, startsAtOnce: poolStartsAtOnce }), close);
    });
  provide(bind, sandboxes, [rules, store, runtime, specs, sandboxReconciler, sandboxPool, system],
    (rules, store, runtime, specs, reconciler, pool, system) => {
      const stores = { store: store.sandboxes, conversations: store.conversations };
      return createSandboxes({ ...rules, ...stores, runtime, specs, reconciler, pool, ...system });
    });
});

// What is kept of microagents that were read.
const cachedTexts = 256;
const cachedCharacters = 4 * 2 ** 20;

/** The use cases of repositories, events and conversations, and what keeps conversations going. */
export const conversationsModule = new ContainerModule(({ bind }) => {
  provide(bind, repositories, [all(tokens.gitProvider)], (providers) => new Repositories(providers));
  provide(bind, microagents, [repositories, tokens.deployment], (repositories, { product }) => {
    const texts = createLruMap<string>(cachedTexts, cachedCharacters, ({ length }) => length);
    return new Microagents({ repositories, product, parseFrontMatter: parseYamlFrontMatter, texts });
  });
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
  const conversationDeps = [rules, store, sandboxes, specs, repositories, checkouts, conversationReconciler, system] as const;
  provide(bind, tokens.conversations, conversationDeps,
    ({ answerWithinMs, conversationLimits }, store, sandboxes, specs, repositories, checkouts, reconciler, system) => {
      const stores = { store: store.conversations, sandboxStore: store.sandboxes };
      const useCases = { sandboxes, specs, repositories, checkouts, reconciler };
      return createConversations({ ...stores, ...useCases, ...system, answerWithinMs, conversationLimits });
    });
});

/** What runs by itself while a deployment is open. */
export const upkeepModule = new ContainerModule(({ bind }) => {
  provide(bind, tokens.quarantine, [rules, store, runtime, sandboxReconciler, system], (rules, store, runtime, sandboxReconciler, system) =>
    new Quarantine({ ...rules, store: store.sandboxes, runtime, sandboxReconciler, ...system }));
  provide(bind, tokens.sweeper,
    [rules, store, runtime, sandboxReconciler, conversationReconciler, sandboxPool, tokens.quarantine, events, system, closers],
    (rules, store, runtime, sandboxReconciler, conversationReconciler, pool, quarantine, events, system, closers) => {
      const deps = { store, runtime, sandboxReconciler, conversationReconciler, pool, quarantine, events };
      return closers.adopt(new Sweeper({ ...rules, ...deps, ...system }), close);
    });
});
