import type { GitHostFamily } from '../domain/microagent.ts';
import type { CheckResult } from './check-result.ts';

/** A file of a repository's default branch. */
export interface DatedFile {
  /** Relative to the repository's root, `/` between segments. */
  readonly path: string;
  /** Committer date of the earliest commit of the default branch's history that touches the path, in ms since the epoch. */
  readonly createdAt: number;
}

/** Which files are wanted. The directory depends on the repository's actual name, which only the provider learns. */
export interface FileQuery {
  /** The directory to look below, relative to the root, given the last segment of the repository's actual path. */
  directory(repositoryName: string): string;
  /** Is this path (relative to the directory) wanted? Called for regular files only. */
  accepts(path: string): boolean;
}

export interface DirectoryListing {
  readonly directory: string;
  /** In no particular order. */
  readonly files: readonly DatedFile[];
  /** When the host last confirmed it, in ms since the epoch, where that was earlier than now. */
  readonly confirmedAt?: number;
}

export interface RepositoryInfo {
  /** The path by which the provider knows the repository, which may differ from the one asked for (a rename). */
  readonly path: string;
  /** Null where the repository is empty, or no branch is checked out. */
  readonly defaultBranch: string | null;
}

/** Where git fetches a repository from. */
export interface GitRemote {
  /** An https or http URL without a credential; for the local provider the absolute path of a git folder. */
  readonly url: string;
  /** The value of the header `Authorization` that git is to send there: a secret. Null where none is needed. */
  readonly authorization: string | null;
}

/**
 * A host of git repositories. Only the default branch is read, and never the content of a file.
 *
 * `repository` is a name that {@link parseRepositoryName} accepts, without a host.
 *
 * Every method fails with `repository_not_found` (it does not exist, or the credential can't see it),
 * `provider_unauthorized`, `provider_rate_limited`, `provider_timeout`, or `provider_failed` (anything else, a corrupt
 * repository included). A failure is never an empty answer. Every method is read-only and idempotent, and ends early
 * when `signal` fires.
 */
export interface GitProvider {
  /** The name it is configured by: `github`, `gitlab`, `local`. */
  readonly name: string;
  readonly family: GitHostFamily;
  /** Host names that choose this provider when one stands in front of a repository's name. */
  readonly hosts: readonly string[];

  /**
   * The regular files (no links, no submodules) at any depth below the directory. A directory that does not exist, and
   * an empty repository, are an empty list.
   */
  listFiles(repository: string, query: FileQuery, signal?: AbortSignal): Promise<DirectoryListing>;

  /** Finds the repository. */
  find(repository: string, signal?: AbortSignal): Promise<RepositoryInfo>;

  /** Where git fetches the repository from. The path is one that `find` answered with; nothing is asked of the host unless a credential has to be had. */
  remote(repository: string, signal?: AbortSignal): Promise<GitRemote>;

  /** One line for a person: what it serves and whether it answers. Never fails. */
  check(): Promise<CheckResult>;

  /** Ends what it holds open. Idempotent. */
  close(): Promise<void>;
}
