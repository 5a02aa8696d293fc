import type { GitRemote } from './git-provider.ts';
import type { CheckResult } from './check-result.ts';

export interface CheckoutRequest {
  /** The provider's name, and the path by which it knows the repository: what a second checkout of the same shares. */
  readonly provider: string;
  readonly repository: string;
  readonly remote: GitRemote;
  /** Null is the default branch. */
  readonly branch: string | null;
}

/** A work tree at the head of a branch, ready to be handed over. */
export interface Checkout {
  /** Null where the repository is empty, and where its host has checked out a commit without a branch. */
  readonly branch: string | null;
  /** Null where the repository is empty. */
  readonly commit: string | null;
  /**
   * A tar of the work tree with its own `.git`: names are relative to its root, and no credential, hook or setting of
   * the host is in it. Read once; it does not pass through memory as a whole.
   */
  readonly archive: ReadableStream<Uint8Array>;
}

/** What a checkout tells while it goes on: a line for `status_detail`. */
export type CheckoutProgress = (detail: string) => void;

/**
 * Brings repositories to this host, with the provider's credential, and makes work trees of them. What was brought is
 * kept, bounded in size, so that the next checkout of the same repository costs only what is new.
 *
 * Failures: those of `GitProvider`, and `branch_not_found`; `repository_empty` where a branch is asked for of a repository
 * without a commit; `repository_forbidden` where the host takes the credential, but lets it not read the repository. No
 * message or cause holds anything of the credential.
 */
export interface RepositoryCheckouts {
  readonly name: string;

  /** Fetches what is new and makes the work tree. Rejects with the signal's reason when it fires. */
  checkOut(request: CheckoutRequest, progress: CheckoutProgress, signal: AbortSignal): Promise<Checkout>;

  /** One line for a person: whether it can work. Never fails. */
  check(): Promise<CheckResult>;

  /** Ends what is under way. Idempotent. */
  close(): Promise<void>;
}
