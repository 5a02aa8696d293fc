import type { PullRequest } from '../../domain/change.ts';
import type { PullRequestRequest, RepositoryInfo } from '../../ports/git-provider.ts';
import type { ProviderFailures } from '../shared/provider-failures.ts';

export interface OpenPullRequest extends PullRequest {
  readonly base: string;
}

/** The host-specific part of {@link openPullRequest}. */
interface PullRequestHost<T extends OpenPullRequest> {
  /** Returns the open pull requests of the branch, without those of forks. The newest comes first. */
  listOpen(): Promise<readonly T[]>;
  /** Null if the host already has an open one. */
  create(base: string): Promise<PullRequest | null>;
  /** Null leaves the base as it is. */
  update(open: T, base: string | null): Promise<PullRequest>;
}

/** Must not run twice at once for one branch, because a host may then open two pull requests. */
export async function openPullRequest<T extends OpenPullRequest>(
  host: PullRequestHost<T>, { path, defaultBranch }: RepositoryInfo, { branch, base }: PullRequestRequest, failures: ProviderFailures,
): Promise<PullRequest> {
  const findOpen = async (): Promise<T | null> => {
    const open = await host.listOpen();
    return open.find((each) => each.base === base) ?? open[0] ?? null;
  };
  let open = await findOpen();
  if (open === null) {
    const into = base ?? defaultBranch;
    if (into === null || into === branch) throw failures.pullRequestRefused(path, branch, { code: 'nothing_to_merge' });
    const created = await host.create(into);
    if (created !== null) return withoutBase(created);
    // The pull request was opened by a request whose answer was lost, or by somebody else.
    open = await findOpen();
    if (open === null) throw failures.failed('it reports an open pull request for the branch, but lists none');
  }
  return withoutBase(await host.update(open, base === open.base ? null : base));
}

function withoutBase({ number, url }: PullRequest): PullRequest {
  return { number, url };
}
