import type { PullRequest } from '../../domain/change.ts';
import type { PullRequestRequest, RepositoryInfo } from '../../ports/git-provider.ts';
import type { ProviderFailures } from '../shared/provider-failures.ts';

export interface OpenPullRequest extends PullRequest {
  readonly base: string;
}

/** What differs from host to host. */
export interface PullRequestHost<T extends OpenPullRequest> {
  /** The open ones of the branch, which is one of this repository and of no fork. The newest comes first. */
  listOpen(): Promise<readonly T[]>;
  /** Null if the host has an open one already. */
  create(base: string): Promise<PullRequest | null>;
  /** Null leaves the base as it is. */
  update(open: T, base: string | null): Promise<PullRequest>;
}

/** Two calls for one branch must not be under way at once: a host may then open two pull requests. */
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
    // It was opened by a request whose answer was lost, or by somebody else.
    open = await findOpen();
    if (open === null) throw failures.failed('it says that there is a pull request for the branch, and lists none');
  }
  return withoutBase(await host.update(open, base === open.base ? null : base));
}

function withoutBase({ number, url }: PullRequest): PullRequest {
  return { number, url };
}
