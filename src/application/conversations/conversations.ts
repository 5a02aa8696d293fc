import type { ConversationSortOrder, Message } from '../../domain/conversation.ts';
import type { Page, PageRequest } from '../../domain/page.ts';
import type { ConversationFilter } from '../../ports/conversation-store.ts';
import type { IdempotencyClaim } from '../../ports/idempotency-claim.ts';
import { answerPermission, type AnswerPermissionDeps } from './answer-permission.ts';
import { cancelTurn, type CancelTurnDeps } from './cancel-turn.ts';
import { deleteConversation, type DeleteConversationDeps } from './delete-conversation.ts';
import { getConversation, searchConversations, type ConversationView, type GetConversationDeps } from './get-conversation.ts';
import { sendMessage, type SendMessageDeps, type SentMessage } from './send-message.ts';
import { startConversation, type StartConversationDeps, type StartConversationRequest } from './start-conversation.ts';

export type { ConversationView } from './get-conversation.ts';
export type { SentMessage } from './send-message.ts';
export type { StartConversationRequest } from './start-conversation.ts';

export type ConversationsDeps =
  & GetConversationDeps & StartConversationDeps & SendMessageDeps & CancelTurnDeps & AnswerPermissionDeps & DeleteConversationDeps;

/** The use cases of conversations. Each takes the owner; another owner's conversation does not exist for it. */
export class Conversations {
  readonly #deps: ConversationsDeps;

  constructor(deps: ConversationsDeps) {
    this.#deps = deps;
  }

  /** See {@link startConversation}. */
  async start(ownerId: string, request: StartConversationRequest): Promise<ConversationView> {
    return await startConversation(this.#deps, ownerId, request);
  }

  /** See {@link getConversation}. */
  async get(ownerId: string, id: string): Promise<ConversationView> {
    return await getConversation(this.#deps, ownerId, id);
  }

  /** See {@link searchConversations}. */
  async search(
    ownerId: string,
    filter: ConversationFilter,
    order: ConversationSortOrder,
    page: PageRequest,
  ): Promise<Page<ConversationView>> {
    return await searchConversations(this.#deps, ownerId, filter, order, page);
  }

  /** See {@link sendMessage}. */
  async send(ownerId: string, id: string, message: Message, claim?: IdempotencyClaim): Promise<SentMessage> {
    return await sendMessage(this.#deps, ownerId, id, message, claim);
  }

  /** See {@link cancelTurn}. */
  async cancel(ownerId: string, id: string): Promise<ConversationView> {
    return await cancelTurn(this.#deps, ownerId, id);
  }

  /** See {@link answerPermission}. */
  async answerPermission(ownerId: string, id: string, permissionId: string, optionId: string): Promise<ConversationView> {
    return await answerPermission(this.#deps, ownerId, id, permissionId, optionId);
  }

  /** See {@link deleteConversation}. */
  async delete(ownerId: string, id: string): Promise<void> {
    await deleteConversation(this.#deps, ownerId, id);
  }
}
