import { z } from 'zod';
import type { ConversationView } from '../../../application/conversations/conversations.ts';
import { permissionPolicies } from '../../../domain/permission.ts';
import { conversationSortOrders } from '../../../domain/conversation.ts';
import type { ConversationFilter } from '../../../ports/conversation-store.ts';
import { agentStatusSchema, conversationStartStatusSchema, sandboxStatusSchema } from '../../shared/event-data-schemas.ts';
import { inCamelCase } from '../../shared/snake-case.ts';
import {
  claimOf, idempotencyHeaders, list, locationHeader, repositoryName, resourceId, statusFields, statusFieldsOf, text, timeQuery, timestamp,
} from '../common-schemas.ts';
import { gitProviderFailures, operation } from '../operation.ts';
import { pageQuery, pageSchema, readPage } from '../page-token.ts';
import { presenter } from '../presenter.ts';
import { claimedParameters, sandboxParameterNames, sandboxStartFields, splitStartBody } from '../sandbox-parameters.ts';

export const pullRequestFields = {
  number: z.int().meta({ example: 17 }),
  url: z.string().meta({ format: 'uri', example: 'https://github.com/acme/shop/pull/17' }),
};

export const conversationResource = z
  .object({
    id: z.string(),
    created_by_user_id: z.string(),
    title: z.string().nullable(),
    sandbox_id: z.string().nullable(),
    sandbox_status: sandboxStatusSchema,
    sandbox_spec_id: z.string(),
    selected_repository: z.string().nullable(),
    selected_branch: z.string().nullable(),
    git_provider: z.string().nullable().meta({ description: 'The provider that serves the repository.', example: 'github' }),
    start_status: conversationStartStatusSchema.describe('The step that its start has reached.'),
    execution_status: agentStatusSchema.nullable().describe('What its agent does; null if it has no agent.'),
    ...statusFields,
    pull_requests: z.array(z.object({ branch: z.string(), ...pullRequestFields }).meta({ id: 'PublishedPullRequest' }))
      .describe('The pull requests that its publications opened or updated.'),
    created_at: timestamp,
    updated_at: timestamp,
    archived_at: timestamp.nullable().describe('When it was archived. After that, nothing runs in it.'),
  })
  .meta({ id: 'AppConversation', description: 'A conversation with an agent, which runs in a sandbox.' });

const maxText = 100_000;

const textContent = z.strictObject({ type: z.literal('text'), text: text(maxText).min(1) }).meta({ id: 'TextContent' });

export const message = z.strictObject({ content: z.array(textContent).min(1).max(100) }).meta({ id: 'Message' });

const maxTitle = 500;

/** A branch name that git accepts. `refs/heads/x` would name another branch than `x`. */
// oxlint-disable-next-line no-control-regex -- git refuses them too
const branchPattern = /^(?![-/.]|refs\/|(?:HEAD|@)$)(?!.*(?:\.\.|\/[/.]|@\{|\.lock(?:\/|$)))[^\u0000-\u0020\u007f~^:?*[\\]+(?<![/.])$/su;
export const branchName = text(255).regex(branchPattern, 'must be a branch name that git takes, without refs/heads/');

/** A field for which null and a missing value mean the same. */
const orNull = <S extends z.ZodType>(schema: S, description: string) => schema.nullable().default(null).describe(description);

const filter = <S extends z.ZodType>(schema: S, description: string) => schema.optional().describe(description);

/** All fields are optional; the refinements check the combinations. */
const conversationStartBody = z
  .strictObject({
    title: text(maxTitle).nullable().default(null),
    sandbox_id: orNull(resourceId, 'The sandbox to use, of your own user. Default: a new one.'),
    ...sandboxStartFields,
    selected_repository: orNull(repositoryName, 'The repository to work on, in the form of `repository_name` of the microagents.'),
    selected_branch: orNull(branchName, 'A branch of that repository.'),
    initial_message: message.nullable().default(null),
    permission_policy: orNull(
      z.enum(permissionPolicies).meta({ id: 'PermissionPolicy' }),
      "The answer to the agent's requests for permission: allow them, ask the user, or deny them. Null: the policy of the spec.",
    ),
  })
  .superRefine((body, context) => {
    if (body.sandbox_id !== null && body.sandbox_spec_id !== null) {
      context.addIssue({ code: 'custom', path: ['sandbox_spec_id'], message: 'must be left out if sandbox_id is given' });
    }
    if (body.sandbox_id !== null) {
      for (const path of sandboxParameterNames.filter((name) => body[name] != null)) {
        context.addIssue({ code: 'custom', path: [path], message: 'is only for a new sandbox; leave it out, or leave out sandbox_id' });
      }
    }
    if (body.selected_branch !== null && body.selected_repository === null) {
      context.addIssue({ code: 'custom', path: ['selected_branch'], message: 'needs selected_repository' });
    }
  })
  .meta({
    id: 'AppConversationStartRequest',
    example: { title: 'Fix the build', initial_message: { content: [{ type: 'text', text: 'Find out why the build is red.' }] } },
  });

const conversationUpdateBody = z
  .strictObject({
    title: text(maxTitle).nullable().optional(),
    archived: z.boolean().optional().describe('True archives the conversation. This cannot be undone.'),
  })
  .meta({ id: 'AppConversationUpdateRequest', example: { archived: true } });

const conversationListQuery = z.object({
  ...pageQuery,
  ids: filter(list(z.array(resourceId).max(100)), 'Only conversations with these ids. Repeat the parameter for each id.'),
  sort_order: z
    .enum(conversationSortOrders)
    .default('CREATED_AT_DESC')
    .describe('Sort order; equal values are sorted by id.'),
  title__contains: filter(text(maxTitle), 'Only conversations whose title contains this text. Case and accents are ignored.'),
  created_at__gte: filter(timeQuery, 'Only those created at this time or later. RFC 3339; write the + of an offset as %2B.'),
  created_at__lt: filter(timeQuery, 'Only those created before this time.'),
  updated_at__gte: filter(timeQuery, 'Only those updated at this time or later.'),
  updated_at__lt: filter(timeQuery, 'Only those updated before this time.'),
  sandbox_id__eq: filter(resourceId, 'Only those that use this sandbox.'),
});

export const presentConversation = presenter(conversationResource, ({ conversation, sandboxStatus }: ConversationView) => ({
  ...conversation,
  createdByUserId: conversation.ownerId,
  sandboxStatus,
  ...statusFieldsOf(conversation.statusReason),
  pullRequests: Object.entries(conversation.pullRequests).map(([branch, pullRequest]) => ({ branch, ...pullRequest })),
}));

const conversations = '/api/v1/app-conversations';

export const conversationOperations = [
  operation('post', conversations, {
    tag: 'Conversations',
    operationId: 'start_app_conversation',
    summary: 'Start a conversation',
    description:
      'Starts a sandbox for it, or uses the one that `sandbox_id` names. With `sandbox_id`, leave out `sandbox_spec_id` and the fields ' +
      `for a new sandbox (${sandboxParameterNames.map((name) => `\`${name}\``).join(', ')}). \`selected_branch\` needs ` +
      '`selected_repository`. The response does not wait for the start: `start_status` shows its progress.',
    headers: idempotencyHeaders,
    body: conversationStartBody,
    success: { status: 201, description: 'The conversation.', schema: conversationResource, headers: locationHeader },
    failures: [
      'repository_not_found', 'repository_forbidden', 'repository_empty', 'branch_not_found', 'sandbox_not_found', 'conversation_not_found',
      'sandbox_limit_reached', 'conversation_limit_reached', 'idempotency_conflict',
      ...gitProviderFailures,
    ],
    handle: async (context, { headers, body }) => {
      const { skep, principal } = context;
      const { parameters, others } = splitStartBody(body);
      const fields = inCamelCase(others);
      const claim = claimOf(headers, principal.userId, 'start_app_conversation', { ...fields, ...claimedParameters(parameters) });
      const view = await skep.conversations.start(principal, {
        ...fields, ...claim, sandboxParameters: parameters, patterns: principal.repositories ?? null,
      });
      context.response.location(context.link(`${conversations}/${view.conversation.id}`));
      return presentConversation(view);
    },
  }),
  operation('get', conversations, {
    tag: 'Conversations',
    operationId: 'list_app_conversations',
    summary: 'List conversations',
    query: conversationListQuery,
    success: { status: 200, description: 'A page of conversations.', schema: pageSchema(conversationResource, 'AppConversationPage') },
    failures: [],
    handle: async (context, { query }) => {
      const { skep, principal } = context;
      const { sort_order: order, ids, title__contains: titleContains, sandbox_id__eq: sandboxId } = query;
      const filter = {
        ids, titleContains, sandboxId,
        createdFrom: query.created_at__gte, createdBefore: query.created_at__lt,
        updatedFrom: query.updated_at__gte, updatedBefore: query.updated_at__lt,
      } satisfies Record<keyof ConversationFilter, unknown>;
      return await readPage(context, `app-conversations/${order}`, query, (page) =>
        skep.conversations.search(principal, filter, order, page), presentConversation);
    },
  }),
  operation('get', `${conversations}/{id}`, {
    tag: 'Conversations',
    operationId: 'get_app_conversation',
    summary: 'Get a conversation',
    success: { status: 200, description: 'The conversation.', schema: conversationResource },
    failures: ['conversation_not_found'],
    handle: async ({ skep, principal }, { params }) => presentConversation(await skep.conversations.get(principal, params.id)),
  }),
  operation('patch', `${conversations}/{id}`, {
    tag: 'Conversations',
    operationId: 'update_app_conversation',
    summary: 'Change the title of a conversation, or archive it',
    description:
      'Archiving ends the agent and keeps the events and the changes. Then it deletes the sandbox, with its files, unless another ' +
      'conversation uses it, or no conversation started it. While the changes are being kept, the code of `status_reason` is ' +
      '`keeping_changes`. If that fails, it becomes `changes_not_kept`, and the sandbox stays; archiving again tries again. The ' +
      'conversation accepts no further messages. Archiving cannot be undone; archiving again succeeds.',
    body: conversationUpdateBody,
    success: { status: 200, description: 'The conversation.', schema: conversationResource },
    failures: ['conversation_not_found', 'conversation_not_ready'],
    handle: async ({ skep, principal }, { params, body }) =>
      presentConversation(await skep.conversations.update(principal, params.id, body)),
  }),
  operation('delete', `${conversations}/{id}`, {
    tag: 'Conversations',
    operationId: 'delete_app_conversation',
    summary: 'Delete a conversation',
    description: 'Also deletes its sandbox, unless another conversation uses it. Deleting it again within a day succeeds.',
    success: { status: 204, description: 'It is deleted.' },
    failures: ['conversation_not_found'],
    handle: async ({ skep, principal }, { params }) => await skep.conversations.delete(principal, params.id),
  }),
];
