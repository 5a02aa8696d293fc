import type { PullRequest, PullRequestContent } from '../domain/change.ts';
import type { Page } from '../domain/page.ts';
import type { GitHostFamily } from '../domain/microagent.ts';
import type { CheckResult } from './check-result.ts';

/** A file of a repository's default branch. */
export interface DatedFile {
  /** Relative to the repository's root, `/` between segments. */
  readonly path: string;
  /** The id that git gives its content, in lower-case hexadecimal digits. Equal content has the same id. */
  readonly blobId: string;
  /** The earliest committer date of a commit in the default branch's history that adds the path, in milliseconds since the epoch. */
  readonly createdAt: number;
}

export type FileContentId = Pick<DatedFile, 'path' | 'blobId'>;

/** Which files to list. The directory depends on the repository's actual name, which only the provider knows. */
export interface FileQuery {
  /** Returns the directory, relative to the root, for the last segment of the repository's actual path. */
  directory(repositoryName: string): string;
  /** Returns true if the file at this path (relative to the directory) is wanted. Called once for each regular file. */
  accepts(path: string): boolean;
}

export interface DirectoryListing {
  readonly directory: string;
  /** In no particular order. */
  readonly files: readonly DatedFile[];
}

export interface RepositoryInfo {
  /** The provider's own path of the repository. It differs from the requested one after a rename. */
  readonly path: string;
  /** Null if the repository is empty, or no branch is checked out. */
  readonly defaultBranch: string | null;
  /** True if its host has made it read-only for everybody. */
  readonly isArchived?: boolean;
}

/** Where git fetches a repository from, and pushes its branches to. */
export interface GitRemote {
  /** An https or http URL without a credential; for the local provider the absolute path of a git folder. */
  readonly url: string;
  /** The value of the `Authorization` header that git sends there: a secret. Null if none is needed. */
  readonly authorization: string | null;
}

/** A repository that a search of one provider found. */
export type SearchHit = Pick<RepositoryInfo, 'path'>;

export interface Branch {
  readonly name: string;
  /** The id of its last commit. */
  readonly commit: string;
}

export interface HostPageRequest {
  /** The `next` of the previous page; null for the first page. */
  readonly after: string | null;
  /** 1 to 100. */
  readonly limit: number;
}

/**
 * A page of a host's list. It may have fewer items than requested, or none, even if it is not the last page. `next` is a non-empty text
 * that only the provider understands.
 */
export type HostPage<T> = Page<T, string>;

/** A pull request to open, or the new content of the one that is open for the branch. */
export interface NewPullRequest extends PullRequestContent {
  /** The branch to merge. It was pushed to the same repository. */
  readonly branch: string;
}

/**
 * A host of git repositories. It lists only files of the default branch, without reading their content.
 *
 * `repository` is a name that {@link parseRepositoryName} accepts, without a host. Its characters are literal: none is a pattern, a query
 * or an escape.
 *
 * Every method rejects with a `Failure`: `repository_not_found` (it does not exist, or the credential can't see it),
 * `provider_unauthorized` (the host refuses the credential, or the credential lacks a permission), `provider_rate_limited`,
 * `provider_timeout` (every call has a time limit, which the adapter chooses), or `provider_failed` (anything else: a 5xx status, a corrupt
 * repository). A failure is never an empty list. No failure contains a secret, also not in its cause. Every method is idempotent, and all
 * but `openPullRequest` are read-only. Optional methods are capabilities that a host may not have. If the host does not support an option
 * of a call, the call is refused with the reason, such as `drafts_unsupported`. The option is never ignored.
 *
 * A 403 is `provider_unauthorized`. If the host uses it for a repository that the credential can't see, it is `repository_not_found`, as a
 * 404. If the adapter can't tell what its host means, it is `provider_failed`. It is never `repository_forbidden`: that is a failure of
 * `RepositoryCheckouts`, for git itself.
 *
 * If `signal` fires, or has fired before the call, the call rejects with `signal.reason` itself. The caller chooses this value; it is not
 * wrapped in a failure.
 */
export interface GitProvider {
  /** The name in the configuration: `github`, `gitlab`, `local`. Lower-case letters and hyphens. */
  readonly name: string;
  readonly family: GitHostFamily;
  /**
   * The hosts of this provider. A repository name that begins with one of them selects it. In lower case, with the port if it is not the
   * default of the scheme (`git.example.com`, `git.example.com:8443`), without a scheme or path. May be empty.
   */
  readonly hosts: readonly string[];

  /**
   * Lists the regular files (no links, no submodules) at any depth below the directory. All are from one commit, even if somebody pushes
   * meanwhile. Empty if the directory does not exist, or the repository is empty.
   */
  listFiles(repository: string, query: FileQuery, signal?: AbortSignal): Promise<DirectoryListing>;

  /**
   * Returns the content of a file that `listFiles` returned, byte for byte. The content is that of the `blobId`, even if somebody has
   * pushed since. Further failures: `file_not_found` (with the file's `path`) if the repository does not have the content, and
   * `provider_failed` with the reason `too_large` if it has more than `maxBytes` bytes.
   */
  readFile(repository: string, file: FileContentId, maxBytes: number, signal?: AbortSignal): Promise<Uint8Array>;

  find(repository: string, signal?: AbortSignal): Promise<RepositoryInfo>;

  /**
   * Returns where git fetches the repository from, and pushes to. `repository` is a path that `find` returned. Calls the host only if a
   * credential is needed.
   */
  remote(repository: string, signal?: AbortSignal): Promise<GitRemote>;

  /**
   * Opens a pull request. If the branch has an open one (with this base, otherwise the newest), updates its title, its body and, if given,
   * its base. Concurrent and repeated calls for one branch lead to one pull request. `repository` is a path that `find` returned.
   *
   * Further failure: `pull_request_refused` with `pull_request_forbidden` (the repository can be found, but not its pull requests),
   * `drafts_unsupported`, `nothing_to_merge` or `host_refused`. A host may open a pull request without changes instead of
   * `nothing_to_merge`, but not from a branch into itself. If the branch does not exist, the call fails as the host refuses it, with
   * `host_refused` or `provider_failed`: an adapter need not ask for the branch first, because the caller has just pushed it.
   */
  openPullRequest?(repository: string, request: NewPullRequest, signal?: AbortSignal): Promise<PullRequest>;

  /**
   * Finds repositories whose name or path contains the text, taken literally and without case. The host decides what else matches, the
   * order, and whether public repositories of others are found. Returns an empty page if nothing matches.
   */
  searchRepositories?(text: string, page: HostPageRequest, signal?: AbortSignal): Promise<HostPage<SearchHit>>;

  /**
   * Lists the branches. An empty repository has none. `repository` is a path that `find` returned. The order is the host's, and does not
   * depend on the page size. GitLab and `local` sort by name; GitHub does not say how it sorts.
   */
  listBranches?(repository: string, page: HostPageRequest, signal?: AbortSignal): Promise<HostPage<Branch>>;

  /**
   * Checks whether the host answers. If there is a credential, it sends it to a place where the host refuses a wrong one: then `ok` is
   * false. The detail also says what it serves, and contains no secret. Never rejects.
   */
  check(): Promise<CheckResult>;

  /**
   * Releases its resources. Idempotent. The creator of the provider calls it: `createSkep` closes the providers that it makes from
   * options, but not those that it was given.
   */
  close(): Promise<void>;
}
