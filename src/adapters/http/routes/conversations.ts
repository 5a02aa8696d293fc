import type { z } from 'zod';
import type { ConversationFilter } from '../../../ports/conversation-store.ts';
import { noBody, operation, plain } from '../operation.ts';
import { claimOf, idempotencyHeaders } from '../request/idempotency.ts';
import { decodePageId } from '../request/page-id.ts';
import { pagePresenter } from '../response/page.ts';
import {
  conversationListQuery,
  conversationPage,
  conversationPath,
  conversationResource,
  conversationStartBody,
  presentConversation,
} from '../schema/conversation.ts';
import { locationHeader } from '../schema/headers.ts';
import { refuseUnknownSpec } from './sandboxes.ts';

const conversations = '/api/v1/app-conversations';
const presentPage = pagePresenter(presentConversation);
const common = { ...plain, tag: 'Conversations', needsKey: true } as const;

export const conversationOperations = [
  operation({
    ...common,
    method: 'post',
    path: conversations,
    operationId: 'start_app_conversation',
    summary: 'Start a conversation',
    description:
      'Starts a sandbox for it, or takes the one that `sandbox_id` names. `sandbox_id` and `sandbox_spec_id` exclude each ' +
      'other; `selected_branch` needs `selected_repository`. `start_status` tells how far the start has come.',
    changes: 'start conversations',
    headers: idempotencyHeaders,
    body: conversationStartBody,
    success: { status: 201, description: 'The conversation.', schema: conversationResource, headers: locationHeader },
    failures: [
      'repository_not_found',
      'sandbox_not_found',
      'conversation_not_found',
      'sandbox_limit_reached',
      'idempotency_conflict',
      'provider_unauthorized',
      'provider_failed',
      'provider_rate_limited',
      'provider_timeout',
    ],
    handle: async ({ skep, principal, link }, { headers, body }) => {
      if (body.sandbox_spec_id !== null) refuseUnknownSpec(skep, body.sandbox_spec_id, 'body');
      const asked = {
        title: body.title,
        sandboxId: body.sandbox_id,
        sandboxSpecId: body.sandbox_spec_id,
        selectedRepository: body.selected_repository,
        selectedBranch: body.selected_branch,
        initialMessage: body.initial_message,
        permissionPolicy: body.permission_policy,
      };
      const claim = claimOf(headers, principal.userId, 'start_app_conversation', asked);
      const view = await skep.conversations.start(principal.userId, { ...asked, ...claim });
      const location = link(`${conversations}/${view.conversation.id}`);
      return { value: presentConversation(view), headers: { Location: location } };
    },
  }),
  operation({
    ...common,
    method: 'get',
    path: conversations,
    operationId: 'list_app_conversations',
    summary: 'List conversations',
    query: conversationListQuery,
    success: { status: 200, description: 'A page of conversations.', schema: conversationPage },
    failures: [],
    handle: async ({ skep, principal }, { query }) => {
      const listing = `app-conversations/${query.sort_order}`;
      const after = query.page_id === undefined ? null : decodePageId(listing, query.page_id);
      const wanted = { after, limit: query.limit };
      const page = await skep.conversations.search(principal.userId, filterOf(query), query.sort_order, wanted);
      return { value: presentPage(page, listing) };
    },
  }),
  operation({
    ...common,
    method: 'get',
    path: `${conversations}/{id}`,
    operationId: 'get_app_conversation',
    summary: 'Get a conversation',
    params: conversationPath,
    success: { status: 200, description: 'The conversation.', schema: conversationResource },
    failures: ['conversation_not_found'],
    handle: async ({ skep, principal }, { params }) => ({
      value: presentConversation(await skep.conversations.get(principal.userId, params.id)),
    }),
  }),
  operation({
    ...common,
    method: 'delete',
    path: `${conversations}/{id}`,
    operationId: 'delete_app_conversation',
    summary: 'End a conversation',
    description: 'Its sandbox goes too if no other conversation uses it. Ending it again is a success.',
    changes: 'end conversations',
    params: conversationPath,
    success: { status: 204, description: 'It is gone.', schema: noBody },
    failures: ['conversation_not_found'],
    handle: async ({ skep, principal }, { params }) => {
      await skep.conversations.delete(principal.userId, params.id);
      return { value: undefined };
    },
  }),
];

function filterOf(query: z.output<typeof conversationListQuery>): ConversationFilter {
  return {
    ...(query.ids !== undefined && { ids: query.ids }),
    ...(query.title__contains !== undefined && { titleContains: query.title__contains }),
    ...(query.created_at__gte !== undefined && { createdFrom: query.created_at__gte }),
    ...(query.created_at__lt !== undefined && { createdBefore: query.created_at__lt }),
    ...(query.updated_at__gte !== undefined && { updatedFrom: query.updated_at__gte }),
    ...(query.updated_at__lt !== undefined && { updatedBefore: query.updated_at__lt }),
    ...(query.sandbox_id__eq !== undefined && { sandboxId: query.sandbox_id__eq }),
  };
}
