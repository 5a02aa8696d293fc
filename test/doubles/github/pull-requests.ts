export interface StoredPullRequest {
  readonly number: number;
  title: string;
  body: string | null;
  readonly head: string;
  base: string;
  readonly draft: boolean;
  state: 'open' | 'closed';
  /** The fork that the branch is in; null if it is in the repository itself. */
  readonly fork: string | null;
}

type NewPullRequest = Pick<StoredPullRequest, 'title' | 'body' | 'head' | 'base' | 'draft'> & Partial<Pick<StoredPullRequest, 'fork'>>;

/** The pull requests of the repositories, by the ids of these. */
export interface PullRequests {
  /** Whether the credential can see and open them. */
  allowed: boolean;
  /** Whether drafts are possible. A private repository of a free plan has none. */
  drafts: boolean;
  /** The oldest comes first. */
  of(repository: number): readonly StoredPullRequest[];
  add(repository: number, pullRequest: NewPullRequest): StoredPullRequest;
}

export function createPullRequests(): PullRequests {
  const byRepository = new Map<number, StoredPullRequest[]>();
  return {
    allowed: true,
    drafts: true,
    of: (repository) => byRepository.get(repository) ?? [],
    add(repository, given) {
      const all = byRepository.get(repository) ?? [];
      byRepository.set(repository, all);
      const made: StoredPullRequest = { fork: null, ...given, number: all.length + 1, state: 'open' };
      all.push(made);
      return made;
    },
  };
}
