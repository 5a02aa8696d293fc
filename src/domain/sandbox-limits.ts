/**
 * How many sandboxes may be there at once; null is no limit. Those that wait in a pool count against none: how many they
 * are is the specs' own word.
 */
export interface SandboxLimits {
  readonly runningPerOwner: number | null;
  readonly running: number | null;
  /** Whatever their status. */
  readonly existingPerOwner: number | null;
  readonly existing: number | null;
}

export const unlimited: SandboxLimits = { runningPerOwner: null, running: null, existingPerOwner: null, existing: null };

/** How many there are, those that are deleted not counted. */
export interface SandboxCounts {
  readonly runningOfOwner: number;
  readonly running: number;
  readonly existingOfOwner: number;
  readonly existing: number;
}

export interface LimitReached {
  readonly limit: 'running_per_owner' | 'running' | 'existing_per_owner' | 'existing';
  readonly max: number;
}

/** What one more would be: `new`, or one that exists and is to run again. */
export type Newcomer = 'new' | 'resumed';

/** The limit that one more running sandbox would exceed; null when there is room. */
export function limitReached(limits: SandboxLimits, counts: SandboxCounts, newcomer: Newcomer): LimitReached | null {
  const rules = [
    ['running_per_owner', limits.runningPerOwner, counts.runningOfOwner],
    ['running', limits.running, counts.running],
    ...(newcomer === 'new'
      ? ([
          ['existing_per_owner', limits.existingPerOwner, counts.existingOfOwner],
          ['existing', limits.existing, counts.existing],
        ] as const)
      : []),
  ] as const;
  for (const [limit, max, count] of rules) if (max !== null && count >= max) return { limit, max };
  return null;
}
