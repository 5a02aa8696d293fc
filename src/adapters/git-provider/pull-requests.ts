import type { PullRequest } from '../../domain/change.ts';
import type { NewPullRequest, RepositoryInfo } from '../../ports/git-provider.ts';
import type { ProviderFailures } from '../shared/provider-failures.ts';

/** A pull request that is open on the host. */
export interface ExistingPullRequest extends PullRequest {
  readonly base: string;
}

/** The host-specific part of {@link createOrUpdatePullRequest}. */
interface PullRequestHost<T extends ExistingPullRequest> {
  /** Returns the open pull requests of the branch, without those of forks. The newest comes first. */
  listExisting(): Promise<readonly T[]>;
  /** Null if the host already has an open one. */
  create(base: string): Promise<PullRequest | null>;
  /** Null leaves the base as it is. */
  update(existing: T, base: string | null): Promise<PullRequest>;
}

/** Must not run twice at once for one branch, because a host may then open two pull requests. */
export async function createOrUpdatePullRequest<T extends ExistingPullRequest>(
  host: PullRequestHost<T>, { path, defaultBranch }: RepositoryInfo, { branch, base }: NewPullRequest, failures: ProviderFailures,
): Promise<PullRequest> {
  const findExisting = async (): Promise<T | null> => {
    const pullRequests = await host.listExisting();
    return pullRequests.find((pullRequest) => pullRequest.base === base) ?? pullRequests[0] ?? null;
  };
  let existing = await findExisting();
  if (existing === null) {
    const into = base ?? defaultBranch;
    if (into === null || into === branch) throw failures.pullRequestRefused(path, branch, { code: 'nothing_to_merge' });
    const created = await host.create(into);
    if (created !== null) return withoutBase(created);
    // The pull request was created by a request whose answer was lost, or by somebody else.
    existing = await findExisting();
    if (existing === null) throw failures.failed('it reports an open pull request for the branch, but lists none');
  }
  return withoutBase(await host.update(existing, base === existing.base ? null : base));
}

function withoutBase({ number, url }: PullRequest): PullRequest {
  return { number, url };
}
