import { gitIdentityOf, type PullRequest, type PullRequestContent } from '../../domain/change.ts';
import type { Conversation } from '../../domain/conversation.ts';
import { afterPush, Failure, isFailure } from '../../domain/failure.ts';
import { type Caller, userIdOf } from '../../domain/principal.ts';
import type { GitProvider, NewPullRequest } from '../../ports/git-provider.ts';
import { SnapshotRefusal, type WorkTreeSnapshot } from '../../ports/work-tree-snapshot.ts';
import type { CheckoutRequest } from '../../ports/repository-checkouts.ts';
import type { RepositoryPatterns } from '../repositories/repositories.ts';
import type { ConversationUseCaseDeps } from './conversations.ts';
import { changeConversation, getVisibleConversation, ofBranch } from './conversation-records.ts';
import { type ConversationWorkTree, findWorkTree, logRefusal, takeSnapshot } from './conversation-work-tree.ts';

export interface PublishRequest {
  /** Null means the conversation's own branch. */
  readonly branch: string | null;
  /** The message of the commit of uncommitted changes. If it is null or blank, the conversation's title is used. */
  readonly commitMessage: string | null;
  /** The repositories that the caller may use. */
  readonly patterns: RepositoryPatterns;
  /** Null opens and updates no pull request. */
  readonly pullRequest: PullRequestContent | null;
}

/** Where the changes of a conversation were published. */
export interface Publication {
  readonly branch: string;
  readonly commit: string;
  /** Null if none was requested. */
  readonly pullRequest: PullRequest | null;
}

export interface PublishedChanges extends Publication {
  /** False if files are left out, see {@link WorkTreeSnapshot}. */
  readonly complete: boolean;
}

/**
 * Commits uncommitted changes with the caller as author, on this machine only, and pushes all commits to a branch with the deployment's
 * credential. Idempotent: a repeat, after more work or after a crash, moves the branch. Moves only a branch that is at a commit which it
 * pushed itself. Then opens or updates a pull request. If that fails, the branch stays, and the failure has it as `pushed`. Follows a
 * repository that was renamed since the start. Throws the failures of `listChanges`, `conversation_publish_refused`,
 * `pull_requests_unsupported`, and the failures of `Repositories.findAgain`, `RepositoryCheckouts` and `GitProvider.openPullRequest`.
 */
export async function publishChanges(
  deps: ConversationUseCaseDeps, caller: Caller, id: string, request: PublishRequest, signal: AbortSignal,
): Promise<PublishedChanges> {
  return await deps.publications.runExclusive(id, () => publishAlone(deps, caller, id, request, signal), signal);
}

/** Publishes while no other publication of the conversation runs in this process. */
async function publishAlone(
  deps: ConversationUseCaseDeps, caller: Caller, id: string, request: PublishRequest, signal: AbortSignal,
): Promise<PublishedChanges> {
  const conversation = await getVisibleConversation(deps.store, caller, id);
  const { patterns, pullRequest: wanted } = request;
  const branch = request.branch ?? `${deps.product}/${id}`;
  // Its sandbox is gone, or is used by others.
  if (conversation.archivedAt !== null) {
    throw new Failure('conversation_publish_refused', { id, branch, reason: { code: 'conversation_archived' } });
  }
  const workTree = await findWorkTree(deps, conversation);
  const { provider, target } = await findTarget(deps, conversation, branch, patterns, signal);
  const openPullRequest = wanted === null ? null : pullRequestOpener(provider, target.repository, { ...wanted, branch });
  if (wanted !== null && wanted.base !== null) await deps.checkouts.checkBranch({ ...target, branch: wanted.base }, signal);
  const { commit, complete } = await pushCommit(deps, workTree, { ...request, userId: userIdOf(caller) }, target, signal);
  try {
    await changeConversation(deps, id, ({ publications }) => (
      { to: { publications: { ...publications, [branch]: commit } }, actor: 'user', reason: null }
    ));
    const pullRequest = openPullRequest === null ? null : await openPullRequest(signal);
    if (pullRequest !== null) await recordPullRequest(deps, id, branch, pullRequest);
    return { branch, commit, complete, pullRequest };
  } catch (error) {
    throw isFailure(error) ? afterPush(error, { branch, commit }) : error;
  }
}

/** Finds the conversation's repository, under its present name. Throws `conversation_publish_refused` if it is archived at its host. */
async function findTarget(
  deps: ConversationUseCaseDeps, { id, repositoryPath, gitProvider }: Conversation, branch: string, patterns: RepositoryPatterns,
  signal: AbortSignal,
): Promise<{ readonly provider: GitProvider; readonly target: Push['target'] }> {
  const location = { provider: gitProvider ?? '', path: repositoryPath ?? '' };
  const { provider, path, isArchived } = await deps.repositories.findAgain(location, patterns, signal);
  if (isArchived === true) throw new Failure('conversation_publish_refused', { id, branch, reason: { code: 'repository_archived' } });
  return { provider, target: { provider: provider.name, repository: path, remote: await provider.remote(path, signal), branch } };
}

/** Returns the call that opens the pull request. Throws `pull_requests_unsupported` at once, before anything is pushed. */
function pullRequestOpener(provider: GitProvider, repository: string, request: NewPullRequest) {
  const open = provider.openPullRequest?.bind(provider);
  if (open === undefined) throw new Failure('pull_requests_unsupported', { provider: provider.name });
  return (signal: AbortSignal): Promise<PullRequest> => open(repository, request, signal);
}

type CommitRequest = Pick<PublishRequest, 'commitMessage'> & { readonly userId: string };

/** Returns the commit that was pushed, and whether it has all files. */
async function pushCommit(
  deps: ConversationUseCaseDeps, workTree: ConversationWorkTree, { userId, commitMessage }: CommitRequest, target: Push['target'],
  signal: AbortSignal,
): Promise<Pick<PublishedChanges, 'commit' | 'complete'>> {
  const { conversation: { id, title, createdAt } } = workTree;
  const { branch } = target;
  try {
    await using snapshot = await takeSnapshot(deps, workTree, signal);
    // A blank text would make the next line the subject.
    const text = commitMessage?.trim() || title?.trim() || `Changes of ${id}`;
    const message = `${text}\n\nCo-authored-by: Agent of ${deps.product} <agent@users.noreply.invalid>\n`;
    const commit = await snapshot.commit({ author: gitIdentityOf(userId), message, at: createdAt }, signal);
    await pushTo(deps, workTree, snapshot, { target, commit }, signal);
    return { commit, complete: snapshot.complete };
  } catch (error) {
    if (!(error instanceof SnapshotRefusal)) throw error;
    logRefusal(deps, id, error, 'the changes of a conversation were not published');
    throw new Failure('conversation_publish_refused', { id, branch, reason: error.reason }, { cause: error });
  }
}

/** The maximum number of recorded commits of a branch. */
const maxTips = 20;

interface Push {
  readonly target: CheckoutRequest & { readonly branch: string };
  readonly commit: string;
}

/** Pushes the commit if the branch does not exist or is at a commit of this conversation. */
async function pushTo(
  deps: ConversationUseCaseDeps, { conversation: { id }, startPoint }: ConversationWorkTree, snapshot: WorkTreeSnapshot,
  { target, commit }: Push, signal: AbortSignal,
): Promise<void> {
  const { branch } = target;
  const { commit: expected, isDefault } = await deps.checkouts.findBranch(target, signal);
  if (isDefault) throw new SnapshotRefusal({ code: 'default_branch' });
  // Written before the push, so that after a crash the next process knows that this conversation pushed the commit.
  await changeConversation(deps, id, ({ possibleTips }) => {
    const known = ofBranch(possibleTips, branch) ?? [];
    const isPublished = expected !== null && known.includes(expected);
    // If all changes were reverted after a publication, the branch moves back to the start.
    if (commit === startPoint.commit && !isPublished) throw new SnapshotRefusal({ code: 'nothing_to_publish' });
    const isForeign = expected !== null && !isPublished;
    if (isForeign && expected !== commit) throw new SnapshotRefusal({ code: 'branch_moved' });
    // A branch of others that is at the same commit needs no push, and does not become a branch of this conversation.
    if (isForeign) return null;
    // The current and the next commit of the branch come last, so the limit never drops them.
    const others = known.filter((tip) => tip !== expected && tip !== commit);
    const current = expected === null || expected === commit ? [] : [expected];
    const tips = [...others, ...current, commit].slice(-maxTips);
    return { to: { possibleTips: { ...possibleTips, [branch]: tips } }, actor: 'user', reason: null };
  });
  if (expected !== commit) await snapshot.push({ request: target, commit, expected }, signal);
}

async function recordPullRequest(deps: ConversationUseCaseDeps, id: string, branch: string, pullRequest: PullRequest): Promise<void> {
  await changeConversation(deps, id, ({ pullRequests }) => {
    const known = ofBranch(pullRequests, branch);
    if (known?.number === pullRequest.number && known.url === pullRequest.url) return null;
    return { to: { pullRequests: { ...pullRequests, [branch]: pullRequest } }, actor: 'user', reason: null };
  });
}
