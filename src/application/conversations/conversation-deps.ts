import type { ConversationLimits } from '../../domain/conversation-limits.ts';
import type { Clock } from '../../ports/clock.ts';
import type { ConversationStore } from '../../ports/conversation-store.ts';
import type { Logger } from '../../ports/logger.ts';
import type { Random } from '../../ports/random.ts';
import type { RepositoryCheckouts } from '../../ports/repository-checkouts.ts';
import type { SandboxStore } from '../../ports/sandbox-store.ts';
import type { AgentMemory } from '../agents/agent-memory.ts';
import type { Repositories } from '../repositories/repositories.ts';
import type { Sandboxes } from '../sandboxes/sandboxes.ts';
import type { SandboxSpecs } from '../sandboxes/sandbox-specs.ts';
import type { ConversationReconciler } from './conversation-reconciler.ts';

/** What everything about conversations works with. */
export interface ConversationDeps {
  readonly store: ConversationStore;
  readonly sandboxStore: SandboxStore;
  readonly sandboxes: Sandboxes;
  readonly repositories: Repositories;
  readonly checkouts: RepositoryCheckouts;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
}

/** What the use cases of conversations work with. */
export interface ConversationsDeps extends ConversationDeps {
  readonly specs: SandboxSpecs;
  readonly reconciler: ConversationReconciler;
  readonly conversationLimits: ConversationLimits;
  readonly agentMemory: AgentMemory;
  /** How long to wait for the end of a deleted conversation, in milliseconds. */
  readonly answerWithinMs: number;
}
