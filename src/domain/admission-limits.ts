/**
 * Limits on the number of sandboxes. Null is no limit. Pool members don't count. A sandbox in quarantine counts only as a running one,
 * until it is stopped.
 */
export interface SandboxLimits {
  readonly runningPerOwner: number | null;
  readonly running: number | null;
  /** Whatever their status. */
  readonly existingPerOwner: number | null;
  readonly existing: number | null;
}

/** The limits for a new sandbox. */
export interface NewSandboxLimits extends SandboxLimits {
  /** Set while more of the disk is used than `limitPercent`: then no sandbox is added. */
  readonly fullDisk?: { readonly limitPercent: number } | null;
}

export const unlimited: SandboxLimits = { runningPerOwner: null, running: null, existingPerOwner: null, existing: null };

/** A limit on sandboxes, conversations or executions that has no room for one more. */
export interface LimitReached {
  readonly limit:
    | 'running_per_owner' | 'running' | 'existing_per_owner' | 'existing' | 'disk'
    | 'conversations_per_owner' | 'conversations' | 'conversations_per_sandbox' | 'executions_per_sandbox';
  readonly max: number;
}
