import type { AgentCommit, FileChange } from '../domain/change.ts';
import type { Reason } from '../domain/reason.ts';
import type { CheckoutRequest } from './repository-checkouts.ts';
import type { Execution, ExecutionRequest } from './sandbox-runtime.ts';

export interface SnapshotRequest {
  /** The commit that was checked out; null if the repository was empty. */
  readonly base: string | null;
  /** Runs a command in the work tree, with the rights of whoever works there. */
  readonly run: (command: ExecutionRequest['command'], signal: AbortSignal) => Promise<Execution>;
}

/** The commit to make of uncommitted changes. */
export interface SnapshotCommit {
  readonly author: { readonly name: string; readonly email: string };
  readonly message: string;
  /** In milliseconds since the epoch. The commit is not older than the one before it. The same request makes the same commit. */
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
 * A work tree as it was at one moment, and how it differs from its base. It is on this host, so nothing of it can change any more, and
 * what the work tree holds (hooks, filters, configuration) has no effect. Failures of all methods: {@link SnapshotRefusal}.
 */
export interface WorkTreeSnapshot extends AsyncDisposable {
  /** Names the content of all files: two snapshots with the same tree have the same files. */
  readonly tree: string;
  /** The last commit of the work tree; null if there is none. */
  readonly head: string | null;
  /** False if files are missing that git could not read, such as a repository without a commit inside of the work tree. */
  readonly complete: boolean;
  /** The commits that were made since the base, newest first; at most 1,000. */
  commits(signal: AbortSignal): Promise<readonly AgentCommit[]>;
  /** The files that differ from the base, sorted by path: in commits, or not committed and not ignored. */
  files(signal: AbortSignal): Promise<readonly FileChange[]>;
  /** The difference of these files, or of all, as `git apply --binary` takes it. Must be read to its end or cancelled. */
  patch(paths: readonly string[] | null, signal: AbortSignal): ReadableStream<Uint8Array>;
  /**
   * Returns the last commit if all is committed, and otherwise a new one on top of it, which is on this host only. Refused with
   * `nothing_to_publish` if nothing differs from the base.
   */
  commit(request: SnapshotCommit, signal: AbortSignal): Promise<string>;
  /**
   * Pushes a commit, with the credential of the request, if the branch is where it is expected. Refused with `branch_moved`,
   * `branch_protected` or `push_forbidden`. Failures: those of `RepositoryCheckouts`.
   */
  push(request: PushRequest, signal: AbortSignal): Promise<void>;
}

/** A snapshot can't be taken or read. The reason is shown to the conversation's owner. */
export class SnapshotRefusal extends Error {
  override readonly name = 'SnapshotRefusal';
  readonly reason: Reason;

  constructor(reason: Reason, options?: ErrorOptions) {
    super(JSON.stringify(reason), options);
    this.reason = reason;
  }
}
