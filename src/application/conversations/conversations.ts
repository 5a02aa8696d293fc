import { bindUseCases, type Bound } from '../use-cases.ts';
import { answerPermission } from './answer-permission.ts';
import { cancelTurn } from './cancel-turn.ts';
import type { ConversationsDeps } from './conversation-deps.ts';
import { deleteConversation } from './delete-conversation.ts';
import { getConversation, searchConversations } from './get-conversation.ts';
import { sendMessage } from './send-message.ts';
import { startConversation } from './start-conversation.ts';

export type { ConversationView } from './get-conversation.ts';
export type { SentMessage } from './send-message.ts';
export type { StartConversationRequest } from './start-conversation.ts';

const useCases = {
  start: startConversation,
  get: getConversation,
  search: searchConversations,
  send: sendMessage,
  cancel: cancelTurn,
  answerPermission,
  delete: deleteConversation,
};

/** The use cases of conversations. `start` takes the owner, the others whose conversations the caller sees: others do not exist for it. */
export type Conversations = Bound<typeof useCases>;

export function createConversations(deps: ConversationsDeps): Conversations {
  return bindUseCases(deps, useCases);
}
