import type { PullRequest, PullRequestContent } from '../domain/change.ts';
import type { GitHostFamily } from '../domain/microagent.ts';
import type { CheckResult } from './check-result.ts';

/** A file of a repository's default branch. */
export interface DatedFile {
  /** Relative to the repository's root, `/` between segments. */
  readonly path: string;
  /** The id that git gives its content, in lower-case hexadecimal digits. Equal content has the same id. */
  readonly blobId: string;
  /** Committer date of the earliest commit of the default branch's history that touches the path, in ms since the epoch. */
  readonly createdAt: number;
}

/** Names the content of a file. */
export type FileContentId = Pick<DatedFile, 'path' | 'blobId'>;

/** Which files to list. The directory depends on the repository's actual name, which only the provider knows. */
export interface FileQuery {
  /** Returns the directory, relative to the root, for the last segment of the repository's actual path. */
  directory(repositoryName: string): string;
  /** Whether this path (relative to the directory) is wanted. Called for regular files only. */
  accepts(path: string): boolean;
}

export interface DirectoryListing {
  readonly directory: string;
  /** In no particular order. */
  readonly files: readonly DatedFile[];
  /** When the host last confirmed it, in ms since the epoch, if that was earlier than now. */
  readonly confirmedAt?: number;
}

export interface RepositoryInfo {
  /** The provider's own path of the repository, which differs from the requested one after a rename. */
  readonly path: string;
  /** Null if the repository is empty, or no branch is checked out. */
  readonly defaultBranch: string | null;
}

/** Where git fetches a repository from. */
export interface GitRemote {
  /** An https or http URL without a credential; for the local provider the absolute path of a git folder. */
  readonly url: string;
  /** The value of the header `Authorization` that git is to send there: a secret. Null if none is needed. */
  readonly authorization: string | null;
}

/** A repository that a search found. */
export type ListedRepository = Pick<RepositoryInfo, 'path'>;

export interface Branch {
  readonly name: string;
  /** The id of its last commit. */
  readonly commit: string;
}

export interface HostPageRequest {
  /** The `next` of the page before; null for the first page. */
  readonly after: string | null;
  /** 1 to 100. */
  readonly limit: number;
}

/** A page of what a host has. It may have fewer items than asked for, or none, and yet not be the last one. */
export interface HostPage<T> {
  readonly items: readonly T[];
  /** Where the next page begins: a text that only the provider understands, and that is not empty. Null on the last page. */
  readonly next: string | null;
}

export interface PullRequestRequest extends PullRequestContent {
  /** The branch to merge: one of the same repository, which was pushed. */
  readonly branch: string;
}

/**
 * A host of git repositories. Only the default branch is listed, without reading the content of a file.
 *
 * `repository` is a name that {@link parseRepositoryName} accepts, without a host. Its characters mean themselves: none is a pattern, a
 * query or an escape.
 *
 * Every method rejects with a `Failure`: `repository_not_found` (it does not exist, or the credential can't see it),
 * `provider_unauthorized`, `provider_rate_limited`, `provider_timeout` (every call has a time limit, which the adapter chooses), or
 * `provider_failed` (anything else: a 5xx status, a corrupt repository). A failure is never an empty list. Every method is
 * idempotent, and all but `openPullRequest` are read-only. Optional methods are capabilities, which a host may lack.
 *
 * If `signal` fires, the call ends early and rejects with `signal.reason` itself. The caller chooses it: it can be any value, and is not
 * wrapped in a failure. A signal that has fired before the call counts, too.
 */
export interface GitProvider {
  /** The name it is configured by: `github`, `gitlab`, `local`. Lower-case letters and hyphens. */
  readonly name: string;
  readonly family: GitHostFamily;
  /**
   * Hosts that choose this provider if one stands in front of a repository's name: lower case, with the port if it is not the default of
   * the scheme (`git.example.com`, `git.example.com:8443`), without a scheme or path. May be empty.
   */
  readonly hosts: readonly string[];

  /**
   * Lists the regular files (no links, no submodules) at any depth below the directory, as one commit has them: a push meanwhile does not
   * mix two states. Empty if the directory does not exist, or the repository is empty.
   */
  listFiles(repository: string, query: FileQuery, signal?: AbortSignal): Promise<DirectoryListing>;

  /**
   * Returns the content of a file that `listFiles` returned, byte for byte. The content is that of the `blobId`, whatever was pushed
   * meanwhile. Further failures: `file_not_found` (with the file's `path`) if the repository does not have the content, and
   * `provider_failed` with the reason `too_large` if it has more than `maxBytes` bytes.
   */
  readFile(repository: string, file: FileContentId, maxBytes: number, signal?: AbortSignal): Promise<Uint8Array>;

  /** Finds the repository. */
  find(repository: string, signal?: AbortSignal): Promise<RepositoryInfo>;

  /** Where git fetches the repository from. The path is one that `find` returned; the host is asked only if a credential is needed. */
  remote(repository: string, signal?: AbortSignal): Promise<GitRemote>;

  /**
   * Opens a pull request, or updates the title, the body and, if it is given, the base of the open one of the branch: the one with this
   * base, otherwise the newest. Calls for one branch at once, and again after any failure, end as one pull request. `repository` is a path
   * that `find` returned. Further failure: `pull_request_refused` with `pull_request_forbidden`, `drafts_unsupported` or
   * `nothing_to_merge`.
   */
  openPullRequest?(repository: string, request: PullRequestRequest, signal?: AbortSignal): Promise<PullRequest>;

  /**
   * Finds repositories whose name, or path, has the text in it. The text means itself, in any case. What else matches, the order, and
   * whether public repositories of others are found, is up to the host. Nothing that matches is an empty page.
   */
  searchRepositories?(text: string, page: HostPageRequest, signal?: AbortSignal): Promise<HostPage<ListedRepository>>;

  /** Lists the branches, sorted by name; none of an empty repository. `repository` is a path that `find` returned. */
  listBranches?(repository: string, page: HostPageRequest, signal?: AbortSignal): Promise<HostPage<Branch>>;

  /** One line for a person: what it serves and whether it answers. Never rejects. */
  check(): Promise<CheckResult>;

  /**
   * Ends what it holds open. Idempotent. Whoever made the provider calls it: `createSkep` closes the
   * providers that it makes from options, and leaves the ones that it was given open.
   */
  close(): Promise<void>;
}
