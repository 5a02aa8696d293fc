import { ContainerModule } from 'inversify';
import { Agents } from '../../application/agents/agents.ts';
import { Conversations } from '../../application/conversations/conversations.ts';
import { ConversationReconciler } from '../../application/conversations/conversation-reconciler.ts';
import { Events } from '../../application/events/events.ts';
import { Microagents } from '../../application/microagents/list-microagents.ts';
import { Repositories } from '../../application/repositories/locate-repository.ts';
import { provide } from './provide.ts';
import { tokens } from './tokens.ts';

const day = 86_400_000;

/** The use cases of repositories, conversations and events. */
export const conversationsModule = new ContainerModule(({ bind }) => {
  const { options, store, runtime, clock, random, logger, closers, repositories, sandboxes, sandboxReconciler: sandboxDriver, conversationReconciler: conversationDriver } = tokens;
  provide(bind, repositories, [tokens.gitProviders], (providers) => new Repositories(providers));
  provide(bind, tokens.microagents, [repositories, options], (repositories, { product = 'skep' }) => new Microagents(repositories, product));
  provide(bind, tokens.events, [options, store, clock, closers], ({ keepEventsForMs = 30 * day }, store, clock, closers) => {
    const events = new Events({ store: store.events, conversations: store.conversations, clock, keepForMs: keepEventsForMs });
    closers.defer(() => events.close());
    return events;
  });
  provide(bind, tokens.agents, [runtime, tokens.protocols, tokens.secrets, clock, logger], (runtime, protocols, secrets, clock, logger) => new Agents({ runtime, protocols, secrets, clock, logger }));
  provide(
    bind,
    conversationDriver,
    [store, sandboxes, sandboxDriver, runtime, repositories, tokens.microagents, tokens.checkouts, tokens.agents, clock, random, logger, closers],
    (store, sandboxes, sandboxDriver, runtime, repositories, microagents, checkouts, agents, clock, random, logger, closers) => {
      const stores = { store: store.conversations, events: store.events, sandboxStore: store.sandboxes };
      const driver = new ConversationReconciler({ ...stores, sandboxes, sandboxReconciler: sandboxDriver, runtime, repositories, microagents, checkouts, agents, clock, random, logger });
      closers.defer(() => driver.close());
      return driver;
    },
  );
  provide(
    bind,
    tokens.conversations,
    [options, store, sandboxes, tokens.specs, repositories, conversationDriver, clock, random],
    (options, store, sandboxes, specs, repositories, driver, clock, random) => {
      const stores = { store: store.conversations, sandboxStore: store.sandboxes };
      return new Conversations({ ...stores, sandboxes, specs, repositories, reconciler: driver, clock, random, answerWithinMs: options.answerWithinMs ?? 20_000 });
    },
  );
});
