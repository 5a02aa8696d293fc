import type { ChangeList } from '../domain/change.ts';
import type { Reason } from '../domain/reason.ts';
import type { GitRemote } from './git-provider.ts';
import type { CheckResult } from './check-result.ts';
import type { SnapshotRequest, WorkTreeSnapshot } from './work-tree-snapshot.ts';

export interface CheckoutRequest {
  /** The provider's name, and the path by which it knows the repository: two checkouts of the same share what was fetched. */
  readonly provider: string;
  readonly repository: string;
  readonly remote: GitRemote;
  /** Null is the default branch. */
  readonly branch: string | null;
}

/** A work tree at the head of a branch, ready to be unpacked. */
export interface Checkout {
  /** Null if the repository is empty, and if its host has checked out a commit without a branch. */
  readonly branch: string | null;
  /** Null if the repository is empty. */
  readonly commit: string | null;
  /**
   * A tar of the work tree with its own `.git`: names are relative to its root, and it holds no credential, hook or setting of the host.
   * Can be read once, and is made as it is read. It must be read to its end or cancelled, or the request's signal must fire.
   */
  readonly archive: ReadableStream<Uint8Array>;
}

/** Receives what happens during a checkout. */
export type CheckoutProgress = (reason: Reason) => void;

/**
 * Fetches repositories to this host, with the provider's credential, and makes work trees of them. What was fetched is kept, bounded in
 * size, so that the next checkout of the same repository costs only what is new.
 *
 * Failures: those of `GitProvider`, and `branch_not_found`; `repository_empty` if a branch is asked for of a repository without a commit;
 * `repository_forbidden` if the host accepts the credential, but does not let it read the repository. No message or cause holds anything
 * of the credential.
 */
export interface RepositoryCheckouts {
  readonly name: string;

  /**
   * Fetches what is new and makes the work tree. If `signal` fires, the checkout, or reading its archive, ends with `signal.reason`
   * itself: any value of the caller's, not wrapped in a failure.
   */
  checkOut(request: CheckoutRequest, progress: CheckoutProgress, signal: AbortSignal): Promise<Checkout>;

  /**
   * Asks the host for the branch, and fetches nothing. Rejects as `checkOut` would: `branch_not_found`, `repository_empty`, and what else
   * keeps it from the host.
   */
  checkBranch(request: CheckoutRequest, signal: AbortSignal): Promise<void>;

  /** Returns the commit of the branch, null if there is no such branch, and whether it is the default one. Fetches nothing. */
  findBranch(
    request: CheckoutRequest & { readonly branch: string }, signal: AbortSignal,
  ): Promise<{ readonly commit: string | null; readonly isDefault: boolean }>;

  /**
   * Takes a snapshot of a work tree that was checked out, committed or not; files that its rules ignore are left out. Changes nothing
   * there. What comes is checked: it is whole, bounded, and its commits descend from the base. Throws {@link SnapshotRefusal} if not, what
   * `run` throws, or `signal.reason`. The snapshot must be disposed of.
   */
  takeSnapshot(request: SnapshotRequest, signal: AbortSignal): Promise<WorkTreeSnapshot>;

  /**
   * Returns what a snapshot would list, in less time. Git compares the files in the sandbox, so only the form and the size of what comes
   * are checked. Failures: those of `takeSnapshot`.
   */
  listChanges(request: SnapshotRequest, signal: AbortSignal): Promise<ChangeList>;

  /** One line for a person: whether it can work. Never rejects. */
  check(): Promise<CheckResult>;

  /**
   * Ends what is under way, archives included; later calls fail. Idempotent. Whoever made it calls it: `createSkep` does not close an
   * object that it was given.
   */
  close(): Promise<void>;
}
