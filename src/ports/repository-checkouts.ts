import type { Reason } from '../domain/reason.ts';
import type { GitRemote } from './git-provider.ts';
import type { CheckResult } from './check-result.ts';

export interface CheckoutRequest {
  /** The provider's name and its path of the repository. Checkouts with the same two share what was fetched. */
  readonly provider: string;
  readonly repository: string;
  readonly remote: GitRemote;
  /** Null is the default branch. */
  readonly branch: string | null;
}

/** A work tree at the head of a branch. */
export interface Checkout {
  /** Null if the repository is empty, or its host has checked out a commit without a branch. */
  readonly branch: string | null;
  /** Null if the repository is empty. */
  readonly commit: string | null;
  /**
   * A tar of the work tree with its own `.git`. Names are relative to its root. It holds no credential, hook or setting of the
   * host. It can be read once, and is never in memory as a whole.
   */
  readonly archive: ReadableStream<Uint8Array>;
}

/** Receives what happens during a checkout. */
export type CheckoutProgress = (reason: Reason) => void;

/**
 * Fetches repositories to this host with the provider's credential, and makes work trees of them. What was fetched is kept,
 * bounded in size, so that the next checkout of the same repository fetches only what is new.
 *
 * Failures: those of `GitProvider`, and `branch_not_found`; `repository_empty` if a branch is requested of a repository
 * without a commit; `repository_forbidden` if the credential is good, but may not read the repository. No message or cause
 * holds anything of the credential.
 */
export interface RepositoryCheckouts {
  readonly name: string;

  /** Fetches what is new and makes the work tree. Rejects with the signal's reason when it fires. */
  checkOut(request: CheckoutRequest, progress: CheckoutProgress, signal: AbortSignal): Promise<Checkout>;

  /** Checks whether it can work. Never fails. */
  check(): Promise<CheckResult>;

  /** Ends running checkouts. Idempotent. */
  close(): Promise<void>;
}
