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
  /** How much of the disk may be used, in percent. Present only while more is used: then no sandbox is added. */
  readonly diskUsedPercent?: number | undefined;
}

export const unlimited: SandboxLimits = { runningPerOwner: null, running: null, existingPerOwner: null, existing: null };

/** The number of sandboxes, without deleted ones. */
export interface SandboxCounts {
  readonly runningOfOwner: number;
  readonly running: number;
  readonly existingOfOwner: number;
  readonly existing: number;
}

/** A limit on sandboxes, conversations or executions that has no room for one more. */
export interface LimitReached {
  readonly limit:
    | 'running_per_owner' | 'running' | 'existing_per_owner' | 'existing' | 'disk'
    | 'conversations_per_owner' | 'conversations' | 'conversations_per_sandbox' | 'executions_per_sandbox';
  readonly max: number;
}

/** Returns the first limit that one more would exceed; null if there is room. */
export function firstReached(
  rules: readonly (readonly [LimitReached['limit'], max: number | null, count: number])[],
): LimitReached | null {
  for (const [limit, max, count] of rules) if (max !== null && count >= max) return { limit, max };
  return null;
}

/** `new`, or an existing sandbox that is to run again. */
export type Admission = 'new' | 'resumed';

/** Returns the limit that one more running sandbox would exceed; null if there is room. */
export function limitReached(limits: SandboxLimits, counts: SandboxCounts, admission: Admission): LimitReached | null {
  const rules = [
    ['running_per_owner', limits.runningPerOwner, counts.runningOfOwner],
    ['running', limits.running, counts.running],
    ['existing_per_owner', limits.existingPerOwner, counts.existingOfOwner],
    ['existing', limits.existing, counts.existing],
  ] as const;
  if (admission === 'resumed') return firstReached(rules.slice(0, 2));
  const { diskUsedPercent } = limits;
  return firstReached(rules) ?? (diskUsedPercent === undefined ? null : { limit: 'disk', max: diskUsedPercent });
}
