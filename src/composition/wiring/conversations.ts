import { ContainerModule, type ContainerModuleLoadOptions } from 'inversify';
import { Agents } from '../../application/agents/agents.ts';
import { ConversationReconciler } from '../../application/conversations/conversation-reconciler.ts';
import { Conversations } from '../../application/conversations/conversations.ts';
import { Events } from '../../application/events/events.ts';
import { Microagents } from '../../application/microagents/list-microagents.ts';
import { Repositories } from '../../application/repositories/locate-repository.ts';
import { all, provide, tokens } from './tokens.ts';

const { store, runtime, clock, random, logger, rules, closers, repositories, sandboxes, conversationReconciler } = tokens;

/** The use cases of repositories, events and conversations, and what keeps conversations going. */
export const conversationsModule = new ContainerModule(({ bind }) => {
  provide(bind, repositories, [all(tokens.gitProvider)], (providers) => new Repositories(providers));
  provide(bind, tokens.microagents, [repositories, tokens.deployment], (all, { product }) => new Microagents(all, product));
  provide(bind, tokens.events, [rules, store, clock, closers], ({ keepEventsForMs }, store, clock, closers) => {
    const events = new Events({ store: store.events, conversations: store.conversations, clock, keepForMs: keepEventsForMs });
    closers.defer(() => events.close());
    return events;
  });
  provide(
    bind,
    tokens.agents,
    [runtime, all(tokens.agentProtocol), tokens.secrets, clock, logger],
    (runtime, protocols, secrets, clock, logger) => new Agents({ runtime, protocols, secrets, clock, logger }),
  );
  bindConversations(bind);
});

function bindConversations(bind: ContainerModuleLoadOptions['bind']): void {
  provide(
    bind,
    conversationReconciler,
    [
      store, sandboxes, tokens.sandboxReconciler, runtime, repositories, tokens.microagents, tokens.checkouts, tokens.agents, clock, random,
      logger, closers,
    ],
    (store, sandboxes, sandboxReconciler, runtime, repositories, microagents, checkouts, agents, clock, random, logger, closers) => {
      const stores = { store: store.conversations, events: store.events, sandboxStore: store.sandboxes };
      const parts = { sandboxes, sandboxReconciler, runtime, repositories, microagents, checkouts, agents };
      const deps = { ...stores, ...parts, clock, random, logger };
      const reconciler = new ConversationReconciler(deps);
      closers.defer(() => reconciler.close());
      return reconciler;
    },
  );
  provide(
    bind,
    tokens.conversations,
    [rules, store, sandboxes, tokens.specs, repositories, conversationReconciler, clock, random],
    ({ answerWithinMs }, store, sandboxes, specs, repositories, reconciler, clock, random) => {
      const stores = { store: store.conversations, sandboxStore: store.sandboxes };
      return new Conversations({ ...stores, sandboxes, specs, repositories, reconciler, clock, random, answerWithinMs });
    },
  );
}
