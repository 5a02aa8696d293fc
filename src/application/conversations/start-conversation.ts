import type { PermissionPolicy } from '../../domain/permission.ts';
import { newConversation, type Conversation, type Message } from '../../domain/conversation.ts';
import { eventOf, messageBody, statusEvents } from '../../domain/event.ts';
import { Failure } from '../../domain/failure.ts';
import { type Caller, userIdOf } from '../../domain/principal.ts';
import type { SandboxParameters } from '../../domain/sandbox-parameters.ts';
import { neverAborts } from '../../ports/abort-signals.ts';
import type { ClaimOutcome, IdempotencyClaim } from '../../ports/idempotency-claim.ts';
import type { RepositoryCheckouts } from '../../ports/repository-checkouts.ts';
import type { RepositoryPatterns, ResolvedRepository } from '../repositories/repositories.ts';
import type { ConversationUseCaseDeps } from './conversations.ts';
import { getConversation, type ConversationView } from './get-conversation.ts';

/** An estimate: there is room again when users end conversations. */
const limitRetryAfterSeconds = 60;

export interface StartConversationRequest {
  readonly title: string | null;
  /** The sandbox to use. Null starts a new one. */
  readonly sandboxId: string | null;
  /** Null means the deployment's default. */
  readonly sandboxSpecId: string | null;
  /** The parameters of a new sandbox. Default: those of the spec. */
  readonly sandboxParameters?: SandboxParameters;
  readonly selectedRepository: string | null;
  readonly selectedBranch: string | null;
  readonly initialMessage: Message | null;
  /** Null means the policy of the spec. */
  readonly permissionPolicy: PermissionPolicy | null;
  /** The repositories that the caller may use. Null means all. */
  readonly patterns: RepositoryPatterns;
  readonly claim?: IdempotencyClaim;
}

/**
 * Starts a conversation and returns it while its sandbox gets ready. Throws `repository_not_found`, `branch_not_found`,
 * `repository_empty` and the other failures of git providers and checkouts, `sandbox_not_found`, `invalid_request` (unknown spec,
 * parameters that it does not allow, a message without an agent, a sandbox of another user), `sandbox_limit_reached`,
 * `conversation_limit_reached`, `idempotency_conflict` or `store_unavailable`.
 */
export async function startConversation(
  deps: ConversationUseCaseDeps,
  caller: Caller,
  request: StartConversationRequest,
): Promise<ConversationView> {
  const { store, reconciler } = deps;
  const { claim, patterns, ...fields } = request;
  const ownerId = userIdOf(caller);
  // A repeated request is answered without the git host, which may be down by now.
  const earlier = claim === undefined ? null : await store.conversations.findClaim(claim);
  if (earlier !== null) return await outcomeOfEarlier(deps, caller, request, earlier);
  const conversation = await toConversation(deps, caller, fields, patterns);
  const origin = { at: conversation.createdAt, actor: 'user', userId: ownerId, reason: null } as const;
  const messages = conversation.queue.map((queued) => eventOf(conversation, messageBody(queued), origin));
  const events = [...statusEvents(null, conversation, origin), ...messages];
  const outcome = await reconciler.runFirstStep(conversation.id, async () => {
    const inserted = await store.conversations.insert(conversation, claim, events, deps.conversationLimits);
    if (inserted.kind === 'inserted' && conversation.startsSandbox) await startSandbox(deps, conversation);
    return inserted;
  });
  if (outcome.kind === 'limit') {
    throw new Failure('conversation_limit_reached', { ...outcome.reached, retryAfterSeconds: limitRetryAfterSeconds });
  }
  if (outcome.kind !== 'inserted') return await outcomeOfEarlier(deps, caller, request, outcome);
  reconciler.enqueue(conversation.id);
  return await getConversation(deps, ownerId, conversation.id);
}

async function startSandbox({ sandboxes, store }: ConversationUseCaseDeps, conversation: Conversation): Promise<void> {
  const { id, ownerId, sandboxId, sandboxSpecId: specId, sandboxParameters: parameters } = conversation;
  try {
    await sandboxes.startWithId(ownerId, sandboxId, { specId, parameters });
  } catch (error) {
    // If this fails too, or the record has been changed, the start continues in the background, as after a crash here.
    await store.conversations.undoInsert(id).catch(() => {});
    throw error;
  }
}

/** Returns the conversation that the same request started before. If it was refused, and its insert undone, starts another one. */
async function outcomeOfEarlier(
  deps: ConversationUseCaseDeps, caller: Caller, request: StartConversationRequest, outcome: ClaimOutcome,
): Promise<ConversationView> {
  const { store, reconciler } = deps;
  if (outcome.kind === 'conflict') throw new Failure('idempotency_conflict', { key: request.claim?.key ?? '' });
  await reconciler.firstStepOver(outcome.id);
  if ((await store.conversations.find(outcome.id)) === null) return await startConversation(deps, caller, request);
  return await getConversation(deps, userIdOf(caller), outcome.id);
}

async function toConversation(
  deps: ConversationUseCaseDeps,
  caller: Caller,
  fields: Omit<StartConversationRequest, 'claim' | 'patterns'>,
  patterns: RepositoryPatterns,
): Promise<Conversation> {
  const { store, sandboxes, specs, repositories, checkouts, clock, random } = deps;
  const ownerId = userIdOf(caller);
  const { sandboxId, sandboxSpecId, sandboxParameters = {}, selectedRepository, selectedBranch, initialMessage: message } = fields;
  const taken = sandboxId === null ? null : await sandboxes.get(caller, sandboxId);
  if (taken !== null && taken.ownerId !== ownerId) {
    throw new Failure('invalid_request', { problems: [{ argument: 'sandboxId', reason: { code: 'sandbox_of_other_user' } }] });
  }
  const spec = taken?.spec ?? specs.get(sandboxSpecId);
  sandboxes.checkParameters(spec, sandboxParameters);
  if (message !== null && spec.agent === null) {
    throw new Failure('invalid_request', { problems: [{ argument: 'initialMessage', reason: { code: 'agent_not_named' } }] });
  }
  if (spec.agent !== null) deps.agentMemory.check();
  const repository = selectedRepository === null ? null : await repositories.find(selectedRepository, patterns);
  if (repository !== null && selectedBranch !== null) await checkBranch(checkouts, repository, selectedBranch);
  return newConversation({
    ...fields,
    id: random.id('conv'),
    ownerId,
    taken,
    others: taken === null ? [] : await store.conversations.findUsing(taken.id),
    sandboxId: taken?.id ?? random.id('sb'),
    spec,
    repository: repository === null ? null : { provider: repository.provider.name, path: repository.path },
    initialMessage: message === null ? null : { messageId: random.id('msg'), message, sandboxVersion: taken?.version ?? 0 },
    now: clock.now(),
  });
}

/** Throws if the branch can't be checked out, before anything is started for it. */
async function checkBranch(checkouts: RepositoryCheckouts, { provider, path }: ResolvedRepository, branch: string): Promise<void> {
  const remote = await provider.remote(path);
  // The adapter limits the time.
  await checkouts.checkBranch({ provider: provider.name, repository: path, remote, branch }, neverAborts);
}
