import type { EndDetails, ExternalMessage, None } from './reason.ts';

/** The commit and branch that were checked out for a conversation. */
export interface StartPoint {
  /** Null if the repository was empty. */
  readonly commit: string | null;
  /** Null if the repository was empty, or if its host has checked out a commit without a branch. */
  readonly branch: string | null;
}

/** A person in the commits of git. */
export interface GitIdentity {
  readonly name: string;
  readonly email: string;
}

/** Returns the user as a person of git, which requires an address. */
export function gitIdentityOf(userId: string): GitIdentity {
  return { name: userId, email: userId.includes('@') ? userId : `${userId}@users.noreply.invalid` };
}

/** A request at the git host to merge a branch: a pull request of GitHub, a merge request of GitLab. */
export interface PullRequest {
  /** The number that people and URLs use, within its repository. */
  readonly number: number;
  /** The URL of its web page. */
  readonly url: string;
}

/** The content of a pull request to open or update. */
export interface PullRequestContent {
  readonly title: string;
  readonly body: string;
  /** The branch to merge into. Null: the default branch for a new pull request, the current base for an open one. */
  readonly base: string | null;
  /** True if a new one is a draft. An open one does not change: somebody may have marked it as ready. */
  readonly draft: boolean;
}

export const fileChangeStatuses = ['added', 'modified', 'deleted', 'renamed', 'mode_changed'] as const;

export type FileChangeStatus = (typeof fileChangeStatuses)[number];

/**
 * A file that differs from the start point of its conversation. Modes are those of git: `100644`, `100755`, `120000` (link), `160000`
 * (submodule).
 */
export interface FileChange {
  readonly path: string;
  readonly status: FileChangeStatus;
  /** The path before a rename; null otherwise. */
  readonly oldPath: string | null;
  /** Null if the file was added. */
  readonly oldMode: string | null;
  /** Null if the file was deleted. */
  readonly mode: string | null;
  readonly binary: boolean;
  /** Lines; null if the file is binary. */
  readonly added: number | null;
  readonly removed: number | null;
  /** True if the file is the same as in the last commit. */
  readonly committed: boolean;
}

/** A commit that was made in a conversation. */
export interface AgentCommit {
  readonly commit: string;
  readonly authorName: string;
  readonly authorEmail: string;
  /** In milliseconds since the epoch. */
  readonly committedAt: number;
  /** The first line of the message. */
  readonly subject: string;
}

/** The changes in a conversation: the commits since its start, and all files that differ. */
export interface ChangeList {
  /** The last commit of the work tree; null if there is none. */
  readonly head: string | null;
  /**
   * False if work is missing: files that git could not read, changes in a git repository inside the work tree, commits of other
   * branches, tags, stashes or work trees, or what may have been done after the changes were kept.
   */
  readonly complete: boolean;
  readonly commits: readonly AgentCommit[];
  readonly files: readonly FileChange[];
}

/** The stored changes of a conversation, for the time when its work tree can't be read. */
export interface KeptChanges {
  /** When the work tree had these changes, in milliseconds since the epoch. */
  readonly keptAt: number;
  /** Identifies the content of all files: two work trees with the same tree are the same. */
  readonly tree: string;
  /** Null if it is larger than {@link maxKeptBytes}. */
  readonly list: ChangeList | null;
  /** The whole diff, in the form that `git apply --binary` reads; null if it is larger than {@link maxKeptBytes}. */
  readonly patch: Uint8Array | null;
}

/** The maximum size of the kept list, and of the kept patch, in bytes. */
export const maxKeptBytes = 4 * 2 ** 20;

/** The size of the changes: files, and lines of text files. */
export interface ChangeCounts {
  readonly files: number;
  readonly linesAdded: number;
  readonly linesRemoved: number;
}

export function countChanges(files: readonly FileChange[]): ChangeCounts {
  return {
    files: files.length,
    linesAdded: files.reduce((sum, { added }) => sum + (added ?? 0), 0),
    linesRemoved: files.reduce((sum, { removed }) => sum + (removed ?? 0), 0),
  };
}

/** Why the changes of a conversation can't be read, besides `too_large`, `disk_full` and `not_done_in_time`. */
export interface ChangeReasonData {
  /** It has no repository, its start has not checked it out yet, or its start point is unknown. */
  no_repository: None;
  /** The sandbox does not have git, or a standard tool. */
  git_missing: None;
  /** The sandbox does not have the start point, or its repository, any more. */
  start_commit_missing: None;
  /** The commits to publish do not descend from the start point. Earlier versions of Skep: also for a missing start point. */
  history_rewritten: None;
  /** Such as those of a repository inside the work tree. */
  files_left_out: None;
  nothing_to_publish: None;
  default_branch: None;
  /** Its host has made it read-only for everybody. */
  repository_archived: None;
  branch_protected: ExternalMessage;
  /** By a rule of the git host, such as one about signed commits, secrets or the size of files. */
  host_refused: ExternalMessage;
  /** It is checked out in a work tree of a repository that is a folder. */
  branch_checked_out: None;
  /** Somebody else has moved or created the branch. */
  branch_moved: None;
  /** There is a branch `a`, and this one is `a/b`, or the reverse. */
  branch_name_conflict: None;
  branch_name_too_long: None;
  /** The credential may read the repository, but not push. */
  push_forbidden: ExternalMessage;
  /** The credential may push, but not open pull requests. */
  pull_request_forbidden: None;
  /** The host has no drafts for this repository. */
  drafts_unsupported: None;
  /** The base has all commits of the branch already, or there is no other branch. */
  nothing_to_merge: None;
  /** Git failed in the sandbox. `exitCode` is null if it is not known. */
  snapshot_failed: Pick<EndDetails, 'output'> & { readonly exitCode: number | null };
  /** The sandbox did not send what git sends. */
  snapshot_damaged: None;
  /** Objects of the commits are not in the sandbox: a shallow or partial history was merged. */
  history_incomplete: None;
  /** Git's check of an object failed, such as `gitattributesLineLength`. The path is null if it is the root, or only in a commit. */
  object_refused: ExternalMessage & { readonly check: string; readonly object: string; readonly path: string | null };
}
