import { z } from 'zod';
import type { Changes } from '../../../application/conversations/conversations.ts';
import { fileChangeStatuses } from '../../../domain/change.ts';
import { text, timestamp } from '../common-schemas.ts';
import { gitProviderFailures, operation, StreamedBody } from '../operation.ts';
import { presenter } from '../presenter.ts';
import { branchName, conversationPath, pullRequestFields } from './conversations.ts';

const fileMode = z.string().nullable().meta({ description: 'As git has it: 100644, 100755, 120000 (link) or 160000 (submodule).' });
const lines = z.int().nullable().meta({ description: 'Null if the file is binary.' });

const fileChange = z
  .object({
    path: z.string(),
    status: z.enum(fileChangeStatuses),
    old_path: z.string().nullable().meta({ description: 'The path before a rename.' }),
    old_mode: fileMode,
    mode: fileMode,
    binary: z.boolean(),
    lines_added: lines,
    lines_removed: lines,
    committed: z.boolean().meta({ description: 'Whether the file is now as the last commit has it.' }),
  })
  .meta({ id: 'FileChange' });

const agentCommit = z
  .object({ commit: z.string(), author_name: z.string(), author_email: z.string(), committed_at: timestamp, subject: z.string() })
  .meta({ id: 'AgentCommit', description: 'A commit that was made in the conversation.' });

const publication = z
  .object({
    branch: z.string(),
    commit: z.string(),
    pull_request: z.object(pullRequestFields).nullable().meta({ id: 'PullRequest', description: 'Null if none was asked for.' }),
  })
  .meta({ id: 'Publication', description: 'Where the changes were pushed to.' });

const changes = z
  .object({
    kept_at: timestamp.nullable()
      .meta({ description: 'The changes are those of this time, because the sandbox does not run; null if they are those of now.' }),
    start_commit: z.string().nullable().meta({ description: 'Where the conversation began; null if the repository was empty.' }),
    start_branch: z.string().nullable(),
    head_commit: z.string().nullable().meta({ description: 'The last commit in the sandbox.' }),
    complete: z.boolean().meta({ description: 'False if git could not read some files.' }),
    commits: z.array(agentCommit).meta({ description: 'Newest first.' }),
    files: z.array(fileChange).meta({ description: 'All that differ from the start, committed or not; sorted by path.' }),
    published: z.array(publication).meta({ description: 'The branches that it was pushed to, each with the last commit.' }),
  })
  .meta({ id: 'ConversationChanges' });

const changeQuery = z.object({
  format: z.enum(['json', 'patch', 'archive']).default('json')
    .meta({ description: '`patch` is what `git apply --binary` takes, `archive` the work tree as tar.' }),
  path: text(4096).min(1).optional().meta({ description: 'Only this file, as a patch.' }),
});

const patchMedia = 'text/x-diff; charset=utf-8';
const archiveMedia = 'application/x-tar';

export const changeOperation = operation({
  tag: 'Conversations',
  method: 'get',
  path: '/api/v1/app-conversations/{id}/changes',
  operationId: 'get_app_conversation_changes',
  summary: 'Get the changes of a conversation',
  description:
    "What differs from where it began: the agent's commits, and what is not committed and not ignored, by git in the sandbox. If it does "
    + 'not run, or the conversation is archived, that is what was kept last: after each turn, before it was paused, and when it was '
    + 'archived. An archive is read also from a sandbox that does not run, and also has what is ignored. Nothing is woken or changed. A '
    + 'patch or an archive that can not be completed breaks off.',
  params: conversationPath,
  query: changeQuery,
  success: { status: 200, description: 'The changes.', schema: changes, otherMedia: [patchMedia, archiveMedia] },
  failures: [
    'conversation_not_found', 'sandbox_not_found', 'file_not_found', 'conversation_changes_unavailable', 'sandbox_not_running',
    'provider_failed', 'runtime_unavailable', 'runtime_timeout',
  ],
  handle: async (context, { params: { id }, query: { format, path } }) => {
    const { skep: { conversations }, scope } = context;
    if (format === 'json' && path === undefined) return presentChanges(await conversations.changes(scope, id, context.closed));
    const ends = context.openStream();
    if (format === 'archive') return new StreamedBody(await conversations.workTree(scope, id, ends), ends, archiveMedia);
    return new StreamedBody(await conversations.patch(scope, id, path ?? null, ends), ends, patchMedia);
  },
});

const pullRequestBody = z
  .strictObject({
    title: text(255).min(1).regex(/^[^\r\n]*$/u, 'must be one line'),
    body: text(60_000).default('').meta({ description: 'As Markdown.' }),
    base: branchName.optional()
      .meta({ description: 'What to merge into. Default: the default branch for a new one; an open one keeps its base.' }),
    draft: z.boolean().default(false).meta({ description: 'Whether a new one is a draft. An open one stays what it is.' }),
  })
  .meta({ id: 'PullRequestRequest' });

const publishBody = z
  .strictObject({
    branch: branchName.optional()
      .meta({ description: 'Not the default branch of the repository. Default: a branch of the conversation alone.' }),
    commit_message: text(10_000).min(1).optional()
      .meta({ description: 'Of what is not committed. Default: the title of the conversation.' }),
    pull_request: pullRequestBody.optional()
      .meta({ description: 'Opens a pull request, or a merge request of GitLab, and updates the open one of the branch.' }),
  })
  .meta({ id: 'PublishRequest' });

export const publishOperation = operation({
  tag: 'Conversations',
  method: 'post',
  path: '/api/v1/app-conversations/{id}/publish',
  operationId: 'publish_app_conversation_changes',
  summary: 'Publish the changes of a conversation',
  description:
    "Commits what is not committed and pushes all to a branch, with the deployment's credential, which never enters the sandbox. Again, "
    + 'after more work, it moves the branch. A branch with commits of others is never moved. With `pull_request` it then opens a pull '
    + 'request, or updates the open one of the branch. If that fails, the branch is pushed, and publishing again goes on from there.',
  params: conversationPath,
  body: publishBody,
  success: { status: 200, description: 'The branch.', schema: publication },
  failures: [
    ...changeOperation.failures.filter((code) => code !== 'file_not_found' && code !== 'provider_failed'),
    'conversation_publish_refused', 'pull_requests_unsupported', 'pull_request_refused', 'branch_not_found', 'repository_empty',
    'repository_not_found', 'repository_forbidden', ...gitProviderFailures,
  ],
  handle: async ({ skep, scope, principal, closed }, { params: { id }, body }) => {
    const { branch = null, commit_message: commitMessage = null, pull_request: wanted } = body;
    const content = wanted === undefined ? null : { ...wanted, base: wanted.base ?? null };
    const request = { branch, commitMessage, userId: principal.userId, pullRequest: content };
    return presentPublication(await skep.conversations.publish(scope, id, request, closed));
  },
});

const toChanges = presenter(changes);
const presentPublication = presenter(publication);

function presentChanges({ startPoint, head, files, publications, ...same }: Changes): z.output<typeof changes> {
  return toChanges({
    ...same,
    startCommit: startPoint.commit,
    startBranch: startPoint.branch,
    headCommit: head,
    files: files.map(({ added, removed, ...file }) => ({ ...file, linesAdded: added, linesRemoved: removed })),
    published: publications,
  });
}
