import { backOffMs } from './back-off.ts';
import type { EventActor } from './event.ts';
import type { Reason } from './reason.ts';
import type { SandboxSpec, TimeoutPause } from './sandbox-spec.ts';
import type { ExposedUrl, PausedBy, PauseKind, RefusalBackOff, Sandbox, SandboxStatus } from './sandbox.ts';

/** For each status, the possible transitions and the status that follows. Deletion is always possible and is not listed. */
export const lifecycle = {
  STARTING: { ready: 'RUNNING', failed: 'ERROR' },
  RUNNING: { pause: 'PAUSING', crashed: 'ERROR', vanished: 'MISSING' },
  PAUSING: { paused: 'PAUSED', refused: 'RUNNING', vanished: 'MISSING' },
  PAUSED: { resume: 'RESUMING', vanished: 'MISSING' },
  RESUMING: { ready: 'RUNNING', refused: 'PAUSED', failed: 'ERROR' },
  ERROR: { resume: 'RESUMING' },
  MISSING: { resume: 'RESUMING' },
} as const satisfies Record<SandboxStatus, Record<string, SandboxStatus>>;

type Lifecycle = typeof lifecycle;

export type SandboxTransition = { [S in SandboxStatus]: keyof Lifecycle[S] }[SandboxStatus];

export function nextStatus(status: SandboxStatus, transition: SandboxTransition): SandboxStatus | null {
  const transitions: Partial<Record<SandboxTransition, SandboxStatus>> = lifecycle[status];
  return transitions[transition] ?? null;
}

/** The other changes of a transition. Fields that are left out keep their value. */
export interface TransitionChange {
  readonly now: number;
  readonly reason: Reason | null;
  readonly pauseKind?: PauseKind;
  readonly exposedUrls?: readonly ExposedUrl[];
}

const pausedStatuses: ReadonlySet<SandboxStatus> = new Set(['PAUSING', 'PAUSED', 'RESUMING']);

/** Returns the record after the transition that `by` caused; null if the lifecycle does not have it, or the sandbox is deleted. */
export function applyTransition(sandbox: Sandbox, transition: SandboxTransition, by: EventActor, change: TransitionChange): Sandbox | null {
  const status = sandbox.deletedAt === null ? nextStatus(sandbox.status, transition) : null;
  if (status === null) return null;
  return nextVersion(sandbox, change.now, {
    spec: specAfter(sandbox, status, change.now),
    status,
    statusReason: change.reason,
    statusSince: change.now,
    // A frozen sandbox continues at once. A stopped one has to be run again and waits for a start slot.
    startingSince: status !== 'RESUMING' ? sandbox.startingSince : sandbox.pauseKind === 'freeze' ? change.now : null,
    pauseKind: pausedStatuses.has(status) ? (change.pauseKind ?? sandbox.pauseKind) : null,
    pausedBy: pausedStatuses.has(status) ? pausedByAfter(sandbox, status, by, change) : null,
    refused: refusedAfter(sandbox, transition, change.now),
    exposedUrls: change.exposedUrls ?? sandbox.exposedUrls,
    lastActiveAt: status === 'RUNNING' && sandbox.status !== 'PAUSING' ? change.now : sandbox.lastActiveAt,
  });
}

/** A timeout ends before the resumption, because it would pause the sandbox again at once. The next one begins when the sandbox runs. */
function specAfter({ spec, status: before, createdAt }: Sandbox, status: SandboxStatus, now: number): SandboxSpec {
  const { timeoutPause } = spec.rest;
  if (timeoutPause === undefined) return spec;
  const withTimeout = (change: Partial<TimeoutPause>): SandboxSpec =>
    ({ ...spec, rest: { ...spec.rest, timeoutPause: { ...timeoutPause, ...change } } });
  if (status === 'RESUMING') return withTimeout({ afterMs: null, isRenewed: false });
  const { afterMs, renewedMs } = timeoutPause;
  const begins = status === 'RUNNING' && before === 'RESUMING' && afterMs === null && renewedMs !== undefined;
  return begins ? withTimeout({ afterMs: now - createdAt + renewedMs, isRenewed: true }) : spec;
}

function pausedByAfter(sandbox: Sandbox, status: SandboxStatus, by: EventActor, { reason, now }: TransitionChange): PausedBy | null {
  const version = sandbox.version + 1;
  if (status === 'PAUSING') return { actor: by, reason, version, since: now };
  if (sandbox.status !== 'ERROR' && sandbox.status !== 'MISSING') return sandbox.pausedBy;
  return { actor: 'runtime', reason: reasonBefore(sandbox), version, hasFailed: true };
}

/** Returns true if the record begins a pause that a rule of Skep decided. Activity since the decision makes the pause void. */
export function isPausedByRule({ status, pausedBy, version, deletedAt }: Sandbox): boolean {
  return deletedAt === null && status === 'PAUSING' && pausedBy?.actor === 'skep' && pausedBy.version === version;
}

/** The start of a pause or a resumption is only an attempt, so the count of refusals stays. */
function refusedAfter({ refused }: Sandbox, transition: SandboxTransition, now: number): RefusalBackOff | null {
  if (transition === 'pause' || transition === 'resume') return refused;
  if (transition !== 'refused') return null;
  const times = (refused?.times ?? 0) + 1;
  return { times, retryAt: now + backOffMs(times) };
}

/** Returns false soon after the runtime refused to pause or to resume the sandbox: Skep must not try again yet. */
export function mayTryAgain({ refused }: Sandbox, now: number): boolean {
  if (refused === null) return true;
  const waitMs = refused.retryAt - now;
  // After a jump of the time to an earlier one, the delay is over.
  return waitMs <= 0 || waitMs > backOffMs(refused.times);
}

/** Returns the reason of a change that the user requested. Only administrators change sandboxes of others. */
export function reasonOfRequest(change: 'paused' | 'resumed' | 'deleted', { ownerId }: Sandbox, userId: string): Reason {
  return { code: `${change}_by_${userId === ownerId ? 'owner' : 'administrator'}` };
}

/** Returns the record of a sandbox that was to be frozen and is to be stopped instead. It stays PAUSED or PAUSING. */
export function stopFrozen(sandbox: Sandbox, reason: Reason, now: number): Sandbox {
  return nextVersion(sandbox, now, { pauseKind: 'stop', statusReason: reason, statusSince: now });
}

/** Like {@link stopFrozen}, at a user's request. Records that the user paused it, even if somebody else froze it. */
export function stopFrozenByUser(sandbox: Sandbox, userId: string, now: number): Sandbox {
  const reason = reasonOfRequest('paused', sandbox, userId);
  return { ...stopFrozen(sandbox, reason, now), pausedBy: { ...sandbox.pausedBy, actor: 'user', reason, version: sandbox.version + 1 } };
}

export function markDeleted(sandbox: Sandbox, reason: Reason, now: number): Sandbox {
  return nextVersion(sandbox, now, { deletedAt: now, statusReason: reason });
}

export function nextVersion(sandbox: Sandbox, now: number, fields: Partial<Sandbox>): Sandbox {
  return { ...sandbox, ...fields, version: sandbox.version + 1, updatedAt: now };
}

/** Statuses in which a sandbox counts against the limits on running ones. */
export const runningStatuses: ReadonlySet<SandboxStatus> = new Set(['STARTING', 'RUNNING', 'PAUSING', 'RESUMING']);

export function countsAsRunning({ status, deletedAt }: Sandbox): boolean {
  return deletedAt === null && runningStatuses.has(status);
}

/** Returns the record of a sandbox whose start or resumption must be over within the time limit of its spec from now on. */
export function beginStartTimeLimit(sandbox: Sandbox, now: number, reason: Reason | null = null): Sandbox {
  return nextVersion(sandbox, now, { startingSince: now, statusReason: reason });
}

/** Returns the record of a sandbox that must not run, but that the runtime does not stop or freeze. */
export function noteStillRunning(sandbox: Sandbox, cause: Reason, now: number): Sandbox {
  return nextVersion(sandbox, now, { statusReason: { code: 'still_running', cause, before: reasonBefore(sandbox) } });
}

export function clearStillRunning(sandbox: Sandbox, now: number): Sandbox {
  return nextVersion(sandbox, now, { statusReason: reasonBefore(sandbox) });
}

function reasonBefore({ statusReason }: Sandbox): Reason | null {
  return statusReason?.code === 'still_running' ? statusReason.before : statusReason;
}

/**
 * Returns when the start or resumption is too late, in milliseconds since the epoch; null if its time limit has not begun. A limit that
 * began before `watchedSince`, in an earlier server, does not count: while no server runs, nobody notices that the sandbox is ready.
 */
export function readyDeadline({ startingSince, spec }: Sandbox, watchedSince: number): number | null {
  return startingSince === null || startingSince < watchedSince ? null : startingSince + spec.ready.withinMs;
}
