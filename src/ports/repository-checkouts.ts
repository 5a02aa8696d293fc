import type { ChangeList, GitIdentity, StartPoint } from '../domain/change.ts';
import type { Reason } from '../domain/reason.ts';
import type { GitRemote } from './git-provider.ts';
import type { CheckResult } from './check-result.ts';
import type { SnapshotRequest, WorkTreeSnapshot } from './work-tree-snapshot.ts';

export interface CheckoutRequest {
  /** The provider's name, and its own path of the repository. Checkouts of the same repository share the fetched data. */
  readonly provider: string;
  readonly repository: string;
  readonly remote: GitRemote;
  /** Null is the default branch. */
  readonly branch: string | null;
}

export interface WorkTreeRequest extends CheckoutRequest {
  /** The person that git in the work tree commits as, if its environment names nobody else. Absent: git must find one itself. */
  readonly author?: GitIdentity;
  /** A glob pattern of names. Git in the work tree ignores folders at its root that match. Null or absent: there are none. */
  readonly foldersOfOthers?: string | null;
}

/** A work tree at the head of a branch, ready to be unpacked. */
export interface Checkout extends StartPoint {
  /**
   * A tar of the work tree with its own `.git`. Names are relative to its root. It contains no credential, hook or setting of this machine.
   * `.git/hooks` is empty, and `.git/info` has at most `exclude`, with the names that git ignores. It can be read once, and is created
   * while it is read. It must be read to its end or cancelled, or the request's signal must fire.
   */
  readonly archive: ReadableStream<Uint8Array>;
}

export type CheckoutProgress = (reason: Reason) => void;

/**
 * Fetches repositories to this machine, with the provider's credential, and creates work trees from them. Fetched data is kept up to a size
 * limit, so the next checkout of the same repository fetches only new data.
 *
 * Failures: those of `GitProvider`, and `branch_not_found`; `repository_empty` if the request names a branch and the repository has no
 * commit; `repository_forbidden` if the git host accepts the credential, but does not let it read the repository. No message or cause
 * contains any part of the credential.
 */
export interface RepositoryCheckouts {
  readonly name: string;

  /**
   * Fetches new data and creates the work tree. If `signal` fires, the checkout, or reading its archive, fails with `signal.reason` itself,
   * not wrapped in a failure.
   */
  checkOut(request: WorkTreeRequest, progress: CheckoutProgress, signal: AbortSignal): Promise<Checkout>;

  /**
   * Checks that the git host has the branch. Fetches nothing. Rejects as `checkOut` would: `branch_not_found`, `repository_empty`, and
   * other failures of the git host.
   */
  checkBranch(request: CheckoutRequest, signal: AbortSignal): Promise<void>;

  /** Returns the commit of the branch, null if there is no such branch, and whether it is the default one. Fetches nothing. */
  findBranch(
    request: CheckoutRequest & { readonly branch: string }, signal: AbortSignal,
  ): Promise<{ readonly commit: string | null; readonly isDefault: boolean }>;

  /**
   * Takes a snapshot of a checked-out work tree, with uncommitted changes and without ignored files. Changes nothing there. Checks that the
   * received data is complete and bounded. The last commit need not descend from the base. Throws {@link SnapshotRefusal}, such as
   * `start_commit_missing` if the base is gone, what `run` throws, or `signal.reason`. The snapshot must be disposed of.
   */
  takeSnapshot(request: SnapshotRequest, signal: AbortSignal): Promise<WorkTreeSnapshot>;

  /**
   * Returns the changes that a snapshot would list, in less time. Git compares the files in the sandbox, so only the form and the size of
   * its output are checked. Failures: those of `takeSnapshot`.
   */
  listChanges(request: SnapshotRequest, signal: AbortSignal): Promise<ChangeList>;

  /** Checks whether it can work. Never rejects. */
  check(): Promise<CheckResult>;

  /**
   * Ends running work, also archives; later calls fail. Idempotent. The creator of the object calls it: `createSkep` does not close an
   * object that it was given.
   */
  close(): Promise<void>;
}
