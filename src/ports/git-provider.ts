import type { GitHostFamily } from '../domain/microagent.ts';
import type { CheckResult } from './check-result.ts';

/** A file of a repository's default branch. */
export interface DatedFile {
  /** Relative to the repository's root, `/` between segments. */
  readonly path: string;
  /** Committer date of the earliest commit of the default branch's history that touches the path, in ms since the epoch. */
  readonly createdAt: number;
}

/** Which files to list. The directory depends on the repository's actual name, which only the provider knows. */
export interface FileQuery {
  /** Returns the directory, relative to the root, for the last segment of the repository's actual path. */
  directory(repositoryName: string): string;
  /** Returns true if the file is wanted. The path is relative to the directory. Called for regular files only. */
  accepts(path: string): boolean;
}

export interface DirectoryListing {
  readonly directory: string;
  /** In no particular order. */
  readonly files: readonly DatedFile[];
  /** When the host last confirmed the listing, in ms since the epoch, if that was earlier than now. */
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
  /** The value of the header `Authorization` for git: a secret. Null if none is needed. */
  readonly authorization: string | null;
}

/**
 * A host of git repositories. Only the default branch is read, never the content of a file.
 *
 * `repository` is a name that {@link parseRepositoryName} accepts, without a host.
 *
 * Every method fails with `repository_not_found` (it does not exist, or the credential can't see it),
 * `provider_unauthorized`, `provider_rate_limited`, `provider_timeout`, or `provider_failed` (anything else, a corrupt
 * repository included). A failure is never an empty list. Every method is read-only and idempotent, and ends early when
 * `signal` fires.
 */
export interface GitProvider {
  /** The name it is configured by: `github`, `gitlab`, `local`. */
  readonly name: string;
  readonly family: GitHostFamily;
  /** Host names that choose this provider in front of a repository's name. */
  readonly hosts: readonly string[];

  /**
   * Returns the regular files (no links, no submodules) at any depth below the directory. The list is empty if the directory
   * does not exist or the repository is empty.
   */
  listFiles(repository: string, query: FileQuery, signal?: AbortSignal): Promise<DirectoryListing>;

  /** Finds the repository. */
  find(repository: string, signal?: AbortSignal): Promise<RepositoryInfo>;

  /** Returns where git fetches the repository from, given a path that `find` returned. Asks the host only for a credential. */
  remote(repository: string, signal?: AbortSignal): Promise<GitRemote>;

  /** Checks what it serves and whether it answers. Never fails. */
  check(): Promise<CheckResult>;

  /** Closes its connections. Idempotent. */
  close(): Promise<void>;
}
