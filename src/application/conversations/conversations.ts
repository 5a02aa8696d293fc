import type { PermissionPolicy } from '../../domain/agent.ts';
import { Failure } from '../../domain/failure.ts';
import type { Conversation, ConversationSortOrder, Message } from '../../domain/conversation.ts';
import { eventOf, messageBody, statusEvents } from '../../domain/event.ts';
import { fingerprintOf } from '../../domain/fingerprint.ts';
import type { Page, PageRequest } from '../../domain/page.ts';
import type { IdempotencyClaim } from '../../ports/idempotency-claim.ts';
import type { Clock } from '../../ports/clock.ts';
import type { ConversationFilter, ConversationStore } from '../../ports/conversation-store.ts';
import type { Random } from '../../ports/random.ts';
import type { SandboxStore } from '../../ports/sandbox-store.ts';
import type { Repositories } from '../repositories/locate-repository.ts';
import { unknownSpec } from '../sandboxes/sandbox-admission.ts';
import type { Sandboxes } from '../sandboxes/sandboxes.ts';
import type { SandboxSpecs } from '../sandboxes/sandbox-specs.ts';
import { waitAtMost } from '../timers.ts';
import type { ConversationReconciler } from './conversation-reconciler.ts';
import { newConversation } from './new-conversation.ts';
import { answering, noSuchConversation, sending } from './talk.ts';
import { turnEnded } from './turns/end-of-turn.ts';
import { viewsOf, type ConversationView } from './views.ts';

export type { ConversationView } from './views.ts';

export interface ConversationsDeps {
  readonly store: ConversationStore;
  readonly sandboxStore: SandboxStore;
  readonly sandboxes: Sandboxes;
  readonly specs: SandboxSpecs;
  readonly repositories: Repositories;
  readonly driver: ConversationReconciler;
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
  /** Null is the spec's. */
  readonly permissionPolicy: PermissionPolicy | null;
  readonly claim?: IdempotencyClaim;
}

/** A message that was taken in, under the name that the events of its turn have. */
export interface SentMessage extends ConversationView {
  readonly messageId: string;
}

/** The use cases of conversations. Every one takes the owner; another owner's conversation does not exist for it. */
export class Conversations {
  readonly #deps: ConversationsDeps;

  constructor(deps: ConversationsDeps) {
    this.#deps = deps;
  }

  /**
   * Starts a conversation, and answers while its sandbox gets ready. Failures: `repository_not_found` and the others of
   * the git provider, `sandbox_not_found`, `invalid_request` (unknown spec), `sandbox_limit_reached`,
   * `idempotency_conflict`, `store_unavailable`.
   */
  async start(ownerId: string, request: StartConversationRequest): Promise<ConversationView> {
    const { store, driver, sandboxes } = this.#deps;
    const { claim, ...asked } = request;
    const conversation = await this.#newConversation(ownerId, asked);
    const origin = { at: conversation.createdAt, actor: 'user', reason: null } as const;
    const said = conversation.queue.map((queued) => eventOf(conversation, messageBody(queued), origin));
    const outcome = await store.insert(conversation, claim, [...statusEvents(null, conversation, origin), ...said]);
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
    const [view] = await viewsOf(this.#deps.sandboxStore, [await this.#owned(ownerId, id)]);
    if (view === undefined) throw noSuchConversation(id);
    return view;
  }

  /** The owner's conversations. Reads the store only. */
  async search(
    ownerId: string,
    filter: ConversationFilter,
    order: ConversationSortOrder,
    page: PageRequest,
  ): Promise<Page<ConversationView>> {
    const { items, next } = await this.#deps.store.search(ownerId, filter, order, page);
    return { items: await viewsOf(this.#deps.sandboxStore, items), next };
  }

  /**
   * Takes a message in for the agent, and answers when that is durable: the agent gets it when it has ended what it does, and
   * its sandbox is woken for it where it rests. Before the conversation is READY messages wait. An agent gets a message
   * at most once; one that it did not get because it could not be started is told of in the log. Failures:
   * `conversation_not_found`, `conversation_not_ready` (there is no agent, the start or the sandbox has failed, too much
   * waits), `idempotency_conflict`, `store_unavailable`.
   */
  async send(ownerId: string, id: string, message: Message, claim?: IdempotencyClaim): Promise<SentMessage> {
    const { driver, random, sandboxStore, specs } = this.#deps;
    const conversation = await this.#owned(ownerId, id);
    const sandbox = await sandboxStore.find(conversation.sandboxId);
    // A request that is made again has the same name for its message.
    const messageId = claim === undefined ? random.id('msg') : `msg-${fingerprintOf([id, claim.key])}`;
    const queued = { messageId, message };
    const change = sending(ownerId, id, queued, sandbox, specs.find(conversation.sandboxSpecId) ?? null);
    const outcome = await driver.records.write(id, change, claim);
    if (outcome.kind === 'conflict') throw new Failure('idempotency_conflict', { key: claim?.key ?? '' });
    if (outcome.kind === 'repeated') return { ...(await this.get(ownerId, id)), messageId };
    driver.nudge(id);
    return { ...(await this.get(ownerId, id)), messageId };
  }

  /**
   * Asks the agent to leave off its turn, and answers at once; the turn ends in a while, by itself or with the agent.
   * Messages that wait stay, and the next is handed over then. Idempotent; without a turn nothing happens. Failures:
   * `conversation_not_found`, `store_unavailable`.
   */
  async cancel(ownerId: string, id: string): Promise<ConversationView> {
    const { turn } = await this.#owned(ownerId, id);
    if (turn !== null) this.#deps.driver.cancel(id);
    return await this.get(ownerId, id);
  }

  /**
   * Answers what the agent asks leave for. Failures: `conversation_not_found`, `permission_not_found` (it does not wait
   * for this one, or no longer), `invalid_request` (no such option), `store_unavailable`.
   */
  async answerPermission(ownerId: string, id: string, permissionId: string, optionId: string): Promise<ConversationView> {
    const { driver } = this.#deps;
    const written = await driver.records.change(id, answering(ownerId, id, permissionId, optionId));
    if (written === null) throw noSuchConversation(id);
    driver.answered(id, permissionId, optionId);
    return await this.get(ownerId, id);
  }

  /**
   * Ends the conversation; its sandbox goes too if no other conversation uses it. It is gone for every caller when this
   * answers. Idempotent. Failure: `conversation_not_found` (there never was one, or it is another owner's).
   */
  async delete(ownerId: string, id: string): Promise<void> {
    const { store, clock, driver, answerWithinMs } = this.#deps;
    const conversation = await store.find(id);
    if (conversation === null || conversation.ownerId !== ownerId) throw noSuchConversation(id);
    await driver.records.change(id, ({ deletedAt, turn, permission }) =>
      deletedAt !== null ? null : {
        to: { deletedAt: clock.now(), turn: null, permission: null, queue: [] },
        actor: 'user',
        reason: null,
        events: [...(turn === null ? [] : turnEnded({ turn, permission }, 'interrupted')), { kind: 'conversation_deleted', data: {} }],
      },
    );
    await waitAtMost(clock, answerWithinMs, driver.redirect(id));
  }

  async #owned(ownerId: string, id: string): Promise<Conversation> {
    const conversation = await this.#deps.store.find(id);
    if (conversation === null || conversation.ownerId !== ownerId || conversation.deletedAt !== null) throw noSuchConversation(id);
    return conversation;
  }

  async #newConversation(ownerId: string, asked: Omit<StartConversationRequest, 'claim'>): Promise<Conversation> {
    const { sandboxes, specs, repositories, clock, random } = this.#deps;
    const { sandboxId, sandboxSpecId, selectedRepository, initialMessage: message } = asked;
    const taken = sandboxId === null ? null : await sandboxes.get(ownerId, sandboxId);
    const spec = taken?.spec ?? specs.find(sandboxSpecId);
    if (spec === undefined) throw unknownSpec(sandboxSpecId);
    const repository = selectedRepository === null ? null : await repositories.find(selectedRepository);
    return newConversation({
      ...asked,
      id: random.id('conv'),
      ownerId,
      taken,
      sandboxId: taken?.id ?? sandboxes.newId(),
      spec,
      gitProvider: repository?.provider ?? null,
      initialMessage: message === null ? null : { messageId: random.id('msg'), message },
      now: clock.now(),
    });
  }
}
