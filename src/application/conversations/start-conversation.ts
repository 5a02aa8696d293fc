import type { PermissionPolicy } from '../../domain/agent.ts';
import { newConversation, type Conversation, type Message } from '../../domain/conversation.ts';
import { eventOf, messageBody, statusEvents } from '../../domain/event.ts';
import { Failure } from '../../domain/failure.ts';
import type { Clock } from '../../ports/clock.ts';
import type { IdempotencyClaim } from '../../ports/idempotency-claim.ts';
import type { Random } from '../../ports/random.ts';
import type { Repositories } from '../repositories/locate-repository.ts';
import type { SandboxSpecs } from '../sandboxes/sandbox-specs.ts';
import type { Sandboxes } from '../sandboxes/sandboxes.ts';
import { unknownSpec } from '../sandboxes/start-sandbox.ts';
import type { ConversationReconciler } from './conversation-reconciler.ts';
import { getConversation, type ConversationView, type GetConversationDeps } from './get-conversation.ts';

export interface StartConversationDeps extends GetConversationDeps {
  readonly sandboxes: Sandboxes;
  readonly specs: SandboxSpecs;
  readonly repositories: Repositories;
  readonly reconciler: ConversationReconciler;
  readonly clock: Clock;
  readonly random: Random;
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

/**
 * Starts a conversation and returns it while its sandbox gets ready. Throws `repository_not_found` and the other failures of
 * the git provider, `sandbox_not_found`, `invalid_request` (unknown spec), `sandbox_limit_reached`, `idempotency_conflict` or
 * `store_unavailable`.
 */
export async function startConversation(
  deps: StartConversationDeps,
  ownerId: string,
  request: StartConversationRequest,
): Promise<ConversationView> {
  const { store, reconciler, sandboxes } = deps;
  const { claim, ...asked } = request;
  const conversation = await toConversation(deps, ownerId, asked);
  const origin = { at: conversation.createdAt, actor: 'user', reason: null } as const;
  const messages = conversation.queue.map((queued) => eventOf(conversation, messageBody(queued), origin));
  const outcome = await store.insert(conversation, claim, [...statusEvents(null, conversation, origin), ...messages]);
  if (outcome.kind === 'conflict') throw new Failure('idempotency_conflict', { key: claim?.key ?? '' });
  if (outcome.kind === 'repeated') return await getConversation(deps, ownerId, outcome.id);
  if (conversation.startsSandbox) {
    try {
      await sandboxes.startAs(conversation.sandboxId, ownerId, conversation.sandboxSpecId);
    } catch (error) {
      // If this fails too, the start goes on without its caller, as after a crash at this point.
      await store.withdraw(conversation.id).catch(() => {});
      throw error;
    }
  }
  reconciler.enqueue(conversation.id);
  return await getConversation(deps, ownerId, conversation.id);
}

async function toConversation(
  deps: StartConversationDeps,
  ownerId: string,
  asked: Omit<StartConversationRequest, 'claim'>,
): Promise<Conversation> {
  const { sandboxes, specs, repositories, clock, random } = deps;
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
