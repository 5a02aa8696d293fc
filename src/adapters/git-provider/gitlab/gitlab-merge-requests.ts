import type { PullRequest } from '../../../domain/change.ts';
import type { NewPullRequest } from '../../../ports/git-provider.ts';
import { hostMessage } from '../../shared/git-host-message.ts';
import { createOrUpdatePullRequest } from '../pull-requests.ts';
import { infoOf, type MergeRequest, type PageName, type Project } from './gitlab-responses.ts';
import type { GitLabApi } from './gitlab-api.ts';
import { failures, ErrorResponse } from './gitlab-failures.ts';

/** The titles that GitLab treats as drafts. */
const draftTitle = /^\s*(?:\[draft\]|\(draft\)|draft:)/iu;

/** Lists the open merge requests, then creates or updates one. */
export async function openGitLabMergeRequest(
  api: GitLabApi, project: Project, request: NewPullRequest, token: string | null,
): Promise<PullRequest> {
  const repository = infoOf(project);
  const { branch, title, draft } = request;
  const description = withoutQuickActions(request.body);

  async function requireAcceptance<T>(answer: Promise<T>): Promise<T> {
    try {
      return await answer;
    } catch (error) {
      if (!(error instanceof ErrorResponse) || error.apiMessage === null || ![403, 404, 422].includes(error.status)) throw error;
      const cause = new Error(error.message);
      const message = hostMessage(error.apiMessage, [token ?? '']);
      // The project was just found, so a 404 is about its merge requests too.
      const reason = error.status === 422 ? { code: 'host_refused', message } as const : { code: 'pull_request_forbidden' } as const;
      throw failures.pullRequestRefused(repository.path, branch, reason, cause);
    }
  }

  return await createOrUpdatePullRequest(
    {
      async listExisting() {
        const mergeRequests: MergeRequest[] = [];
        for (let page: PageName | null | undefined; page !== null; ) {
          const { items, next } = await requireAcceptance(api.mergeRequestsFrom(project.id, branch, page ?? null));
          // Branches of forks may have the same name.
          mergeRequests.push(...items.filter(({ sourceProject }) => sourceProject === project.id));
          page = next;
        }
        return mergeRequests;
      },
      async create(base) {
        const text = { title: titleOf(title, draft), description };
        try {
          return await requireAcceptance(api.createMergeRequest(project.id, branch, base, text));
        } catch (error) {
          if (error instanceof ErrorResponse && error.status === 409) return null;
          throw error;
        }
      },
      update: async ({ number, isDraft }, base) =>
        await requireAcceptance(api.editMergeRequest(project.id, number, { title: titleOf(title, isDraft), description, base })),
    },
    repository,
    request,
    failures,
  );
}

/**
 * GitLab executes lines like `/merge` with the rights of the credential, and removes them from the text. It takes them only from the
 * beginning of a line, after it has removed carriage returns (GitLab's `lib/gitlab/quick_actions/extractor.rb`). In Markdown, a space
 * there changes nothing.
 */
function withoutQuickActions(text: string): string {
  return text.replaceAll(/^\//gmu, ' /');
}

// GitLab counts the characters of a title (its limit `issuable title`), with the prefix.
const maxTitleLength = 255;

function titleOf(title: string, isDraft: boolean): string {
  const whole = isDraft && !draftTitle.test(title) ? `Draft: ${title}` : title;
  const characters = Array.from(whole);
  return characters.length <= maxTitleLength ? whole : `${characters.slice(0, maxTitleLength - 1).join('')}…`;
}
