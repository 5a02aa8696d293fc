import type { ExposedUrl, PauseKind, Sandbox, SandboxStatus } from './sandbox.ts';

/**
 * The moves of a sandbox: from each status, what may happen to it and where that leads. Whatever the table lacks is
 * not a move. Deletion is possible from everywhere and is not listed.
 */
export const lifecycle = {
  STARTING: { ready: 'RUNNING', failed: 'ERROR', expired: 'ERROR' },
  RUNNING: { pause: 'PAUSING', crashed: 'ERROR', vanished: 'MISSING' },
  PAUSING: { paused: 'PAUSED', refused: 'RUNNING' },
  PAUSED: { resume: 'RESUMING', vanished: 'MISSING' },
  RESUMING: { ready: 'RUNNING', refused: 'PAUSED', failed: 'ERROR' },
  ERROR: {},
  MISSING: {},
} as const satisfies Record<SandboxStatus, Record<string, SandboxStatus>>;

type Lifecycle = typeof lifecycle;

/** Everything that can happen to a sandbox. */
export type SandboxTransition = { [S in SandboxStatus]: keyof Lifecycle[S] }[SandboxStatus];

/** Where the event leads from the status; null where the table lacks the move. */
export function next(status: SandboxStatus, event: SandboxTransition): SandboxStatus | null {
  const moves: Partial<Record<SandboxTransition, SandboxStatus>> = lifecycle[status];
  return moves[event] ?? null;
}

/** What the event brings along; what is left out stays as it was. */
export interface TransitionChange {
  readonly now: number;
  readonly detail: string | null;
  readonly pauseKind?: PauseKind;
  readonly exposedUrls?: readonly ExposedUrl[];
}

const resting: ReadonlySet<SandboxStatus> = new Set(['PAUSING', 'PAUSED', 'RESUMING']);

/** The record after the event, with a version one higher; null where the lifecycle lacks the move or the sandbox is deleted. */
export function move(sandbox: Sandbox, event: SandboxTransition, change: TransitionChange): Sandbox | null {
  const status = sandbox.deletedAt === null ? next(sandbox.status, event) : null;
  if (status === null) return null;
  return written(sandbox, change.now, {
    status,
    statusDetail: change.detail,
    statusSince: change.now,
    startingSince: status === 'RESUMING' ? turnOfResumption(sandbox, change.now) : sandbox.startingSince,
    pauseKind: resting.has(status) ? (change.pauseKind ?? sandbox.pauseKind) : null,
    exposedUrls: change.exposedUrls ?? sandbox.exposedUrls,
    lastActiveAt: status === 'RUNNING' && sandbox.status !== 'PAUSING' ? change.now : sandbox.lastActiveAt,
  });
}

/** A frozen sandbox only has to be let go on; a stopped one has to be run again, and waits its turn for that. */
function turnOfResumption({ pauseKind }: Sandbox, now: number): number | null {
  return pauseKind === 'freeze' ? now : null;
}

/** A frozen sandbox goes on to the stopped tier without leaving PAUSED. */
export function stopFrozen(sandbox: Sandbox, detail: string, now: number): Sandbox {
  return written(sandbox, now, { pauseKind: 'stop', statusDetail: detail, statusSince: now });
}

/** The record of a sandbox whose deletion was asked for, and why. */
export function markDeleted(sandbox: Sandbox, detail: string, now: number): Sandbox {
  return written(sandbox, now, { deletedAt: now, statusDetail: detail });
}

/** The record of a deleted sandbox of which the runtime has nothing left. */
export function markRemoved(sandbox: Sandbox, now: number): Sandbox {
  return written(sandbox, now, { removedAt: now });
}

/** The record with the fields, with a version one higher. */
function written(sandbox: Sandbox, now: number, fields: Partial<Sandbox>): Sandbox {
  return { ...sandbox, ...fields, version: sandbox.version + 1, updatedAt: now };
}

/** Statuses in which a sandbox takes, or is about to take, what the limits on running ones bound. */
export const runningStatuses: ReadonlySet<SandboxStatus> = new Set(['STARTING', 'RUNNING', 'PAUSING', 'RESUMING']);

/** Does it count against the limits on running sandboxes? */
export function countsAsRunning({ status, deletedAt }: Sandbox): boolean {
  return deletedAt === null && runningStatuses.has(status);
}

/** The record of a sandbox whose turn has come: from now on the time counts that its spec gives it. */
export function takeStartSlot(sandbox: Sandbox, now: number, detail: string | null = null): Sandbox {
  return written(sandbox, now, { startingSince: now, statusDetail: detail });
}

/** The record of a frozen sandbox whose processes ended before it was resumed: it is run again from its files, in its turn. */
export function requeue(sandbox: Sandbox, detail: string, now: number): Sandbox {
  return written(sandbox, now, { startingSince: null, pauseKind: 'stop', statusDetail: detail });
}

/** The record with what goes on right now, in words. */
export function reportProgress(sandbox: Sandbox, detail: string, now: number): Sandbox {
  return written(sandbox, now, { statusDetail: detail });
}

/** The record of a running sandbox that is reached elsewhere than before. */
export function relocate(sandbox: Sandbox, exposedUrls: readonly ExposedUrl[], now: number): Sandbox {
  return written(sandbox, now, { exposedUrls });
}

/** When the start or resumption is too late, in milliseconds since the epoch; null while its turn has not come. */
export function readyDeadline({ startingSince: turnAt, spec }: Sandbox): number | null {
  return turnAt === null ? null : turnAt + spec.ready.withinMs;
}

/** Is the start or resumption too late? */
export function isTooLate(sandbox: Sandbox, now: number): boolean {
  const deadline = readyDeadline(sandbox);
  return deadline !== null && now >= deadline;
}
