import type { None } from './reason.ts';

/** Why the changes of a conversation can't be told, besides `damaged`, `too_large` and `not_done_in_time`. */
export interface ChangeReasonData {
  /** It has none, its start has not brought it yet, or it is not known where it began. */
  no_repository: None;
  /** The sandbox lacks git, or a standard tool. */
  git_missing: None;
  /** The commits in the sandbox do not descend from where the conversation began, or there is no repository any more. */
  history_rewritten: None;
  nothing_to_publish: None;
  default_branch: None;
  branch_protected: None;
  /** Somebody else has moved or made the branch. */
  branch_moved: None;
  /** The credential may read the repository, and not push. */
  push_forbidden: None;
  /** Git failed in the sandbox; null if its exit code is not known. */
  snapshot_failed: { readonly exitCode: number | null };
}
