import { Failure } from '../../domain/failure.ts';
import type { Conversation, ConversationSortOrder, Message } from '../../domain/conversation.ts';
import type { Page, PageRequest } from '../../domain/page.ts';
import type { SandboxStatus } from '../../domain/sandbox.ts';
import type { Claim } from '../../ports/claim.ts';
import type { Clock } from '../../ports/clock.ts';
import type { ConversationFilter, ConversationStore } from '../../ports/conversation-store.ts';
import type { Random } from '../../ports/random.ts';
import type { SandboxStore } from '../../ports/sandbox-store.ts';
import type { Repositories } from '../repositories.ts';
import { unknownSpec } from '../refusals.ts';
import type { Sandboxes } from '../sandboxes/sandboxes.ts';
import type { SandboxSpecs } from '../sandboxes/specs.ts';
import { within } from '../within.ts';
import type { ConversationDriver } from './driver.ts';

export interface ConversationsParts {
  readonly store: ConversationStore;
  readonly sandboxStore: SandboxStore;
  readonly sandboxes: Sandboxes;
  readonly specs: SandboxSpecs;
  readonly repositories: Repositories;
  readonly driver: ConversationDriver;
  readonly clock: Clock;
  readonly random: Random;
  readonly answerWithinMs: number;
}

export interface StartConversationRequest {
  readonly title: string | null;
  /** Use this sandbox; otherwise one is started. */
  readonly sandboxId: string | null;
  /** Null is the deployment's default. */
  readonly sandboxSpecId: string | null;
  readonly selectedRepository: string | null;
  readonly selectedBranch: string | null;
  readonly initialMessage: Message | null;
  readonly claim?: Claim;
}

/** A conversation, and the status of its sandbox; MISSING when the sandbox was deleted. */
export interface ConversationView {
  readonly conversation: Conversation;
  readonly sandboxStatus: SandboxStatus;
}

/** The use cases of conversations. Every one takes the owner; another owner's conversation does not exist for it. */
export class Conversations {
  readonly #parts: ConversationsParts;

  constructor(parts: ConversationsParts) {
    this.#parts = parts;
  }

  /**
   * Starts a conversation, and answers while its sandbox gets ready. Failures: `repository_not_found` and the others of
   * the git provider, `sandbox_not_found`, `invalid_request` (unknown spec), `sandbox_limit_reached`,
   * `idempotency_conflict`, `store_unavailable`.
   */
  async start(ownerId: string, request: StartConversationRequest): Promise<ConversationView> {
    const { store, driver, sandboxes } = this.#parts;
    const { claim, ...asked } = request;
    const conversation = await this.#newConversation(ownerId, asked);
    const outcome = await store.insert(conversation, claim);
    if (outcome.kind === 'conflict') throw new Failure('idempotency_conflict', { key: claim?.key ?? '' });
    if (outcome.kind === 'repeated') return await this.get(ownerId, outcome.id);
    if (conversation.startsSandbox) {
      try {
        await sandboxes.startAs(conversation.sandboxId, ownerId, conversation.sandboxSpecId);
      } catch (error) {
        // Where this fails too, the start goes on without its caller, as after a crash at this point.
        await store.withdraw(conversation.id).catch(() => {});
        throw error;
      }
    }
    driver.nudge(conversation.id);
    return await this.get(ownerId, conversation.id);
  }

  /** Failures: `conversation_not_found`, `store_unavailable`. */
  async get(ownerId: string, id: string): Promise<ConversationView> {
    const conversation = await this.#parts.store.find(id);
    if (conversation === null || conversation.ownerId !== ownerId || conversation.deletedAt !== null) {
      throw new Failure('conversation_not_found', { id });
    }
    const [view] = await this.#views([conversation]);
    if (view === undefined) throw new Failure('conversation_not_found', { id });
    return view;
  }

  /** The owner's conversations. Reads the store only. */
  async search(
    ownerId: string,
    filter: ConversationFilter,
    order: ConversationSortOrder,
    page: PageRequest,
  ): Promise<Page<ConversationView>> {
    const { items, next } = await this.#parts.store.search(ownerId, filter, order, page);
    return { items: await this.#views(items), next };
  }

  /**
   * Ends the conversation; its sandbox goes too if no other conversation uses it. It is gone for every caller when this
   * answers. Idempotent. Failure: `conversation_not_found` (there never was one, or it is another owner's).
   */
  async delete(ownerId: string, id: string): Promise<void> {
    const { store, clock, driver, answerWithinMs } = this.#parts;
    for (;;) {
      const conversation = await store.find(id);
      if (conversation === null || conversation.ownerId !== ownerId) throw new Failure('conversation_not_found', { id });
      if (conversation.deletedAt !== null) break;
      const now = clock.now();
      const deleted = { ...conversation, deletedAt: now, updatedAt: now, generation: conversation.generation + 1 };
      const outcome = await store.replace(deleted);
      if (outcome.kind === 'replaced') break;
    }
    await within(clock, answerWithinMs, driver.settle(id));
  }

  async #newConversation(ownerId: string, asked: Omit<StartConversationRequest, 'claim'>): Promise<Conversation> {
    const { sandboxes, specs, repositories, clock, random } = this.#parts;
    const { sandboxId, sandboxSpecId, selectedRepository } = asked;
    const named = sandboxId === null ? null : await sandboxes.get(ownerId, sandboxId);
    const spec = named?.spec ?? specs.find(sandboxSpecId);
    if (spec === undefined) throw unknownSpec(sandboxSpecId);
    const repository = selectedRepository === null ? null : await repositories.find(selectedRepository);
    const now = clock.now();
    return {
      id: random.id('conv'),
      ownerId,
      title: asked.title,
      sandboxId: named?.id ?? sandboxes.newId(),
      sandboxSpecId: spec.id,
      startsSandbox: named === null,
      selectedRepository,
      selectedBranch: asked.selectedBranch,
      gitProvider: repository?.provider ?? null,
      initialMessage: asked.initialMessage,
      startStatus: 'WORKING',
      executionStatus: null,
      statusDetail: null,
      generation: 1,
      createdAt: now,
      updatedAt: now,
      deletedAt: null,
      removedAt: null,
    };
  }

  async #views(conversations: readonly Conversation[]): Promise<ConversationView[]> {
    const ids = [...new Set(conversations.map(({ sandboxId }) => sandboxId))];
    const sandboxes = ids.length === 0 ? [] : await this.#parts.sandboxStore.findMany(ids);
    const statuses = new Map(sandboxes.map((sandbox) => [sandbox.id, sandbox.deletedAt === null ? sandbox.status : 'MISSING'] as const));
    return conversations.map((conversation) => ({
      conversation,
      sandboxStatus: statuses.get(conversation.sandboxId) ?? beforeSandbox(conversation),
    }));
  }
}

/** A sandbox that is not written down is about to be, or was purged. */
function beforeSandbox({ startStatus, startsSandbox }: Conversation): SandboxStatus {
  return startStatus === 'WORKING' && startsSandbox ? 'STARTING' : 'MISSING';
}
