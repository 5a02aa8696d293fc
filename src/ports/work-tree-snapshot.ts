import type { AgentCommit, FileChange, GitIdentity } from '../domain/change.ts';
import { Refusal } from '../domain/failure.ts';
import type { CheckoutRequest } from './repository-checkouts.ts';
import type { Execution, ExecutionRequest } from './sandbox-runtime.ts';

export interface SnapshotRequest {
  /** The commit that was checked out; null if the repository was empty. */
  readonly base: string | null;
  /**
   * A glob pattern of names. Folders at the root of the work tree that match it belong to others: the snapshot has nothing in them but what
   * the base has there, even if git in the work tree has added or committed it. Null: there are none.
   */
  readonly foldersOfOthers?: string | null;
  /** Runs a command in the work tree, with the rights of the agent that works there. */
  readonly run: (command: ExecutionRequest['command'], signal: AbortSignal) => Promise<Execution>;
}

/** The commit to create from uncommitted changes. */
export interface SnapshotCommit {
  readonly author: GitIdentity;
  readonly message: string;
  /** In milliseconds since the epoch. The commit is never older than its parent. The same request creates the same commit. */
  readonly at: number;
}

export interface PushRequest {
  /** The repository and the branch to push to. */
  readonly request: CheckoutRequest & { readonly branch: string };
  readonly commit: string;
  /** The commit that the branch must have; null if the branch must not exist. */
  readonly expected: string | null;
}

/**
 * The state of a work tree at one moment, and its difference from the base. It is on this machine, so it can't change any more, and
 * hooks, filters and configuration of the work tree have no effect. Failures of all methods: {@link SnapshotRefusal}.
 */
export interface WorkTreeSnapshot extends AsyncDisposable {
  /** Identifies the content of all files: two snapshots with the same tree have the same files. */
  readonly tree: string;
  /** The last commit of the work tree; null if there is none. */
  readonly head: string | null;
  /**
   * False if work is left out: files that git could not read, changes in a git repository inside the work tree, or commits of other
   * branches, tags, stashes or work trees.
   */
  readonly complete: boolean;
  /** Returns the commits that the base's history does not have, newest first; at most 1,000. */
  commits(signal: AbortSignal): Promise<readonly AgentCommit[]>;
  /** Returns the files that differ from the base, sorted by path: committed ones, and uncommitted ones that are not ignored. */
  files(signal: AbortSignal): Promise<readonly FileChange[]>;
  /** Returns the diff of these files (null: of all) in the form that `git apply --binary` reads. Must be read to its end or cancelled. */
  patch(paths: readonly string[] | null, signal: AbortSignal): ReadableStream<Uint8Array>;
  /**
   * Returns the last commit if everything is committed; it may be the base. Otherwise creates one on top of it, on this machine only.
   * Refused with `history_rewritten` if the last commit does not descend from the base.
   */
  commit(request: SnapshotCommit, signal: AbortSignal): Promise<string>;
  /**
   * Pushes a commit with the credential of the request, if the branch is at the expected commit. Refused with `branch_moved`,
   * `branch_name_conflict`, `branch_name_too_long`, `locked`, `disk_full`, `branch_protected`, `host_refused`, `branch_checked_out`,
   * `push_forbidden` or `history_incomplete`. Failures: those of `RepositoryCheckouts`.
   */
  push(request: PushRequest, signal: AbortSignal): Promise<void>;
}

/** A snapshot can't be taken or read. The reason is shown to the conversation's owner. */
export class SnapshotRefusal extends Refusal {
  override readonly name = 'SnapshotRefusal';
}
