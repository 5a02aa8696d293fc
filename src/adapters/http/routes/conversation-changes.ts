import { z } from 'zod';
import type { Changes } from '../../../application/conversations/conversations.ts';
import { fileChangeStatuses } from '../../../domain/change.ts';
import { text, timestamp } from '../common-schemas.ts';
import { byteStream, gitProviderFailures, operation, StreamedBody } from '../operation.ts';
import { presenter } from '../presenter.ts';
import { branchName, pullRequestFields } from './conversations.ts';

const fileMode = z.string().nullable().describe('As git has it: 100644, 100755, 120000 (link) or 160000 (submodule).');
const lines = z.int().nullable().describe('Null if the file is binary.');

const fileChange = z
  .object({
    path: z.string(),
    status: z.enum(fileChangeStatuses),
    old_path: z.string().nullable().describe('The path before a rename.'),
    old_mode: fileMode,
    mode: fileMode,
    binary: z.boolean(),
    lines_added: lines,
    lines_removed: lines,
    committed: z.boolean().describe('Whether the last commit contains the current content of the file.'),
  })
  .meta({ id: 'FileChange' });

const agentCommit = z
  .object({ commit: z.string(), author_name: z.string(), author_email: z.string(), committed_at: timestamp, subject: z.string() })
  .meta({ id: 'AgentCommit', description: 'A commit that was made in the conversation.' });

const publication = z
  .object({
    branch: z.string(),
    commit: z.string(),
    pull_request: z.object(pullRequestFields).meta({ id: 'PullRequest' }).nullable().describe('Null if none was requested.'),
  })
  .meta({ id: 'Publication', description: 'Where the changes were pushed to.' });

const complete = z.boolean().describe(
  'False if work is left out: files that git could not read, changes in a git repository inside the work tree, '
    + 'commits of other branches, tags, stashes or work trees, or what may have been done after the changes were saved.',
);

const published = publication.extend({ complete }).meta({ id: 'PublishResponse', description: 'Where the changes were pushed to.' });

const changes = z
  .object({
    kept_at: timestamp.nullable()
      .describe('When the changes were saved, if the sandbox does not run. Null if they were read from the sandbox now.'),
    start_commit: z.string().nullable().describe('The commit that it started from. Null if the repository was empty.'),
    start_branch: z.string().nullable(),
    head_commit: z.string().nullable().describe('The last commit in the sandbox.'),
    complete,
    commits: z.array(agentCommit).describe('Newest first, at most 1,000.'),
    files: z.array(fileChange).describe('All files that changed since the start, committed or not; sorted by path.'),
    published: z.array(publication).describe('The branches that were pushed, each with its last commit.'),
  })
  .meta({ id: 'ConversationChanges' });

const changeQuery = z.object({
  format: z.enum(['json', 'patch', 'archive']).default('json')
    .describe('`patch` is for `git apply --binary`; `archive` is a tar of the work tree.'),
  path: text(4096).min(1).optional().describe('Only this file, as a patch.'),
});

const patchMedia = 'text/x-diff; charset=utf-8';
const archiveMedia = 'application/x-tar';
const response = { status: 200, description: 'The changes.' };

export const changeOperation = operation('get', '/api/v1/app-conversations/{id}/changes', {
  tag: 'Conversations',
  operationId: 'get_app_conversation_changes',
  summary: 'Get the changes of a conversation',
  description:
    "All changes since the conversation started: the agent's commits, and uncommitted files that git does not ignore. Git reads them "
    + 'in the sandbox. If the sandbox does not run, or the conversation was archived with its changes, returns the changes that were saved '
    + 'last: after a turn, before a pause, or when it was archived. An archive can also be read from a paused sandbox, and includes '
    + 'ignored files. The request resumes and changes nothing. If a patch or an archive fails on the way, the connection breaks.',
  query: changeQuery,
  success: { ...response, schema: changes },
  otherwise: [patchMedia, archiveMedia].map((media) => ({ ...response, schema: byteStream, media })),
  failures: [
    'conversation_not_found', 'sandbox_not_found', 'file_not_found', 'conversation_changes_unavailable', 'sandbox_not_running',
    'provider_failed', 'runtime_unavailable', 'runtime_timeout',
  ],
  handle: async (context, { params: { id }, query: { format, path } }) => {
    const { skep: { conversations }, principal } = context;
    if (format === 'json' && path === undefined) return presentChanges(await conversations.changes(principal, id, context.closed));
    const ends = context.openTransfer();
    if (format === 'archive') return new StreamedBody(await conversations.workTree(principal, id, ends), ends, archiveMedia);
    return new StreamedBody(await conversations.patch(principal, id, path ?? null, ends), ends, patchMedia);
  },
});

const pullRequestBody = z
  .strictObject({
    title: text(255).regex(/^(?=.*\S)[^\r\n]*$/u, 'must be one line, and not blank'),
    body: text(60_000).default('')
      .describe('As Markdown. On GitLab, lines that begin with a slash stay text: they are not executed as quick actions.'),
    base: branchName.optional()
      .describe('The branch to merge into. Default: the default branch for a new pull request; an open one keeps its base.'),
    draft: z.boolean().default(false).describe('Whether a new pull request is a draft. An open one does not change.'),
  })
  .meta({ id: 'PullRequestRequest' });

const publishBody = z
  .strictObject({
    branch: branchName.optional()
      .describe('Any branch but the default branch of the repository. Default: a branch for this conversation only.'),
    commit_message: text(10_000).regex(/\S/u, 'must not be blank').optional()
      .describe('The message of the commit with the uncommitted files. Default: the title of the conversation.'),
    pull_request: pullRequestBody.optional()
      .describe('Opens a pull request (in GitLab a merge request), or updates the open one of the branch.'),
  })
  .meta({ id: 'PublishRequest' });

export const publishOperation = operation('post', '/api/v1/app-conversations/{id}/publish', {
  tag: 'Conversations',
  operationId: 'publish_app_conversation_changes',
  summary: 'Publish the changes of a conversation',
  description:
    "Commits uncommitted files and pushes all commits to a branch, with the deployment's credential, which never enters the sandbox. "
    + 'To push more work to the branch, publish again. A branch with commits of others is never changed. With `pull_request`, it also '
    + 'opens a pull request, or updates the open one of the branch. If only that step fails, the failure has '
    + '`pushed`, the branch that is pushed already: publish again.',
  body: publishBody,
  success: { status: 200, description: 'The branch.', schema: published },
  failures: [
    ...changeOperation.failures.filter((code) => code !== 'file_not_found' && code !== 'provider_failed'),
    'conversation_publish_refused', 'pull_requests_unsupported', 'pull_request_refused', 'branch_not_found', 'repository_empty',
    'repository_not_found', 'repository_forbidden', ...gitProviderFailures,
  ],
  handle: async ({ skep, principal, closed }, { params: { id }, body }) => {
    const { branch = null, commit_message: commitMessage = null, pull_request: wanted } = body;
    const content = wanted === undefined ? null : { ...wanted, base: wanted.base ?? null };
    const patterns = principal.repositories ?? null;
    const request = { branch, commitMessage, patterns, pullRequest: content };
    return presentPublished(await skep.conversations.publish(principal, id, request, closed));
  },
});

const presentPublished = presenter(published);
const presentChanges = presenter(changes, ({ startPoint, head, files, publications, ...same }: Changes) => ({
  ...same,
  startCommit: startPoint.commit,
  startBranch: startPoint.branch,
  headCommit: head,
  files: files.map(({ added, removed, ...file }) => ({ ...file, linesAdded: added, linesRemoved: removed })),
  published: publications,
}));
