import { z } from 'zod';
import { claimOf, idempotencyHeaders, resourceId, text } from '../common-schemas.ts';
import { operation } from '../operation.ts';
import { conversationResource, message, presentConversation } from './conversations.ts';

const messageAccepted = z
  .object({ message_id: z.string().describe('The events of its turn have this id.') })
  .meta({ id: 'MessageAccepted', description: 'The message is stored, and will be sent to the agent.' });

const permissionAnswerBody = z
  .strictObject({ option_id: text(255).min(1).describe('One of the options that the event `permission_requested` offers.') })
  .meta({ id: 'PermissionAnswer', example: { option_id: 'allow' } });

const cancelBody = z
  .strictObject({ message_id: resourceId.nullable().default(null).describe('Null: the message of the present turn.') })
  .meta({ id: 'TurnCancellation' });

const conversation = '/api/v1/app-conversations/{id}';

export const messageOperations = [
  operation('post', `${conversation}/messages`, {
    tag: 'Conversations',
    operationId: 'send_app_conversation_message',
    summary: 'Send a message',
    description:
      'The agent gets the messages in order, each after the turn before it has ended. A message resumes a paused sandbox. ' +
      'The reply of the agent comes as events.',
    headers: idempotencyHeaders,
    body: message,
    success: { status: 202, description: 'The message is stored.', schema: messageAccepted },
    failures: ['conversation_not_found', 'conversation_not_ready', 'conversation_limit_reached', 'idempotency_conflict'],
    handle: async ({ skep, principal }, { params, headers, body }) => {
      const claim = claimOf(headers, principal.userId, 'send_app_conversation_message', { id: params.id, body });
      const { messageId } = await skep.conversations.send(principal, params.id, body, claim.claim);
      return { message_id: messageId };
    },
  }),
  operation('post', `${conversation}/cancel`, {
    tag: 'Conversations',
    operationId: 'cancel_app_conversation_turn',
    summary: 'Stop the turn',
    description:
      'Asks the agent to stop the turn, and ends an agent that does not stop. Messages in the queue stay there. ' +
      'If there is no turn, nothing happens. With a `message_id`, stops only the turn of this message. If the message is in the queue, ' +
      'it is withdrawn: its turn ends as `cancelled` before it begins. For any other message, also an unknown one, nothing happens.',
    body: cancelBody,
    success: { status: 202, description: 'The conversation. Its turn ends a little later.', schema: conversationResource },
    failures: ['conversation_not_found'],
    handle: async ({ skep, principal }, { params, body }) =>
      presentConversation(await skep.conversations.cancel(principal, params.id, body.message_id)),
  }),
  operation('post', `${conversation}/permissions/{permission_id}`, {
    tag: 'Conversations',
    operationId: 'answer_app_conversation_permission',
    summary: 'Answer a request for permission',
    body: permissionAnswerBody,
    success: { status: 200, description: 'The conversation.', schema: conversationResource },
    failures: ['conversation_not_found', 'permission_not_found'],
    handle: async ({ skep, principal }, { params, body }) =>
      presentConversation(await skep.conversations.answerPermission(principal, params.id, params.permission_id, body.option_id)),
  }),
];
