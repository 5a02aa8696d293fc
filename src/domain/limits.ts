/** How many sandboxes may run at once; null is no limit. */
export interface SandboxLimits {
  readonly runningPerOwner: number | null;
  readonly running: number | null;
}

export interface RunningCounts {
  readonly ofOwner: number;
  readonly all: number;
}

export interface LimitReached {
  readonly limit: 'running_per_owner' | 'running';
  readonly max: number;
}

/** The limit that one more running sandbox would exceed; null when there is room. */
export function limitReached(limits: SandboxLimits, counts: RunningCounts): LimitReached | null {
  if (limits.runningPerOwner !== null && counts.ofOwner >= limits.runningPerOwner) {
    return { limit: 'running_per_owner', max: limits.runningPerOwner };
  }
  if (limits.running !== null && counts.all >= limits.running) return { limit: 'running', max: limits.running };
  return null;
}
